"""The shipped kind for catalogues of gettext: each ``msgstr`` is asked from its ``msgid``."""

import gettext
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import polib

from pytest_regen.errors import RegionError, UsageError
from pytest_regen.kinds import catalogues, messages
from pytest_regen.kinds.catalogues import Catalogues, Original, language_of
from pytest_regen.regions import Span
from pytest_regen.regions.base import defect, has_crlf, line_at, refuse_unknown, splice
from pytest_regen.text import quoted
from pytest_regen.units.kind import Finding, Unit, extract_text

_STRING: Final = r'"(?:[^"\\\r\n]|\\.)*"'
# A text with all its plural forms.
_MSGSTR: Final = re.compile(
    rf"^[ \t]*(?P<all>msgstr(?:\[\d+\])?[ \t]*{_STRING}(?:\s*{_STRING})*"
    rf"(?:\s*msgstr\[\d+\][ \t]*{_STRING}(?:\s*{_STRING})*)*)",
    re.MULTILINE,
)
_MSGID: Final = re.compile(r"^[ \t]*msgid\b", re.MULTILINE)
_LANGUAGE: Final = re.compile(rb'^"Language: *([\w@-]+)', re.MULTILINE)
_FLAGS: Final = re.compile(r"^#,(?P<flags>[^\r\n]*)(?P<end>\r?\n)", re.MULTILINE)
_CHARSET: Final = re.compile(r"(?<=text/plain; )charset=([\w.:-]+)")
# The last one stands in templates.
_READABLE: Final = frozenset({"utf-8", "utf8", "ascii", "us-ascii", "charset"})
_HINT: Final = "correct that line; msgfmt --check says more"
_SEEN: Final = 1001
# A form for no more numbers than these may say them in words; ``msgfmt --check`` draws the line
# there, too.
_FEW: Final = 5


class _Entry(NamedTuple):
    """One entry of a file, and where its ``msgstr`` stands."""

    po: polib.POEntry
    span: Span
    lead: str
    """What stands in the span before ``msgstr``: of a fuzzy entry all of it, without the flag."""


class _File(NamedTuple):
    entries: Mapping[str, _Entry]
    """By name."""
    forms: Sequence[Sequence[int]]
    """Numbers of each plural form."""


@lru_cache(maxsize=8)
def _read(text: str) -> _File:
    """Return what a file holds.

    Raises:
        RegionError: it is no ``.po`` file, or has an entry twice.
    """
    try:
        catalogue = polib.pofile(f"{text}\n")
    except OSError as error:
        place = re.search(r"\(line (\d+)\)", str(error))
        raise defect(int(place[1]) if place else 1, "gettext cannot read this", _HINT) from None
    charset = _CHARSET.search(text)
    if charset and charset[1].lower() not in _READABLE:
        line = line_at(text, charset.start())
        raise defect(line, f"the header has {charset[0]}: write charset=UTF-8 there", _HINT)
    # polib knows the line of an entry, not where its text begins in the file.
    starts = [0, *(end.end() for end in re.finditer(r"\r\n|\r|\n", text))]
    entries: dict[str, _Entry] = {}
    for entry in catalogue:
        if entry.obsolete or not entry.msgid.strip():
            continue
        start = starts[max(entry.linenum - 1, 0)]
        msgstr = _MSGSTR.search(text, start)
        # polib takes an entry without a msgstr for a part of the next one.
        if msgstr is None or len(_MSGID.findall(text, start, msgstr.start())) > 1:
            raise defect(entry.linenum, "an entry has no msgstr", _HINT)
        at = msgstr.start("all")
        line = bisect_right(starts, at)
        name = entry.msgid if entry.msgctxt is None else f"{entry.msgctxt}|{entry.msgid}"
        if name in entries:
            first = entries[name].span.line
            raise defect(line, f"a second entry of {quoted(name)} (first: line {first})", _HINT)
        # A unit is one text: the forms of a plural are asked for, and judged, together.
        forms = [form for _, form in sorted(entry.msgstr_plural.items())]
        translation = json.dumps(forms, ensure_ascii=False) if forms else entry.msgstr
        # gettext shows neither at run time, so they are as good as missing.
        if entry.fuzzy or not all(map(str.strip, forms)):
            translation = ""
        lead_at = start if entry.fuzzy else at
        span = Span(translation, line, lead_at, msgstr.end("all"))
        entries[name] = _Entry(entry, span, _FLAGS.sub(_without_fuzzy, text[lead_at:at]))
    return _File(entries, _forms(catalogue.metadata.get("Plural-Forms", "")))


