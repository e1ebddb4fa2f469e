"""Why Python is illegal: each member that is, named alone, so that no fault hides another.

Python is a language of lines. Illegal code is cut into declarations and their members by
indentation, each is tried alone, and what is illegal is either mended as it was probably meant or
blanked. Lines never move.
"""

import re
import textwrap
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from time import thread_time
from typing import Final

from pytest_regen.languages.base import SyntaxFault
from pytest_regen.languages.leftovers import out_of_json, without_entities
from pytest_regen.languages.python.slips import LEFTOVERS, open_brackets, slips, without_comment
from pytest_regen.languages.python.tree import dedent, is_legal, why_illegal
from pytest_regen.text import in_quotes

_SECONDS_TO_SPEND: Final = 0.5
"""Processor time for trying out what was meant in one source."""
_ROUNDS: Final = 30
_MANY: Final = 100
"""Lines of one member that are looked at one by one."""
_WORD: Final = re.compile(r"[^\s\"'()\[\],;:=]+")
_QUOTED: Final = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'")
_HEAD: Final = re.compile(r"class\b")
_CALL: Final = re.compile(
    r"(?P<name>\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[ \t]*(?:\w+\.)?(?P<form>TypedDict|Literal)\b"
)
_CLASS_NAME: Final = re.compile(r"class\b[ \t]*(?P<name>[^\s(:]*)[ \t]*(?P<bases>[^:]*)")
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A source made legal, and what had to be changed for it."""

    code: str
    faults: tuple[SyntaxFault, ...] = ()
    unread: frozenset[str] = frozenset()
    """Words and strings of the lines that could not be read."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Stand-ins for illegal names, to what the source says."""


@lru_cache(maxsize=256)
def diagnose(code: str) -> Diagnosis:
    """Return what is wrong with ``code``. The result is shared: callers must not change it."""
    plain = code.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "\ufffd")
    dedented = dedent(plain)
    data = dedented.encode("utf-8", "replace")
    answer = out_of_json(data)  # legal as well: a dictionary
    if answer is not None:
        return Diagnosis(answer.code.decode("utf-8"), answer.faults, words_of(plain))
    if is_legal(dedented):
        return Diagnosis(dedented)
    meant = without_entities(data)
    patient = _Patient(dedented.split("\n"))
    if meant is not None:
        patient.lines = meant.code.decode("utf-8", "replace").split("\n")
        patient.faults += meant.faults
    patient.mend()
    ordered = sorted(patient.faults, key=lambda fault: fault.line)
    return Diagnosis(
        "\n".join(patient.lines), tuple(ordered), frozenset(patient.unread), patient.renamed
    )


def words_of(text: str) -> frozenset[str]:
    """Return the words and the strings of a text."""
    strings = (first or second for first, second in _QUOTED.findall(text))
    return frozenset([*_WORD.findall(text), *strings])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _as_member(text: str) -> str:
    """Return a module in which ``text`` stands in a class."""
    return "class _:\n" + textwrap.indent(text, "    ") + "\n    pass"


def _as_entry(text: str) -> str:
    return f"_ = {{\n{text}\n}}"


def _as_value(text: str) -> str:
    return f"_ = [\n{text}\n]"


