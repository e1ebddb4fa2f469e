"""What a string of a user interface holds beside words: placeholders, tags, ICU messages.

Two texts are compared for what a program reads in them, not for how they are written: named
placeholders may move and repeat, ``%s`` may not change its order, the branches of a plural are
those of each language.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Final

from pytest_regen.validation.issues import Severity

Problem = tuple[Severity, str]
"""How bad it is, and what a text has or lacks, as a sentence without a subject."""
Arguments = tuple[Mapping[str, str], list[str]]
"""Those with a name, as they are compared and as they are written; those without, in order."""

_NAMED: Final = re.compile(
    r"\{\{[^{}\n]*\}\}|\{\s*[\w.$@-]+(?:\[[\w.]+\])*(?:![rsa])?(?::[^{}\n]*)?\s*\}"
    r"|\{\s*[\w.]+\s*,\s*(?:number|date|time)\b[^{}\n]*\}"
    r"|%\([^()\n]*\)[-+0#]*\d*(?:\.\d+)?[a-zA-Z]"
)
_PRINTF: Final = (
    r"%(?:(?P<number>[1-9]\d?)\$)?[-+0#]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?(?P<type>[sdifuxXcge@])"
)
_APART: Final = re.compile(rf"%%|\{{\}}|(?<![%\d]){_PRINTF}(?![A-Za-z\u00c0-\u024f])")
_ANYWHERE: Final = re.compile(rf"%%|\{{\}}|{_PRINTF}")
# As Python formats it.
_PERCENT: Final = re.compile(
    r"%(?:\((?P<name>[^()]*)\))?[-+ 0#]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[hlL]?"
    r"(?P<type>[diouxXeEfFgGcrsa%])?"
)
# The number that the forms of a plural are for.
_COUNT: Final = re.compile(r"(?:%\(|\{{1,2})(?:count|n|num|number)(?:,\w+)?(?:\}{1,2}|\)[a-z])")
_TAG: Final = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w.:-]*|\d+)(?P<more>(?:\s[^<>]*)?/?)>")
_LINK: Final = re.compile(r"(?:href|src)\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)")
_VOID: Final = frozenset({"br", "hr", "img", "wbr", "input"})
_ICU: Final = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal)\s*,")
# An apostrophe quotes only what has a meaning; two are one.
_ICU_PART: Final = re.compile(r"'(?:[{}#|][^']*(?:'|\Z)|')?|[{}]|[^'{}]+")
_ICU_LABEL: Final = re.compile(r"\s*(?:offset:\s*\d+\s+)?(=\d+|[\w-]+)\s*")
_MAX_DEPTH: Final = 20
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_NO_WORDS: Final = re.compile(r"&#?\w+;|https?://\S+|\S+@\S+")


def placeholder_problem(
    source: str, text: str, flag: str = "", *, may_lack: bool = False, may_add: bool = False
) -> str | None:
    """Return what is wrong with the placeholders of ``text``, or ``None``.

    Args:
        source: the text it was made from.
        text: the text.
        flag: of gettext, one of ``FORMATS``; by default braces and percent signs both count.
        may_lack: whether the number may be a word: one form of several, for the number 1.
        may_add: whether a form may show the number though the source says it in words.
    """
    read = FORMATS.get(flag)
    try:
        want, want_ordered = read(source) if read else _read_plain(source, _APART)
    except ValueError:
        return None  # What is wrong with the source is no fault of the translation.
    # Polish writes «%skart», and a program reads `%s` there; «100 % de» alone is prose.
    pattern = _ANYWHERE if want_ordered else _APART
    try:
        have, have_ordered = read(text) if read else _read_plain(text, pattern)
    except ValueError as error:
        return f"is not valid {flag}: {error}"
    lacking = [key for key in want if key not in have]
    added = [key for key in have if key not in want]
    if may_lack:  # of what has a flag anything, as `msgfmt --check` decides
        lacking = [key for key in lacking if not read and not _COUNT.fullmatch(key)]
        want_ordered = want_ordered[: len(have_ordered)]
    if may_add:
        added = [key for key in added if not _COUNT.fullmatch(key)]
    if lacking:
        return f"lacks {_join(want[key] for key in lacking)}"
    if added:
        return f"has {_join(have[key] for key in added)}, which the source lacks"
    if have_ordered == want_ordered:
        return None
    ours, theirs = _join(have_ordered), _join(want_ordered)
    return f"has {ours} where the source has {theirs}: arguments come in this order"


def _read_plain(text: str, pattern: re.Pattern[str]) -> Arguments:
    named = {}
    for match in _NAMED.finditer(text):
        # `{{ name }}` and `{{name}}` are one placeholder for every program that reads them. The
        # style of a date or number may differ by language.
        named[re.sub(r"\s+|(?<=[a-z]),[^,]*\}$", "", match[0])] = match[0]
    arguments: list[tuple[int, str]] = []
    for match in pattern.finditer(_NAMED.sub(" ", text)):
        if match[0] != "%%":
            # C and Python take `%i` and `%d` for the same.
            sort = f"%{match['type']}".replace("i", "d") if match["type"] else "{}"
            arguments.append((int(match["number"] or len(arguments) + 1), sort))
    return named, [sort for _, sort in sorted(arguments)]


def _read_percents(text: str) -> Arguments:
    """Return the arguments of ``text % …``."""
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


def _read_braces(text: str) -> Arguments:
    """Return the arguments of ``text.format(…)``."""
    names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    return {name: f"{{{name}}}" for name in names if name}, ["{}" for name in names if not name]


FORMATS: Final[Mapping[str, Callable[[str], Arguments]]] = {
    "python-format": _read_percents,
    "python-brace-format": _read_braces,
}
"""What reads the arguments of a text, by the flag of gettext."""


def tag_problems(source: str, text: str, *, is_branched: bool = False) -> Iterator[Problem]:
    """Yield what is wrong with the tags of ``text``.

    Args:
        source: the text it was made from.
        text: with tags in any order, as languages have theirs.
        is_branched: whether tags are in branches, of which each language has its own number.
    """
    matches = [list(_TAG.finditer(words)) for words in (source, text)]
    # ``<file>`` alone is a word for the reader: a name is one of tags where one of them ends.
    names = {
        match["name"]
        for match in (*matches[0], *matches[1])
        if match["close"] or match["more"].endswith("/") or match["name"].isdigit()
    }
    want, have = Counter[str](), Counter[str]()
    for tags, counts in zip(matches, (want, have), strict=True):
        for match in tags:
            if match["name"] in names | _VOID:
                # Without what languages may change: titles, a slash at its end.
                links = "".join(f" {link[0]}" for link in _LINK.finditer(match["more"]))
                counts[f"<{match['close']}{match['name']}{links}>"] += 1
    if is_branched:  # A language with six cases has six copies of a tag.
        want, have = Counter(set(want)), Counter(set(have))
    if lacking := want - have:
        yield "error", f"lacks {_join(lacking.elements())}"
    elif added := [tag for tag in (have - want).elements() if tag not in want]:
        yield "error", f"has {_join(added)}, which the source lacks"
    elif more := have - want:  # A sentence of another order may need one tag twice.
        yield "warning", f"has {_join(more.elements())} more often than the source"


class IcuError(ValueError):
    """A text is no ICU message."""


@dataclass(slots=True)
class IcuMessage:
    """What a program reads in an ICU message."""

    arguments: dict[str, str] = field(default_factory=dict)
    """Names, and types: ``plural``, ``select``, ``number`` or nothing."""
    cases: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """What each plural or select says in each case beside arguments, by argument."""
    words: list[str] = field(default_factory=list)
    """The text between arguments, of all branches."""
    visible: set[str] = field(default_factory=set)
    """The arguments that a reader sees; a plural may only choose by one."""


def is_icu(text: str) -> bool:
    """Return whether a text holds a plural or a select."""
    return _ICU.search(text) is not None


def read_icu(text: str) -> IcuMessage:
    """Return what an ICU message holds.

    Raises:
        IcuError: its braces do not pair, or a plural or select lacks its case ``other``.
    """
    message = IcuMessage()
    # What stands in braces is a list; in each list, texts and lists take turns.
    # A stack, because hostile nesting would exhaust recursion.
    stack: list[list[Any]] = [[""]]
    for part in _ICU_PART.findall(text):
        if part == "{":
            stack.append([""])
            if len(stack) > 2 * _MAX_DEPTH:
                raise IcuError(f"nests more than {_MAX_DEPTH} cases")
        elif part != "}":
            stack[-1][-1] += part
        elif len(stack) == 1:
            raise IcuError("closes a brace that was not opened")
        else:
            inner = stack.pop()
            stack[-1] += [inner, ""]
    if len(stack) > 1:
        raise IcuError(f"does not close {{{stack[-1][0].strip()}")
    _collect(stack[0], message)
    return message


def _collect(pieces: Sequence[Any], message: IcuMessage) -> None:
    """Note what the text of a message, or of one case, holds."""
    message.words += pieces[::2]
    for head, *rest in pieces[1::2]:
        name, type_, label = (*map(str.strip, head.split(",", 2)), "", "")[:3]
        if not re.fullmatch(r"[\w.]+", name):
            raise IcuError("has a brace without the name of an argument")
        if type_ not in {"plural", "select", "selectordinal"}:
            if rest:
                raise IcuError(f"has braces inside of the argument {name}")
            message.visible.add(name)
            message.arguments.setdefault(name, type_)
            continue
        message.arguments[name] = type_
        cases = {}
        for words, inner in zip([label, *rest[1:-1:2]], rest[::2], strict=False):
            match = _ICU_LABEL.fullmatch(words)
            if match is None:
                raise IcuError(f"has a case of {name} without a name")
            cases[match[1]] = "".join(inner[::2])
            _collect(inner, message)
        if "other" not in cases:
            raise IcuError(f"lacks the case `other` of {name}")
        message.cases.setdefault(name, []).append(cases)
        if type_ != "select" and any("#" in case for case in cases.values()):
            message.visible.add(name)


def icu_problems(
    source: IcuMessage, text: str, categories: Collection[str] | None
) -> Iterator[Problem]:
    """Yield what is wrong with an ICU message.

    Args:
        source: the message it was made from.
        text: the message.
        categories: of plurals that the language has beside ``other``; ``None`` if they are not
            known.
    """
    note = "; an apostrophe before a brace quotes it: write two" if "'{" in text else ""
    try:
        message = read_icu(text)
    except IcuError as error:
        yield "error", f"is not an ICU message: it {error}{note}"
        return
    # A plural that only chose between words is no loss: another language may do without.
    counted = {"plural", "selectordinal"}
    plurals = {name for name, type_ in source.arguments.items() if type_ in counted}
    needed = source.arguments.keys() - (plurals - source.visible)
    if lacking := needed - message.arguments.keys():
        yield "error", f"lacks {_join(f'{{{name}}}' for name in sorted(lacking))}{note}"
    elif added := message.arguments.keys() - source.arguments.keys():
        names = _join(f"{{{name}}}" for name in sorted(added))
        yield "error", f"has {names}, which the source lacks"
    else:
        for name, type_ in source.arguments.items():
            if type_ == "plural":
                yield from _plural_problems(name, source, message, set(categories or ()))
            for cases in message.cases.get(name, [{}]) if type_ == "select" else ():
                want = sorted(set[str]().union(*source.cases[name]))
                if sorted(cases) != want:
                    ours = _join(sorted(cases))
                    yield (
                        "error",
                        f"has the cases {ours} of {name}; a program selects {_join(want)}",
                    )


def _plural_problems(
    name: str, source: IcuMessage, message: IcuMessage, categories: set[str]
) -> Iterator[Problem]:
    plurals = message.cases.get(name, [])
    if not plurals and categories:
        yield "error", f"has no plural of {name}"
    # What is not written falls back to `other`, which may well be right there. One of its special
    # cases says that the language was thought of; a source that lacks `one` needs none.
    special = categories - {"one"}
    source_has_one = all("one" in _categories(cases) for cases in source.cases[name])
    for cases in plurals:
        lacking = categories - _categories(cases)
        # The cases may say the same, but for the number.
        texts = {re.sub(r"#|\d+|\s+", "", text).casefold() for text in cases.values()}
        if lacking and (len(cases) == 1 or len(texts) > 1):
            is_wrong = special <= lacking if special else source_has_one
            severity: Severity = "error" if is_wrong else "warning"
            words = f"lacks the plural {_join(sorted(lacking))} of {name}, which the language has"
            yield severity, words
    if plurals and name in source.visible - message.visible:
        yield "error", f"does not show the number {name}"


def _categories(cases: Collection[str]) -> set[str]:
    """Return the cases of a plural, with the categories that exact numbers may stand for."""
    # Translators write `=1` where a program only counts single things.
    exact = {"=0": "zero", "=1": "one", "=2": "two"}
    return {exact.get(case, case) for case in cases}


def words(text: str) -> list[str]:
    """Return the words of a text without what programs read in it."""
    parts = [text]
    if is_icu(text):
        try:
            parts = read_icu(text).words
        except IcuError:
            return []
    for pattern in (_NAMED, _TAG, _APART, _NO_WORDS):
        parts = [pattern.sub(" ", part) for part in parts]
    return [word for part in parts for word in _WORD.findall(part)]


def _join(names: Collection[str] | Iterator[str]) -> str:
    return ", ".join(names) or "none"
