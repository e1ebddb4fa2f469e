"""What a string of a user interface holds beside words: placeholders, tags, ICU messages.

Two texts are compared for what a program reads in them, not for how they are written: named
placeholders may move and repeat, ``%s`` may not change its order, the branches of a plural are
those of each language.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Final

_NAMED: Final = re.compile(
    r"\$t\([^()\n]*\)"  # i18next: another text
    r"|\{\{[^{}\n]*\}\}|\{\s*[\w.$@-]+(?:\[[\w.]+\])*(?:![rsa])?(?::[^{}\n]*)?\s*\}"
    r"|%\([^()\n]*\)[-+0#]*\d*(?:\.\d+)?[a-zA-Z]"  # Python
    r"|\{\s*[\w.]+\s*,\s*(?:number|date|time|spellout|ordinal|duration|list)\b[^{}\n]*\}"
)
_IN_ORDER: Final = re.compile(
    r"%%|\{\}|(?<![%\d])%(?:(?P<number>[1-9]\d?)\$)?"
    r"[-+0#]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?(?P<type>[sdifuxXcge@])(?![A-Za-z\u00c0-\u024f])"
)
_IN_ORDER_LOOSE: Final = re.compile(
    _IN_ORDER.pattern.replace(r"(?![A-Za-z\u00c0-\u024f])", "").replace(r"(?<![%\d])", "")
)
"""As programs read it: letters and digits may touch a placeholder, as in «%skart»."""
_PERCENT: Final = re.compile(
    r"%(?:\((?P<name>[^()]*)\))?[-+ 0#]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[hlL]?"
    r"(?P<type>[diouxXeEfFgGcrsa%])?"
)
"""As Python formats it."""
_COUNT: Final = re.compile(r"(?:%\(|\{{1,2})(?:count|n|num|number)(?:,\w+)?(?:\}{1,2}|\)[a-z])")
"""The number that the forms of a plural are for."""
_TAG: Final = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w.:-]*|\d+)(?P<rest>(?:\s[^<>]*)?)(?P<alone>/?)>"
)
_LINK: Final = re.compile(r"(?:href|src)\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)")
_ICU: Final = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal)\s*,")
_ICU_NAME: Final = re.compile(r"\s*([\w.]+)\s*")
_ICU_CASE: Final = re.compile(r"\s*(=\d+|[\w-]+)\s*\{")
_ICU_TYPE: Final = re.compile(r",\s*([\w.]+)\s*")
_OFFSET: Final = re.compile(r"\s*offset:\s*\d+")
_VOID: Final = frozenset({"br", "hr", "img", "wbr", "input"})
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_CHOOSING: Final = frozenset({"plural", "select", "selectordinal"})
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
    want, have = _find_named(source), _find_named(text)
    if missing := [
        shown
        for key, shown in want.items()
        if key not in have and not (may_lack_count and _COUNT.fullmatch(key))
    ]:
        return f"lacks {_join(missing)}"
    if added := [
        shown
        for key, shown in have.items()
        if key not in want and not (may_add_count and _COUNT.fullmatch(key))
    ]:
        return f"has {_join(added)}, which the source has not"
    wanted = _find_ordered(source)
    problem = _order_problem(wanted, _find_ordered(text))
    if problem and _order_problem(wanted, _find_ordered(text, _IN_ORDER_LOOSE)) is None:
        return None
    return problem


def _find_named(text: str) -> dict[str, str]:
    """Return the named placeholders of a text as they are compared, and as they are written."""
    found = {}
    for match in _NAMED.finditer(text):
        key = re.sub(r"\s+", "", match[0])
        if "," in key and not key.startswith(("$t(", "{{")):
            key = ",".join(key.strip("{}").split(",")[:2])
        found[key] = match[0]
    return found


def _find_ordered(text: str, pattern: re.Pattern[str] = _IN_ORDER) -> list[tuple[int, str]]:
    """Return the placeholders that stand for arguments by their order: number and type."""
    return [
        (int(match["number"] or 0), match["type"] or "{}")
        for match in pattern.finditer(_NAMED.sub(" ", text))
        if match[0] != "%%"
    ]


def _order_problem(want: list[tuple[int, str]], have: list[tuple[int, str]]) -> str | None:
    if Counter(_number_arguments(want)) == Counter(_number_arguments(have)):
        return None
    shown_want, shown_have = (
        _join([_show_argument(*argument) for argument in found]) for found in (want, have)
    )
    return f"has {shown_have} where the source has {shown_want}: arguments come in this order"


def _number_arguments(found: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the arguments with their numbers: a text without numbers takes them in order."""
    return [
        (number or place, "d" if type_ == "i" else type_)
        for place, (number, type_) in enumerate(found, start=1)
    ]


def _show_argument(number: int, type_: str) -> str:
    if type_ == "{}":
        return type_
    return f"%{number}${type_}" if number else f"%{type_}"


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
        return None  # what is wrong with the source is no fault of the translation
    try:
        have, have_ordered = FORMATS[format_](text)
    except ValueError as error:
        return f"is no {format_}: {error}"
    if not may_lack and (missing := [shown for key, shown in want.items() if key not in have]):
        return f"lacks {_join(missing)}"
    if added := [shown for key, shown in have.items() if key not in want]:
        return f"has {_join(added)}, which the source has not"
    if have_ordered != (want_ordered[: len(have_ordered)] if may_lack else want_ordered):
        return (
            f"has {_join(have_ordered)} where the source has {_join(want_ordered)}:"
            " arguments come in this order"
        )
    return None


