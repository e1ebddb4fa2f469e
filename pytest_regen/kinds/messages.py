"""What a string of a user interface holds beside words: placeholders, tags, ICU messages.

Two texts are compared for what a program reads in them, not for how they are written: named
placeholders may move and repeat, ``%s`` may not change its order, the branches of a plural are
those of each language.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Final

_NAMED: Final = re.compile(
    r"\$t\([^()\n]*\)"  # i18next: another text
    r"|\{\{[^{}\n]*\}\}|\{\s*[\w.$@-]+(?:\[[\w.]+\])*(?:![rsa])?(?::[^{}\n]*)?\s*\}"
    r"|%\([^()\n]*\)[-+0#]*\d*(?:\.\d+)?[a-zA-Z]"  # Python
    r"|\{\s*[\w.]+\s*,\s*(?:number|date|time|spellout|ordinal|duration|list)\b[^{}\n]*\}"
)
_PRINTF: Final = (
    r"%(?:(?P<number>[1-9]\d?)\$)?[-+0#]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?(?P<type>[sdifuxXcge@])"
)
_IN_ORDER: Final = re.compile(rf"%%|\{{\}}|(?<![%\d]){_PRINTF}(?![A-Za-z\u00c0-\u024f])")
_IN_ORDER_LOOSE: Final = re.compile(rf"%%|\{{\}}|{_PRINTF}")
"""As programs read it: letters and digits may touch a placeholder, as in «%skart»."""
_PERCENT: Final = re.compile(
    r"%(?:\((?P<name>[^()]*)\))?[-+ 0#]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[hlL]?"
    r"(?P<type>[diouxXeEfFgGcrsa%])?"
)
"""As Python formats it."""
_COUNT: Final = re.compile(r"(?:%\(|\{{1,2})(?:count|n|num|number)(?:,\w+)?(?:\}{1,2}|\)[a-z])")
"""The number that the forms of a plural are for."""
_ALL: Final = re.compile(r"(?s).*")
_NONE: Final = re.compile(r"(?!)")
_TAG: Final = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w.:-]*|\d+)(?P<attributes>(?:\s[^<>]*)?)(?P<alone>/?)>"
)
_LINK: Final = re.compile(r"(?:href|src)\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)")
_ICU: Final = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal)\s*,")
_ICU_NAME: Final = re.compile(r"\s*([\w.]+)\s*")
_ICU_CASE: Final = re.compile(r"\s*(=\d+|[\w-]+)\s*\{")
_ICU_TYPE: Final = re.compile(r",\s*([\w.]+)\s*")
_ICU_QUOTE: Final = re.compile(r"'(?:[{}#|][^']*(?:'|\Z)|')?")
"""An apostrophe quotes only what has a meaning; two are one."""
_OFFSET: Final = re.compile(r"\s*offset:\s*\d+")
_BLANKS: Final = re.compile(r"\s*")
_VOID: Final = frozenset({"br", "hr", "img", "wbr", "input"})
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_NO_WORDS: Final = re.compile(r"&#?\w+;|https?://\S+|\S+@\S+")
_MAX_DEPTH: Final = 20


def placeholder_problem(
    source: str, text: str, *, may_lack_count: bool = False, may_add_count: bool = False
) -> str | None:
    """Return what is wrong with the placeholders of ``text``, or ``None``.

    Args:
        source: the text it was made from.
        text: the text.
        may_lack_count: whether the number may be a word: one form of several, for the number 1.
        may_add_count: whether a form may show the number though the source says it in words.
    """
    may_lack = _COUNT if may_lack_count else _NONE
    may_add = _COUNT if may_add_count else _NONE
    if problem := _compare(_find_named(source), _find_named(text), may_lack, may_add):
        return problem
    # The loose reading comes first: Polish writes «%skart», and a program reads `%s` there.
    want = _find_ordered(source, _IN_ORDER)
    for pattern in (_IN_ORDER_LOOSE, _IN_ORDER):
        have = _find_ordered(text, pattern)
        if Counter(sort for _, sort in want) == Counter(sort for _, sort in have):
            return None
    return _order_problem([text for text, _ in want], [text for text, _ in have])


def _compare(
    want: Mapping[str, str],
    have: Mapping[str, str],
    may_lack: re.Pattern[str],
    may_add: re.Pattern[str],
) -> str | None:
    """Return which arguments are gone or new, by what has to agree; the patterns say which may."""
    lacking = [want[key] for key in want if key not in have and not may_lack.fullmatch(key)]
    if lacking:
        return f"lacks {_join(lacking)}"
    added = [have[key] for key in have if key not in want and not may_add.fullmatch(key)]
    return f"has {_join(added)}, which the source has not" if added else None


def _order_problem(want: list[str], have: list[str]) -> str:
    return f"has {_join(have)} where the source has {_join(want)}: arguments come in this order"


def _find_named(text: str) -> dict[str, str]:
    """Return the named placeholders of a text as they are compared, and as they are written."""
    names = {}
    for match in _NAMED.finditer(text):
        # `{{ name }}` and `{{name}}` are one placeholder for every program that reads them.
        key = re.sub(r"\s+", "", match[0])
        if "," in key and not key.startswith(("$t(", "{{")):
            # The style of a date or number may differ by language.
            key = ",".join(key.strip("{}").split(",")[:2])
        names[key] = match[0]
    return names


def _find_ordered(text: str, pattern: re.Pattern[str]) -> list[tuple[str, tuple[int, str]]]:
    """Return the placeholders that stand for arguments by their order: number and type."""
    arguments: list[tuple[str, tuple[int, str]]] = []
    for match in pattern.finditer(_NAMED.sub(" ", text)):
        if match[0] != "%%":
            number = int(match["number"] or len(arguments) + 1)
            # C and Python take `%i` and `%d` for the same.
            sort = "d" if match["type"] == "i" else match["type"] or "{}"
            arguments.append((match[0], (number, sort)))
    return arguments


def format_problem(format_: str, source: str, text: str, *, may_lack: bool) -> str | None:
    """Return what is wrong with a text that Python formats; ``msgfmt --check`` agrees.

    Args:
        format_: the flag of gettext, one of ``FORMATS``.
        source: the text it was made from.
        text: the text.
        may_lack: whether arguments may be missing: a plural form for one number says it in words.
    """
    try:
        want, want_ordered = FORMATS[format_](source)
    except ValueError:
        return None  # What is wrong with the source is no fault of the translation.
    try:
        have, have_ordered = FORMATS[format_](text)
    except ValueError as error:
        return f"is no {format_}: {error}"
    if problem := _compare(want, have, _ALL if may_lack else _NONE, _NONE):
        return problem
    if may_lack and have_ordered == want_ordered[: len(have_ordered)]:
        return None
    return None if have_ordered == want_ordered else _order_problem(want_ordered, have_ordered)


def _read_percents(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the named arguments of ``text % …`` by what has to agree, and those in order."""
    named, ordered = {}, []
    for match in _PERCENT.finditer(text):
        type_ = match["type"]
        # Python raises at run time for a lone percent sign.
        if type_ is None:
            raise ValueError(f"{text[match.start() :][:3]!r} takes no argument; write %%")
        sort = "d" if type_ in "diouxX" else "f" if type_ in "eEfFgG" else type_
        if match["name"] is not None:
            named[f"{match['name']} {sort}"] = f"%({match['name']}){type_}"
        elif type_ != "%":
            ordered.append(f"%{sort}")
    return named, ordered


