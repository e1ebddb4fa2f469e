"""Texts of units taken out of their file and put back, whatever a region or a reply does."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from pytest_regen.errors import KindError, RegionError, SourceError
from pytest_regen.strict_json import versions
from pytest_regen.text import flatten, quoted
from pytest_regen.units.kind import Kind, call_kind
from pytest_regen.validation.issues import Issue

T = TypeVar("T")


class NoPlaceError(RegionError):
    """A unit is not in its file, and its region does not add units by itself."""


@dataclass(frozen=True, slots=True)
class UnitText:
    """The text of one unit, and where it begins."""

    text: str
    line: int = 0
    """Counts from 1, in the file; 0 where that is not known."""


def find_texts(kind: Kind, text: str, place: str) -> Mapping[str, UnitText]:
    """Return the units that a region finds, by name.

    Raises:
        SourceError: they cannot be told apart.
        KindError: the region, where it is the user's own, raised.
    """
    return call_region(kind, "find", lambda: _read_texts(kind, text), place)


@lru_cache(maxsize=4)
def _read_texts(kind: Kind, text: str) -> Mapping[str, UnitText]:
    """Return the units of a text; what a candidate was made from is looked at again and again."""
    units: Mapping[str, object] = kind.region.find(text)
    return {
        # A region of the user's may give texts alone, because lines only make messages better.
        name: UnitText(unit)
        if isinstance(unit, str)
        else UnitText(str(getattr(unit, "text", "")), int(getattr(unit, "line", 0) or 0))
        for name, unit in units.items()
    }


def call_region(kind: Kind, method: str, call: Callable[[], T], place: str) -> T:
    """Return what a region's method returns; a SourceError is about the file, not the kind."""
    try:
        return call_kind(kind, f"region.{method}", call, where=place)
    except KindError as error:
        if isinstance(error.__cause__, SourceError):
            raise error.__cause__ from None
        raise


def same_text(kind: Kind, old: str, new: str) -> bool:
    """Return whether two texts of a unit mean the same."""
    if old == new:
        return True
    same = getattr(kind.region, "same", None)
    return bool(call_kind(kind, "region.same", lambda: same(old, new))) if same else False


def put_texts(
    kind: Kind, file_text: str, texts: Mapping[str, str], order: Iterable[str], place: str
) -> str:
    """Return a file's text with other texts for some units; those that are not there are added.

    Raises:
        SourceError: one of them cannot stand there.
        KindError: the region, where it is the user's own, raised.
    """
    region, before = kind.region, find_texts(kind, file_text, place)
    result = file_text
    # First, because what is added finds its place among those that stand there.
    if replaced := {name: text for name, text in texts.items() if name in before}:
        result = call_region(kind, "replace", lambda: str(region.replace(result, replaced)), place)
    if added := {name: text for name, text in texts.items() if name not in before}:
        insert = getattr(region, "insert", None)
        if insert is None:
            name = next(iter(added))
            raise NoPlaceError(
                f"{place} has no place for {name!r:.80}",
                why="units of this region are not added by themselves",
                hint=place_to_write(kind, name),
            )
        names, start = tuple(dict.fromkeys((*order, *added))), result
        result = call_region(kind, "insert", lambda: str(insert(start, added, names)), place)
    after = find_texts(kind, result, place)
    for name in texts:
        if name not in after:
            raise SourceError(
                f"{name!r:.80} does not come back from {place}",
                why="its text looks like the end of its place in the file",
                hint="correct the text",
            )
    return result


def place_to_write(kind: Kind, name: str) -> str:
    """Return what a person writes into a file so that a unit has its place there.

    Empty where the region puts units where there is no place for them yet.
    """
    if getattr(kind.region, "insert", None) is not None:
        return ""
    describe = getattr(kind.region, "describe", None)
    return str(describe(name)) if describe else "write its place into the file by hand"