def _without_fuzzy(line: re.Match[str]) -> str:
    flags = [flag for flag in map(str.strip, line["flags"].split(",")) if flag != "fuzzy"]
    return f"#, {', '.join(flags)}{line['end']}" if flags else ""


@lru_cache
def _forms(header: str) -> Sequence[Sequence[int]]:
    """Return the numbers that each plural form is for."""
    for text in (header, "nplurals=2; plural=n != 1"):  # what gettext falls back to
        rule = re.search(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]+)", text)
        with suppress(ValueError, ArithmeticError):
            if rule is not None:
                choose = gettext.c2py(rule[2].strip())
                forms: list[list[int]] = [[] for _ in range(int(rule[1]))]
                for number in range(_SEEN):
                    if (form := choose(number)) < len(forms):
                        forms[form].append(number)
                return forms
    return ()


class Entries:
    """Every entry of a ``.po`` file is a unit, by its ``msgid``: ``Open``, or ``menu|Open``.

    What stands before the bar is its ``msgctxt``. The text of an entry with plural forms is a JSON
    array of them. Obsolete entries are no units; one that is fuzzy, or lacks a form, has no text.
    """

    def find(self, text: str) -> dict[str, Span]:
        """Return the units of ``text`` by name."""
        return {name: entry.span for name, entry in _read(text).entries.items()}

    def why_empty(self, text: str, name: str) -> str:
        """Return why an entry has no text, where one may stand there; empty if none does."""
        is_fuzzy = _read(text).entries[name].po.fuzzy
        return "it is marked fuzzy; if its text is right, delete that mark" if is_fuzzy else ""

    def replace(self, text: str, texts: Mapping[str, str]) -> str:
        """Return ``text`` with other translations; an entry that was fuzzy is so no longer."""
        entries = _read(text).entries
        refuse_unknown(texts, entries)
        edits = []
        for name, new in texts.items():
            entry = entries[name]
            if new == entry.span.text:
                continue
            written = polib.POEntry(msgid="x", msgstr=new)
            if entry.po.msgid_plural:
                forms = dict(enumerate(_read_forms(new)))
                written = polib.POEntry(msgid="x", msgid_plural="x", msgstr_plural=forms)
                if not forms:
                    raise RegionError(
                        f"{quoted(new)[:80]} is not a JSON array of plural forms",
                        hint='write a string for each form: ["%d file", "%d files"]',
                    )
            # polib wraps lines as the tools of gettext do.
            # From `msgstr` on, because the entry was made for its writing alone.
            lines = str(written).rstrip("\n").partition("\nmsgstr")[1:]
            new_lines = "".join(lines)[1:].replace("\n", "\r\n" if has_crlf(text) else "\n")
            edits.append((entry.span.start, entry.span.end, entry.lead + new_lines))
        return splice(text, edits)


def _read_forms(text: str) -> list[str]:
    """Return the plural forms in the text of a unit; none if it is no array of strings."""
    try:
        forms = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    are_texts = isinstance(forms, list) and all(isinstance(form, str) for form in forms)
    return forms if are_texts else []