def _read_braces(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the named arguments of ``text.format(…)``, and those in order."""
    names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    return {name: f"{{{name}}}" for name in names if name}, ["{}" for name in names if not name]


FORMATS: Final = {"python-format": _read_percents, "python-brace-format": _read_braces}
"""What reads the arguments of a text, by the flag of gettext."""


def tag_problem(source: str, text: str, *, is_branched: bool = False) -> str | None:
    """Return what is wrong with the tags of ``text``, or ``None``.

    Args:
        source: the text it was made from.
        text: with tags in any order, as languages have theirs.
        is_branched: whether tags are in branches, of which each language has its own number.
    """
    (want, source_nests), (have, nests) = _read_tags(source, text)
    # A language with six cases has six copies of a tag.
    if is_branched:
        want, have = Counter(want.keys()), Counter(have.keys())
    if lacking := list((want - have).elements()):
        return f"lacks {_join(lacking)}"
    if added := [tag for tag in (have - want).elements() if tag not in want]:
        return f"has {_join(added)}, which the source has not"
    return "has tags that do not close in order" if source_nests and not nests else None


def tag_doubt(source: str, text: str) -> str | None:
    """Return what may be wrong with tags that ``tag_problem`` lets pass, or ``None``.

    A sentence of another order may need one tag twice.
    """
    (want, _), (have, _) = _read_tags(source, text)
    added = list((have - want).elements())
    return f"has {_join(added)} more often than the source" if added else None


def _read_tags(*texts: str) -> list[tuple[Counter[str], bool]]:
    """Return the tags of texts that belong together, and whether they close in order."""
    # ``<file>`` alone is a word for the reader: a name is one of tags where one of them ends.
    names = {
        match["name"]
        for text in texts
        for match in _TAG.finditer(text)
        if match["close"] or _is_alone(match) or match["name"].isdigit()
    }
    results = []
    for text in texts:
        tags: Counter[str] = Counter()
        open_: list[str] = []
        nests = True
        for match in _TAG.finditer(text):
            name = match["name"]
            if name not in names:
                continue
            is_void = name.lower() in _VOID
            if match["close"]:
                tags[f"</{name}>"] += 1
                nests &= is_void or (bool(open_) and open_.pop() == name)
                continue
            links = "".join(f" {link[0]}" for link in _LINK.finditer(match["attributes"]))
            is_alone = _is_alone(match)
            tags[f"<{name}{links}{'/' if is_alone and not is_void else ''}>"] += 1
            if not is_alone:
                open_.append(name)
        results.append((tags, nests and not open_))
    return results


def _is_alone(tag: re.Match[str]) -> bool:
    """Return whether a tag has no closing one."""
    ends = tag["alone"] or tag["attributes"].endswith("/")
    return bool(ends) or tag["name"].lower() in _VOID


class IcuError(ValueError):
    """A text is no ICU message."""


@dataclass(slots=True)
class IcuMessage:
    """What a program reads in an ICU message."""

    arguments: dict[str, str] = field(default_factory=dict)
    """Names, and types: ``plural``, ``select``, ``number`` or nothing."""
    cases: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    """The cases of each plural or select, by argument."""
    words: list[str] = field(default_factory=list)
    """The text between arguments, of all branches."""
    visible: set[str] = field(default_factory=set)
    """The arguments that a reader sees; a plural may only choose by one."""
    branches: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """What each plural says in each case, by argument."""


def is_icu(text: str) -> bool:
    """Return whether a text holds a plural or a select."""
    return _ICU.search(text) is not None


def read_icu(text: str) -> IcuMessage:
    """Return what an ICU message holds.

    Raises:
        IcuError: its braces do not pair, or a plural or select lacks its case ``other``.
    """
    reader = _IcuReader(text)
    reader.read_text(0)
    if reader.at < len(text):
        raise IcuError("closes a brace that was not opened")
    return reader.message


class _IcuReader:
    """Reads an ICU message; ``at`` is where it has come to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.message = IcuMessage()

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def read_text(self, depth: int) -> None:
        """Read the text of a message or of one case, to its end."""
        if depth > _MAX_DEPTH:
            raise IcuError(f"nests more than {_MAX_DEPTH} cases")
        start, words_ = self.at, []
        while (sign := self.text[self.at : self.at + 1]) not in {"", "}"}:
            if sign == "{":
                words_.append(self.text[start : self.at])
                self.at += 1
                self._read_argument(depth)
                start = self.at
            elif self._take(_ICU_QUOTE) is None:
                self.at += 1
        self.message.words += (*words_, self.text[start : self.at])

    def _read_argument(self, depth: int) -> None:
        name = self._take(_ICU_NAME)
        if name is None:
            raise IcuError("has a brace without the name of an argument")
        match = self._take(_ICU_TYPE)
        type_ = match[1] if match else ""
        is_choice = type_ in {"plural", "select", "selectordinal"}
        if is_choice:
            self._read_cases(name[1], type_, depth)
        elif type_:
            end = self.text.find("}", self.at)
            self.at = len(self.text) if end < 0 else end
        if self.text[self.at : self.at + 1] != "}":
            raise IcuError(f"does not close the argument {name[1]}")
        self.at += 1
        if not is_choice:
            self.message.visible.add(name[1])
            type_ = self.message.arguments.get(name[1]) or type_
        self.message.arguments[name[1]] = type_

    def _read_cases(self, name: str, type_: str, depth: int) -> None:
        """Read what an argument says in each case."""
        if self.text[self.at : self.at + 1] != ",":
            raise IcuError(f"lacks the cases of {name}")
        self.at += 1
        if type_ != "select":
            self._take(_OFFSET)
        cases: dict[str, str] = {}
        while case := self._take(_ICU_CASE):
            start = self.at
            self.read_text(depth + 1)
            if self.at >= len(self.text):
                raise IcuError(f"does not close the case {case[1]} of {name}")
            cases[case[1]] = self.text[start : self.at]
            self.at += 1
        if "other" not in cases:
            raise IcuError(f"lacks the case `other` of {name}")
        self._take(_BLANKS)
        self.message.cases.setdefault(name, []).append(frozenset(cases))
        if type_ != "select":
            self.message.branches.setdefault(name, []).append(cases)
            if any("#" in branch for branch in cases.values()):
                self.message.visible.add(name)


def icu_problem(source: IcuMessage, text: str, needed: frozenset[str] | None) -> str | None:
    """Return what is wrong with an ICU message, or ``None``.

    Args:
        source: the message it was made from.
        text: the message.
        needed: the plural categories that the language needs beside ``other``; ``None`` if they
            are not known.
    """
    note = "; an apostrophe before a brace quotes it: write two" if "'{" in text else ""
    try:
        message = read_icu(text)
    except IcuError as error:
        return f"is no ICU message: it {error}{note}"
    # A plural that only chose between words is no loss: another language may do without.
    needs = [n for n in source.arguments if n in source.visible or n not in source.branches]
    if lacking := [f"{{{name}}}" for name in needs if name not in message.arguments]:
        return f"lacks {_join(lacking)}{note}"
    if added := [f"{{{name}}}" for name in message.arguments if name not in source.arguments]:
        return f"has {_join(added)}, which the source has not"
    for name, type_ in source.arguments.items():
        problem = None
        if type_ == "select":
            problem = _select_problem(name, source, message)
        elif type_ == "plural" and name in message.branches:
            problem = _plural_problem(name, source, message, needed)
        elif type_ == "plural" and name in message.arguments and needed:
            problem = f"has no plural of {name}"
        if problem is not None:
            return problem
    return None


def _select_problem(name: str, source: IcuMessage, message: IcuMessage) -> str | None:
    want = sorted(frozenset().union(*source.cases[name]))
    for cases in message.cases.get(name, [frozenset()]):
        if sorted(cases) != want:
            return (
                f"has the cases {_join(sorted(cases))} of {name}; a program selects {_join(want)}"
            )
    return None


def _plural_problem(
    name: str, source: IcuMessage, message: IcuMessage, needed: frozenset[str] | None
) -> str | None:
    # `one` is apart: a source that lacks it does not need it in the translation.
    special = (needed or frozenset()) - {"one"}
    source_has_one = all("one" in _categories(branches) for branches in source.branches[name])
    for branches in message.branches[name]:
        have = _categories(branches)
        lacking = set()
        if needed and "one" in needed and source_has_one:
            lacking = {"one"} - have
        # One of its special cases says that the language was thought of; `other` does for the
        # remaining ones.
        if special.isdisjoint(have) and not _is_alike(branches):
            lacking |= special
        if lacking:
            return f"lacks the plural {_join(sorted(lacking))} of {name}, which the language has"
    if name in source.visible and name not in message.visible:
        return f"does not show the number {name}"
    return None


def icu_doubt(source: IcuMessage, text: str, categories: frozenset[str]) -> str | None:
    """Return what may be wrong with an ICU message that ``icu_problem`` lets pass, or ``None``.

    A category that is not written falls back to ``other``, which may well be right there.

    Args:
        source: the message it was made from.
        text: the message.
        categories: of plurals that the language has beside ``other``.
    """
    message = read_icu(text)
    for name in source.branches:
        if source.arguments[name] != "plural":
            continue
        if name not in message.branches and categories:
            return f"has no plural of {name}"
        for branches in message.branches.get(name, ()):
            lacking = sorted(categories - _categories(branches))
            if lacking and not _is_alike(branches):
                return f"lacks the plural {_join(lacking)} of {name}, which the language has"
    return None


def _is_alike(branches: Mapping[str, str]) -> bool:
    """Return whether the cases of a plural say the same, but for the number."""
    texts = {re.sub(r"#|\{[^{}]*\}|\d+|\s+", "", branch).casefold() for branch in branches.values()}
    return len(branches) > 1 and len(texts) == 1


def _categories(cases: Iterable[str]) -> set[str]:
    """Return the cases of a plural, with the categories that exact numbers may stand for."""
    # Translators write `=1` where a program only counts single things.
    exact = {"=0": "zero", "=1": "one", "=2": "two"}
    return {exact.get(case, case) for case in cases}


def phrases(text: str) -> list[list[str]]:
    """Return the words of a text without what programs read in it; each case of a plural apart."""
    parts = [text]
    if is_icu(text):
        try:
            parts = read_icu(text).words
        except IcuError:
            return []
    for pattern in (_NAMED, _TAG, _IN_ORDER, _NO_WORDS):
        parts = [pattern.sub(" ", part) for part in parts]
    return [_WORD.findall(part) for part in parts]


def words(text: str) -> list[str]:
    """Return the words of a text without what programs read in it."""
    return [word for phrase in phrases(text) for word in phrase]


def _join(names: list[str]) -> str:
    return ", ".join(names) or "none"