def put_text(
    kind: Kind, file_text: str, name: str, text: str, order: Sequence[str], *, place: str
) -> str | Issue:
    """Return the file with another text for one unit, or why it cannot stand there.

    A reply may hold anything, marker lines too: every other unit must come back as it was.
    """
    try:
        before = find_texts(kind, file_text, place)
        result = put_texts(kind, file_text, {name: text}, order, place)
        after = find_texts(kind, result, place)
        old, new = (
            {key: unit.text for key, unit in units.items() if key != name}
            for units in (before, after)
        )
        what, why = "", ""
        if old != new:
            what = "the text would change other units of the file"
        elif not same_text(kind, text, after[name].text):
            what = "the text does not come back as it was put into the file"
    except NoPlaceError as error:
        what = "it has no place in the file"
        return Issue.of("MISSING_UNIT", what, type_name=name, detail=error.hint)
    except SourceError as error:
        what, why = error.what, error.why
    return Issue.of("SYNTAX", what, type_name=name, detail=why or None) if what else result


def sides(text: str) -> tuple[str, str]:
    """Return the two versions of a file that git could not join; of another, twice its text."""
    # Half a pair passes, because whoever reads the file says what is wrong with it.
    both = versions(text.encode("utf-8", "surrogatepass"))
    ours, theirs = both or (text.encode("utf-8", "surrogatepass"),) * 2
    return ours.decode("utf-8", "surrogatepass"), theirs.decode("utf-8", "surrogatepass")


def units_in(kind: Kind, text: str) -> set[str]:
    """Return the names that stand in a text, as units or, where a region can tell, without marks.

    A function is there whether it has its marker lines or not.
    """
    defined = getattr(kind.region, "defined", None)
    return {*texts_or_none(kind, text), *(defined(text) if defined else ())}


def texts_or_none(kind: Kind, text: str) -> Mapping[str, UnitText]:
    """Return the units that a region finds; none where they cannot be told apart."""
    try:
        return find_texts(kind, text, "")
    except (SourceError, KindError):
        return {}


# Characters of a line that are shown.
_SHOWN: Final = 120
# Of these, how many stand before the place where two lines begin to differ.
_BEFORE: Final = 40
_LINES: Final = 10


def difference(old: tuple[str, str], new: tuple[str, str]) -> tuple[int, str]:
    """Return the line of the new text where it begins to differ, from 0, and how, in a few lines.

    Args:
        old: what a text is called, and the text.
        new: the same of another one.
    """
    before, after = old[1].split("\n"), new[1].split("\n")
    number = _alike(before, after)
    first = [lines[number] if number < len(lines) else "" for lines in (before, after)]
    start = max(0, _alike(*first) - _BEFORE)

    def clip(line: str) -> str:
        if len(line) <= _SHOWN:
            return line
        end = "…" if start + _SHOWN < len(line) else ""
        return f"{'…' if start else ''}{line[start : start + _SHOWN]}{end}"

    if len(before) == len(after) == 1:
        width = max(len(old[0]), len(new[0])) + 2
        both = ((f"{name}:", clip(text)) for name, text in (old, new))
        return 0, "\n".join(f"{name:<{width}}{quoted(text)}" for name, text in both)
    lines = [f"--- {old[0]}", f"+++ {new[0]}"]
    for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]:
        if not line.startswith("@@"):
            text = clip(line[1:])
            # Blanks at the end of a line would not be seen.
            lines.append(f"{line[0]} {flatten(text) if text == text.rstrip() else quoted(text)}")
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"… {len(lines) - _LINES:,} more lines"]
    return min(number, len(after) - 1), "\n".join(lines)


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many lines, or characters, two sequences have in common at their beginning."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def line_in_file(file_text: str, unit: UnitText, number: int) -> int | None:
    """Return where a line of a unit's text stands in the file; if unknown, where the unit does.

    The lines of a string in JSON are one line of the file.
    """
    lines, line = file_text.split("\n"), unit.line + number
    wanted = unit.text.split("\n")[number].strip()
    is_there = unit.line and line <= len(lines) and lines[line - 1].strip() == wanted
    return (line if is_there else unit.line) or None