def _read_percents(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the named arguments of ``text % …`` by what has to agree, and those in order."""
    named, ordered = {}, []
    for match in _PERCENT.finditer(text):
        type_ = match["type"]
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
    names = _tag_names(source) | _tag_names(text)
    want, have = Counter(_tags(source, names)), Counter(_tags(text, names))
    if is_branched:
        want, have = Counter(want.keys()), Counter(have.keys())
    if missing := list((want - have).elements()):
        return f"lacks {_join(missing)}"
    if added := [tag for tag in (have - want).elements() if tag not in want]:
        return f"has {_join(added)}, which the source has not"
    if not _nests(text, names) and _nests(source, names):
        return "has tags that do not close in order"
    return None


def tag_doubt(source: str, text: str, *, is_branched: bool = False) -> str | None:
    """Return what may be wrong with tags that ``tag_problem`` lets pass, or ``None``.

    A sentence of another order may need one tag twice.
    """
    if is_branched:
        return None
    names = _tag_names(source) | _tag_names(text)
    added = Counter(_tags(text, names)) - Counter(_tags(source, names))
    return f"has {_join(list(added.elements()))} more often than the source" if added else None


def _tag_names(text: str) -> frozenset[str]:
    """Return the names of tags that are tags: ``<file>`` alone is a word for the reader."""
    return frozenset(
        match["name"]
        for match in _TAG.finditer(text)
        if match["close"] or _is_alone(match) or match["name"].isdigit()
    )


def _is_alone(tag: re.Match[str]) -> bool:
    """Return whether a tag has no closing one."""
    return bool(tag["alone"]) or tag["rest"].endswith("/") or tag["name"].lower() in _VOID


def _tags(text: str, names: frozenset[str]) -> Iterator[str]:
    for match in _TAG.finditer(text):
        if match["name"] not in names:
            continue
        if match["close"]:
            yield f"</{match['name']}>"
            continue
        links = "".join(f" {link[0]}" for link in _LINK.finditer(match["rest"]))
        end = "/" if _is_alone(match) and match["name"].lower() not in _VOID else ""
        yield f"<{match['name']}{links}{end}>"


def _nests(text: str, names: frozenset[str]) -> bool:
    open_: list[str] = []
    for match in _TAG.finditer(text):
        if match["name"] not in names:
            continue
        if match["name"].lower() in _VOID:
            continue
        if match["close"]:
            if not open_ or open_.pop() != match["name"]:
                return False
        elif not _is_alone(match):
            open_.append(match["name"])
    return not open_


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
    shown: set[str] = field(default_factory=set)
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
    message = IcuMessage()
    end = _read_text(text, 0, message, 0)
    if end < len(text):
        raise IcuError("closes a brace that was not opened")
    return message


def _read_text(text: str, at: int, message: IcuMessage, depth: int) -> int:
    """Read the text of a message or of one case; return where it ends."""
    if depth > _MAX_DEPTH:
        raise IcuError(f"nests more than {_MAX_DEPTH} cases")
    start, words_ = at, []
    while at < len(text) and text[at] != "}":
        if text[at] == "'":
            at = _behind_quote(text, at)
        elif text[at] == "{":
            words_.append(text[start:at])
            start = at = _read_argument(text, at + 1, message, depth)
        else:
            at += 1
    message.words += (*words_, text[start:at])
    return at


def _behind_quote(text: str, at: int) -> int:
    """Return where a text goes on behind an apostrophe: it quotes only what has a meaning."""
    if text.startswith(("'{", "'}", "'#", "'|"), at):
        end = text.find("'", at + 1)
        return len(text) if end < 0 else end + 1
    return at + (2 if text.startswith("''", at) else 1)


def _read_argument(text: str, at: int, message: IcuMessage, depth: int) -> int:
    name = _ICU_NAME.match(text, at)
    if name is None:
        raise IcuError("has a brace without the name of an argument")
    at = name.end()
    type_ = _ICU_TYPE.match(text, at)
    if type_ is None:
        return _close_argument(text, at, message, name[1], "")
    at = type_.end()
    if type_[1] not in _CHOOSING:
        end = text.find("}", at)
        return _close_argument(text, len(text) if end < 0 else end, message, name[1], type_[1])
    if not text.startswith(",", at):
        raise IcuError(f"lacks the cases of {name[1]}")
    at += 1
    if type_[1] != "select" and (offset := _OFFSET.match(text, at)):
        at = offset.end()
    cases, at = _read_cases(text, at, message, depth, name[1])
    message.cases.setdefault(name[1], []).append(frozenset(cases))
    if type_[1] != "select":
        message.branches.setdefault(name[1], []).append(cases)
        if any("#" in branch for branch in cases.values()):
            message.shown.add(name[1])
    blanks = len(text) - len(text[at:].lstrip())
    return _close_argument(text, blanks, message, name[1], type_[1])


def _read_cases(
    text: str, at: int, message: IcuMessage, depth: int, name: str
) -> tuple[dict[str, str], int]:
    """Return what an argument says in each case, and where its cases end."""
    cases: dict[str, str] = {}
    while case := _ICU_CASE.match(text, at):
        at = _read_text(text, case.end(), message, depth + 1)
        if at >= len(text):
            raise IcuError(f"does not close the case {case[1]} of {name}")
        cases[case[1]] = text[case.end() : at]
        at += 1
    if "other" not in cases:
        raise IcuError(f"lacks the case `other` of {name}")
    return cases, at


def _close_argument(text: str, at: int, message: IcuMessage, name: str, type_: str) -> int:
    if not text.startswith("}", at):
        raise IcuError(f"does not close the argument {name}")
    if type_ in _CHOOSING:
        message.arguments[name] = type_
    else:
        message.shown.add(name)
        message.arguments[name] = message.arguments.get(name) or type_
    return at + 1


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
    if missing := [
        name
        for name in source.arguments
        if name not in message.arguments and (name in source.shown or name not in source.branches)
    ]:
        return f"lacks {_join([f'{{{name}}}' for name in missing])}{note}"
    if added := [name for name in message.arguments if name not in source.arguments]:
        return f"has {_join([f'{{{name}}}' for name in added])}, which the source has not"
    for name, type_ in source.arguments.items():
        if type_ == "select":
            problem = _select_problem(name, source, message)
        else:
            problem = _plural_problem(name, source, message, needed) if type_ == "plural" else None
        if problem is not None:
            return problem
    return None


def icu_doubt(source: IcuMessage, text: str, known: frozenset[str]) -> str | None:
    """Return what may be wrong with an ICU message that ``icu_problem`` lets pass, or ``None``.

    A category that is not written falls back to ``other``, which may well be right there.

    Args:
        source: the message it was made from.
        text: the message.
        known: the plural categories that the language has beside ``other``.
    """
    message = read_icu(text)
    for name in source.branches:
        if name not in message.branches:
            if known and source.arguments[name] == "plural":
                return f"has no plural of {name}"
            continue
        if source.arguments[name] != "plural":
            continue
        for branches in message.branches[name]:
            missing = sorted(known - branches.keys() - _exact(branches.keys()))
            if missing and not _is_alike(branches):
                return f"lacks the plural {_join(missing)} of {name}, which the language has"
    return None


def _select_problem(name: str, source: IcuMessage, message: IcuMessage) -> str | None:
    want = frozenset().union(*source.cases[name])
    for cases in message.cases.get(name, [frozenset()]):
        if cases != want:
            return (
                f"has the cases {_join(sorted(cases))} of {name}; a program selects"
                f" {_join(sorted(want))}"
            )
    return None


def _plural_problem(
    name: str, source: IcuMessage, message: IcuMessage, needed: frozenset[str] | None
) -> str | None:
    if name not in message.branches:
        if name not in message.arguments:
            return None  # it only chose between words; another language may do without
        return f"has no plural of {name}" if needed else None
    own = (needed or frozenset()) - {"one"}
    is_one = (
        needed is not None
        and "one" in needed
        and all("one" in branches or "=1" in branches for branches in source.branches[name])
    )
    for branches in message.branches[name]:
        have = branches.keys() | _exact(branches.keys())
        missing = {"one"} - have if is_one else frozenset()
        # One of the cases of its own says that the language was thought of; `other` does for
        # the rest of them.
        if own and not own & have and not _is_alike(branches):
            missing |= own
        if missing:
            return f"lacks the plural {_join(sorted(missing))} of {name}, which the language has"
    if name in source.shown and name not in message.shown:
        return f"does not show the number {name}"
    return None


def _is_alike(branches: Mapping[str, str]) -> bool:
    """Return whether the cases of a plural say the same, but for the number."""
    said = {re.sub(r"#|\{[^{}]*\}|\d+|\s+", "", branch).casefold() for branch in branches.values()}
    return len(branches) > 1 and len(said) == 1


def _exact(cases: Iterable[str]) -> frozenset[str]:
    """Return the categories that exact numbers may stand for."""
    exact = {"=0": "zero", "=1": "one", "=2": "two"}
    return frozenset(exact[case] for case in cases if case in exact)


def phrases(text: str) -> list[list[str]]:
    """Return the words of a text without what programs read in it; each case of a plural apart."""
    if not is_icu(text):
        return [_words(text)]
    try:
        return [_words(part) for part in read_icu(text).words]
    except IcuError:
        return []


def words(text: str) -> list[str]:
    """Return the words of a text without what programs read in it."""
    return [word for phrase in phrases(text) for word in phrase]


def _words(text: str) -> list[str]:
    for pattern in (_NAMED, _TAG, _IN_ORDER, re.compile(r"&#?\w+;|https?://\S+|\S+@\S+")):
        text = pattern.sub(" ", text)
    return _WORD.findall(text)


def _join(shown: list[str]) -> str:
    return ", ".join(shown) or "none"