class Gettext(Catalogues):
    """Translations of ``.po`` files, each made from the ``msgid`` of its entry."""

    region = Entries()
    original = "the msgid"
    title = "translations of gettext"

    def __init__(
        self,
        targets: Sequence[str],
        source: str = "en",
        *,
        style: str = "",
        keep: Sequence[str] = (),
    ) -> None:
        """Describe the catalogues of a project; ``source`` is the language of the msgids."""
        super().__init__(targets, style, keep)
        self.source = source.replace("_", "-")

    def languages(self, file: Path) -> tuple[str, str]:
        """Return the tag that the path has, or else the header."""
        language = language_of(file)
        # Django's path names the language, other projects say it in the header alone.
        if language is None and file.is_file():
            header = _LANGUAGE.search(file.read_bytes())
            language = header[1].decode().replace("_", "-") if header else ""
        return self.source, language or ""

    def claims(self, file: Path) -> bool:
        """Return whether a file holds a translation: that of the msgids' own language does not."""
        source, language = self.languages(file)
        return language not in {"", source}

    def units(self, file: Path) -> Iterable[str]:
        """Return the names of the entries, which tools of gettext take from the code."""
        if not file.exists():
            raise UsageError(
                f"{file.name} is not there: {file}",
                why="tools of gettext write a new catalogue with the texts of the code",
                hint=catalogues.NEW_CATALOGUE,
            )
        return tuple(self._read(file).entries)

    def inputs(self, unit: Unit) -> Mapping[str, str]:
        """Return what a translation was made from: the text, and what is said about it."""
        entry = self._read(unit.path).entries.get(unit.name)
        if entry is None:
            return {"its name": unit.name}
        return {
            "the msgid": entry.po.msgid,
            "the plural": entry.po.msgid_plural,
            "its note": entry.po.comment,
        }

    def prompt(self, unit: Unit) -> str:
        """Return what is asked for."""
        file = self._read(unit.path)
        entry = file.entries[unit.name]
        lines = self.ask(unit, Original(entry.po.msgid, entry.po.comment))
        if entry.po.msgid_plural:
            lines += [
                f"Text for several: {quoted(entry.po.msgid_plural)}",
                f"Answer with a JSON array of {len(file.forms)} strings, the plural forms:",
            ]
            for index, numbers in enumerate(file.forms):
                some = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
                lines.append(f"form {index}: for {some or 'other numbers'}")
        return "\n".join(lines)

    def extract(self, reply: str, unit: Unit) -> str:
        """Return the string of a reply, or the array of its plural forms."""
        entry = self._read(unit.path).entries[unit.name]
        if not entry.po.msgid_plural:
            return catalogues.read_reply(reply, entry.po.msgid)
        text = extract_text(reply).strip()
        forms = [catalogues.with_blanks(form, entry.po.msgid) for form in _read_forms(text)]
        return json.dumps(forms, ensure_ascii=False) if forms else text

    def check(self, unit: Unit) -> Iterator[Finding]:
        """Yield what is wrong with a translation."""
        file = self._read(unit.path)
        entry = file.entries.get(unit.name)
        if entry is None:
            return
        if not entry.po.msgid_plural:
            yield from self._check(entry, entry.po.msgid, unit)
            return
        forms = _read_forms(unit.text)
        if len(forms) != len(file.forms):
            yield "PLACEHOLDER", f"has {len(forms)} plural forms, the language {len(file.forms)}"
            return
        for form, numbers in zip(forms, file.forms, strict=True):
            is_rare = len(numbers) <= _FEW
            # Slovenian has a form for 1, 101, 201, …: it needs the number, and so the plural.
            source = entry.po.msgid if 1 in numbers and is_rare else entry.po.msgid_plural
            yield from self._check(entry, source, replace(unit, text=form), is_rare=is_rare)

    def _check(
        self, entry: _Entry, source: str, unit: Unit, *, is_rare: bool = False
    ) -> Iterator[Finding]:
        for place, has in (("beginning", str.startswith), ("end", str.endswith)):
            if has(source, "\n") != has(unit.text, "\n"):
                yield "LENGTH", f"differs from the msgid in the line break at its {place}"
        flag = next(filter(messages.FORMATS.__contains__, entry.po.flags), "")
        plural = entry.po.msgid_plural or source
        original = Original(source, "", flag, plural, may_lack_count=is_rare)
        yield from self.compare(original, unit)

    def _read(self, file: Path) -> _File:
        return _read(file.read_bytes().decode("utf-8"))
