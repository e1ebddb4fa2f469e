"""The region protocol, what a region finds, and the simplest region: a whole file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_regen.errors import RegionError
from pytest_regen.text import shorten


@dataclass(frozen=True, slots=True)
class Span:
    """Where the text of one unit stands in its file.

    Attributes:
        text: as the unit has it: a JSON string decoded, a block without the indentation of its
            marker; line ends are LF whatever the file has.
        line: of the file, counted from 1, on which the text begins.
        start: index in the file's text; ``file_text[start:end]`` is all that ``replace`` changes.
        end: index after the last character.
    """

    text: str
    line: int
    start: int
    end: int


@runtime_checkable
class Region(Protocol):
    """Where units stand in a file.

    A region works on the decoded text of a file with nothing translated: a byte order mark is its
    first character, CRLF stays CRLF. ``""`` stands for a file that is not there.

    A region may have more than these two methods:

    - ``insert(text, texts, order=())`` adds units; ``order`` names all units of the file as
      ``Kind.units`` has them, and a new one goes behind the nearest of its predecessors;
    - ``remove(text, names)`` takes units out of the file;
    - ``same(old, new)`` says whether two texts mean the same; by default, equal texts do;
    - ``why_empty(text, name)`` says why a unit has no text, though something stands there;
    - ``describe(name)`` says, in a region without ``insert``, which lines a user has to write.
    """

    def find(self, text: str, /) -> Mapping[str, Span | str]:
        """Return the units of a file's text by name, in the order of the file.

        A region of one's own may return plain texts: messages then name no line.

        Raises:
            RegionError: the units cannot be told apart; the error names the line.
        """

    def replace(self, text: str, texts: Mapping[str, str], /) -> str:
        """Return a file's text with other texts for the units that ``texts`` names.

        A text equal to the one ``find`` returns leaves its bytes as they are.

        Raises:
            RegionError: the file has no such unit, or the text cannot stand there.
        """


class WholeFile:
    """One unit, ``file``: everything in the file but a byte order mark and the final line end."""

    name = "file"

    def find(self, text: str) -> dict[str, Span]:
        """Return the one unit of ``text``; a file without any text has none."""
        if not text:
            return {}
        # A byte order mark is not the model's: it stays in front of whatever is written.
        start = int(text.startswith("\ufeff"))
        body = text[start:].replace("\r\n", "\n").removesuffix("\n")
        return {self.name: Span(body, 1, start, len(text))}

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return another text for the whole file, with the line ends that ``text`` has."""
        spans = self.find(text)
        refuse_unknown(texts, spans)
        if all(spans[name].text == new for name, new in texts.items()):
            return text
        return text[: spans[self.name].start] + self.insert(text, texts)

    def insert(self, text: str, texts: Mapping[str, str], order: Sequence[str] = ()) -> str:
        """Return the text of a new file."""
        refuse_unknown(texts, (self.name,))
        if not texts:
            return text
        new = unix_line_ends(texts[self.name]) + "\n"
        return new.replace("\n", "\r\n") if has_crlf(text) else new


def decode(data: bytes, place: str) -> str:
    """Return the text of a file, nothing translated.

    Raises:
        RegionError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"{place} is not UTF-8 (line {line}); save it as UTF-8"
        raise RegionError(what, line=line, hint="save it as UTF-8") from None


def refuse_unknown(texts: Iterable[str], units: Iterable[str]) -> None:
    """Raise RegionError if one of ``texts`` is none of the units."""
    # Looked up by key: a file of thousands of units is checked for each of them.
    names = dict.fromkeys(units)
    for name in texts:
        if name not in names:
            raise RegionError(
                f"the file has no unit {name!r}",
                why=f"units it has: {shorten(list(names)) or 'none'}",
                hint="pass one of these names",
            )


def defect(line: int, problem: str, hint: str, why: str = "") -> RegionError:
    """Return the error that something is wrong on a line of a file."""
    return RegionError(f"line {line}: {problem}", line=line, why=why, hint=hint)


def line_at(text: str, index: int) -> int:
    """Return the line of ``text``, counted from 1, on which the character at ``index`` stands."""
    return text.count("\n", 0, index) + 1


def splice(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return ``text`` with each range ``start:end`` replaced; ranges do not overlap."""
    # In one pass, because a catalogue of 5,000 keys may change as a whole.
    pieces: list[str] = []
    position = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += (text[position:start], new)
        position = end
    return "".join((*pieces, text[position:]))


def has_crlf(text: str) -> bool:
    """Return whether the first line of ``text`` ends in CRLF."""
    first = text.find("\n")
    return first > 0 and text[first - 1] == "\r"


def unix_line_ends(text: str) -> str:
    """Return ``text`` with LF line ends only."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