@dataclass(slots=True)
class _Patient:
    """Lines that are mended one by one."""

    lines: list[str]
    faults: list[SyntaxFault] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    ends: float = field(default_factory=lambda: thread_time() + _SECONDS_TO_SPEND)

    def mend(self) -> None:
        """Make the lines legal."""
        self._blank_surroundings()
        for first, last in self._chunks(0, len(self.lines), 0):
            if self._gives_up_late(first, len(self.lines)):
                break
            if not is_legal(self._text(first, last)):
                self._mend_chunk(first, last)
        for _ in range(_ROUNDS):
            if thread_time() > self.ends + _SECONDS_TO_SPEND:
                break
            why = why_illegal("\n".join(self.lines))
            if why is None:
                return
            # Legal alone, and not together: the line that the interpreter names goes.
            row = min(max(why[0], 1), len(self.lines)) - 1
            row = next((at for at in range(row, -1, -1) if self.lines[at].strip()), row)
            self._give_up(row, row + 1, why[1])
        self.unread |= words_of("\n".join(self.lines))
        self.lines = ["" for _ in self.lines]

    def _gives_up_late(self, first: int, last: int) -> bool:
        """Give up on lines where the time is over; return whether it is."""
        if thread_time() <= self.ends:
            return False
        if any(_is_code(line) for line in self.lines[first:last]):
            self._give_up(first, last, "it is far from being legal")
        return True

    def _text(self, first: int, last: int) -> str:
        return dedent("\n".join(self.lines[first:last]))

    # --- lines that are no code -------------------------------------------------------------------

    def _blank_surroundings(self) -> None:
        """Blank fences, thinking and prose at the outermost level, where code is illegal."""
        run: list[int] = []
        for row, line in enumerate(self.lines):
            if not line.strip() or _indent(line) or line.startswith("#"):
                continue
            if thread_time() > self.ends:
                return
            message = LEFTOVERS.leftover(line)
            if message is None or is_legal(line):
                continue
            self._blank(row, row + 1)
            # Lines of prose one below the other are one fault.
            if not any(at in run for at in (row - 1, row - 2)):
                self.faults.append(SyntaxFault(row + 1, message, "ARTIFACT"))
            run.append(row)

    def _blank(self, first: int, last: int) -> None:
        self.unread |= words_of("\n".join(self.lines[first:last]))
        for row in range(first, last):
            self.lines[row] = ""

    def _give_up(self, first: int, last: int, why: str) -> None:
        """Blank lines of which nothing can be made, with a fault."""
        row = next((at for at in range(first, last) if self.lines[at].strip()), first)
        shown = self.lines[row].strip()[:_SHOWN]
        message = LEFTOVERS.leftover(self.lines[row])
        if message is not None:
            self.faults.append(SyntaxFault(row + 1, message, "ARTIFACT"))
        else:
            reason = f" ({why})" if why else ""
            message = f"not legal Python: {in_quotes(shown)}{reason}"
            self.faults.append(SyntaxFault(row + 1, message))
        self._blank(first, last)

    # --- declarations -----------------------------------------------------------------------------

    def _chunks(self, first: int, last: int, indent: int) -> list[tuple[int, int]]:
        """Return the parts that begin at an indentation, up to the next such part."""
        starts: list[int] = []
        is_decorated = False
        for row in range(first, last):
            line = self.lines[row]
            if not line.strip() or _indent(line) > indent or line.lstrip()[0] in ")]}":
                continue
            if not is_decorated:
                starts.append(row)
            is_decorated = line.lstrip().startswith(("@", "#"))
        starts = _outside_of_docstrings(self.lines, starts)
        if starts and starts[0] > first:
            starts[0] = first
        return list(zip(starts, [*starts[1:], last], strict=False))

    def _mend_chunk(self, first: int, last: int) -> None:
        start = next(
            (
                at
                for at in range(first, last)
                if _is_code(self.lines[at]) and self.lines[at][:1] != "@"
            ),
            first,
        )
        line = self.lines[start]
        if _HEAD.match(line):
            self._mend_class(start, last)
        elif found := _CALL.match(line):
            self._mend_call(start, last, is_dict=found["form"] == "TypedDict")
        elif line[:1] in {'"', "'"} and self._mend_entries(start, last):
            return
        else:
            self._mend_member(start, last)

    def _mend_class(self, first: int, last: int) -> None:
        """Mend a class: its first line, then each member alone."""
        end = first + 1
        while end < last and not self.lines[end - 1].rstrip().endswith(":") and end - first < 8:
            if open_brackets("\n".join(self.lines[first:end]))[0]:
                end += 1
            else:
                break
        head = "\n".join(self.lines[first:end])
        if not is_legal(f"{head}\n    pass"):
            self._mend_head(first, end)
        body = [row for row in range(end, last) if _is_code(self.lines[row])]
        if not body:
            name = (_CLASS_NAME.match(self.lines[first]) or {"name": ""})["name"]
            message = f"the code ends before {name!r} has a member: the answer was cut off there"
            self.faults.append(SyntaxFault(first + 1, message, in_member=False))
            self.lines[end - 1] += " pass"
            return
        indent = _indent(self.lines[body[0]])
        for start, stop in self._chunks(end, last, indent):
            if not _is_code_in(self.lines[start:stop]):
                continue
            if self._gives_up_late(start, last):
                break
            self._level(start, stop, indent)
            if not is_legal(_as_member(self._text(start, stop))):
                self._mend_member(start, stop, indent)
        if not any(_is_code(self.lines[row]) for row in body):
            self.lines[body[0]] = " " * indent + "pass"

    def _mend_head(self, first: int, end: int) -> None:
        """Write the first line of a class as it was meant."""
        line = " ".join(part.strip() for part in self.lines[first:end])
        found = _CLASS_NAME.match(line)
        name = found["name"] if found else ""
        plain = without_comment(line)
        candidates = [
            (f"{plain}:", f"a ':' is missing after {in_quotes(plain[-40:])}"),
            (
                f"{plain.removesuffix(':')}):",
                f"a ')' is missing after {in_quotes(plain[-40:].rstrip(':'))}",
            ),
            (f"{plain.rstrip('{ ')}:", "a class begins with ':' in Python, not with '{'"),
        ]
        for text, message in candidates:
            if is_legal(f"{text}\n    pass"):
                self.faults.append(SyntaxFault(first + 1, message, in_member=False))
                break
        else:
            stand_in = f"Illegal{len(self.renamed)}"
            text = f"class {stand_in}:"
            bases = re.search(r"\([\w., ]*\)", plain)
            if bases is not None:
                text = f"class {stand_in}{bases[0]}:"
            if name and not name.isidentifier():
                message = f"{in_quotes(name)} is no legal name of a class"
                self.faults.append(
                    SyntaxFault(first + 1, message, "INVALID_IDENTIFIER", in_member=False)
                )
                self.renamed[stand_in] = name
            else:
                message = f"not legal Python: {in_quotes(line[:_SHOWN])}"
                self.faults.append(SyntaxFault(first + 1, message, in_member=False))
                text = text.replace(stand_in, name or stand_in)
                if not is_legal(f"{text}\n    pass"):
                    text = f"class {stand_in}:"
        self.lines[first] = text
        for row in range(first + 1, end):
            self.lines[row] = ""

    def _level(self, first: int, last: int, indent: int) -> None:
        """Indent a member as its class does where it alone is indented otherwise."""
        start = next(row for row in range(first, last) if _is_code(self.lines[row]))
        rows = [row for row in range(first, last) if _is_code(self.lines[row])][:_MANY]
        own = _indent(self.lines[start])
        if own < indent:
            message = f"this line is indented by {own} blanks, and the class by {indent}"
            self.faults.append(SyntaxFault(start + 1, message))
            self.lines[start] = " " * indent + self.lines[start].lstrip()
        for row, following in pairwise(rows):
            opened = open_brackets("\n".join(self.lines[start : row + 1]))[0]
            is_deeper = _indent(self.lines[following]) > indent
            is_header = without_comment(self.lines[row]).endswith(":")
            looks_like_member = re.match(r"[ \t]+\w+[ \t]*:", self.lines[following])
            if is_deeper and not opened and not is_header and looks_like_member:
                wrong = _indent(self.lines[following])
                message = f"this line is indented by {wrong} blanks, and the class by {indent}"
                self.faults.append(SyntaxFault(following + 1, message))
                self.lines[following] = " " * indent + self.lines[following].lstrip()

    # --- members ----------------------------------------------------------------------------------

    def _mend_member(self, first: int, last: int, indent: int = 0) -> None:
        """Mend one member, or blank it."""
        groups = self._chunks(first, last, indent)
        if len(groups) > 1:
            for start, stop in groups:
                if self._gives_up_late(start, last):
                    break
                if not is_legal(_as_member(self._text(start, stop))):
                    self._mend_member(start, stop, indent)
            return
        while last > first + 1 and not _is_code(self.lines[last - 1]):
            last -= 1
        text = self._text(first, last)
        is_last = not any(_is_code(line) for line in self.lines[last:])
        if thread_time() < self.ends and self._try_slips(
            first, text, " " * indent, is_last=is_last
        ):
            return
        why = why_illegal(_as_member(text))
        if is_last and last == len(self.lines) and _is_cut(text):
            self.faults.append(_cut_fault(first + text.rstrip().count("\n") + 1, text))
            self._blank(first, last)
            return
        # The first line may be right, and only what stands below it wrong.
        top = self.lines[first]
        if 1 < last - first <= _MANY and is_legal(_as_member(top.strip())):
            self._mend_member(first + 1, last, indent)
            return
        self._give_up(first, last, why[1] if why else "")

    def _try_slips(self, first: int, text: str, indent: str, *, is_last: bool) -> bool:
        for slip in slips(text, len(self.renamed)):
            if thread_time() > self.ends:
                return False
            if slip.text.count("\n") != text.count("\n") or not is_legal(_as_member(slip.text)):
                continue
            row = first + slip.row + 1
            is_cut = is_last and "missing after" in slip.message and _is_cut(text)
            fault = SyntaxFault(row, slip.message, slip.code)
            self.faults.append(_cut_fault(row, text) if is_cut else fault)
            for at, line in enumerate(slip.text.split("\n"), first):
                self.lines[at] = indent + line if line.strip() else ""
            if slip.renamed:
                self.renamed[slip.renamed[0]] = slip.renamed[1]
            return True
        return False

    # --- entries of calls -------------------------------------------------------------------------

    def _mend_call(self, first: int, last: int, *, is_dict: bool) -> None:
        """Mend ``X = TypedDict("X", {...})`` or ``X = Literal[...]``: each entry alone."""
        opener = "{" if is_dict else "["
        end = next(
            (
                row + 1
                for row in range(first, last)
                if without_comment(self.lines[row]).endswith(opener)
            ),
            None,
        )
        if end is None:
            self._mend_member(first, last)
            return
        stop = next(
            (row for row in range(end, last) if self.lines[row].strip()[:1] in {"}", "]", ")"}),
            last,
        )
        self._mend_entries(end, stop, is_dict=is_dict)
        if is_legal(self._text(first, last)):
            return
        opened, _ = open_brackets("\n".join(self.lines[first:stop]))
        closing = "".join({"(": ")", "[": "]", "{": "}"}[mark] for mark in reversed(opened))
        tail = "".join(line.strip() for line in self.lines[stop:last])
        row = max((at for at in range(first, stop) if self.lines[at].strip()), default=first)
        if tail.replace(",", "") != closing:
            missing = closing if not tail else closing[len(tail.replace(",", "")) :]
            message = f"{in_quotes(missing or closing)} is missing at the end of the declaration"
            self.faults.append(SyntaxFault(row + 1, message, in_member=False))
        for at in range(stop, last):
            self.lines[at] = ""
        self.lines[row] = without_comment(self.lines[row]) + closing

    def _mend_entries(self, first: int, last: int, *, is_dict: bool | None = None) -> bool:
        """Mend lines that are entries; return whether they are any."""
        rows = [row for row in range(first, last) if _is_code(self.lines[row])]
        if not rows:
            return True
        if is_dict is None:
            is_dict = (
                re.match(r"[ \t]*(\"[^\"\n]*\"|'[^'\n]*')[ \t]*:", self.lines[rows[0]]) is not None
            )
            legal = _as_entry if is_dict else _as_value
            if not any(is_legal(legal(self.lines[row])) for row in rows):
                return False
        legal = _as_entry if is_dict else _as_value
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            if self._gives_up_late(row, last):
                break
            line = self.lines[row]
            if not is_legal(legal(line)):
                self._mend_entry(row, is_dict=is_dict)
                line = self.lines[row]
            plain = without_comment(line)
            if plain and not plain.endswith(",") and following is not None:
                self.lines[row] = f"{plain},{line[len(plain) :]}"
                message = f"a ',' is missing after {in_quotes(plain.strip()[-40:])}"
                self.faults.append(SyntaxFault(row + 1, message))
        return True

    def _mend_entry(self, row: int, *, is_dict: bool) -> None:
        """Mend one entry, or blank it."""
        line = self.lines[row]
        legal = _as_entry if is_dict else _as_value
        plain = without_comment(line).rstrip(",")
        tries = [
            (f'{plain}",', "a quotation mark is missing in this line"),
            (
                re.sub(r'^([ \t]*)(?=[^"\s])', r'\1"', plain) + ",",
                "a quotation mark is missing in this line",
            ),
            (re.sub(r'"[ \t]+"', '": "', plain) + ",", "a ':' is missing in this line"),
            (
                re.sub(r'([^"\s])[ \t]*:[ \t]*"', r'\1": "', plain, count=1) + ",",
                "a quotation mark is missing in this line",
            ),
            (
                re.sub(r':[ \t]*(?=[^"\s])', ': "', plain, count=1) + ",",
                "a quotation mark is missing in this line",
            ),
            (
                plain.translate({0x201C: '"', 0x201D: '"'}) + ",",
                "typographic quotation marks stand where straight ones must",
            ),
            (re.sub(r"//", "#", line), "a comment begins with '#' in Python, not with '//'"),
            (re.sub(r"\]\",?$", '",', plain), "this ']' is one too many"),
        ]
        for text, message in tries:
            if text.rstrip(",") != plain and is_legal(legal(text)):
                self.lines[row] = text
                self.faults.append(SyntaxFault(row + 1, message))
                return
        why = why_illegal(legal(line))
        self._give_up(row, row + 1, why[1] if why else "")


def _is_code_in(lines: list[str]) -> bool:
    return any(map(_is_code, lines))


def _outside_of_docstrings(lines: list[str], starts: list[int]) -> list[int]:
    """Return the starts that do not stand inside of a string of several lines."""
    kept: list[int] = []
    end = -1
    for row in starts:
        if row <= end:
            continue
        kept.append(row)
        line = lines[row].strip()
        mark = line[:3]
        if mark in {'"""', "'''"} and line.count(mark) == 1:
            close = next((at for at in range(row + 1, len(lines)) if mark in lines[at]), row)
            end = close
    return kept


def _is_cut(text: str) -> bool:
    """Return whether a member ends in the middle."""
    last = text.rstrip()
    opened, is_wrong = open_brackets(last)
    is_open = bool(opened) and not is_wrong
    line = last.rpartition("\n")[2]
    return is_open or line.endswith(("=", "|", ",", ".", "(", "[", ":")) or line.count('"') % 2 == 1


def _cut_fault(line: int, text: str) -> SyntaxFault:
    ending = text.rstrip().rpartition("\n")[2].strip()
    where = f"the code ends in the middle of {in_quotes(ending[-60:])}"
    return SyntaxFault(line, f"{where}: the answer was cut off there", in_member=False)
