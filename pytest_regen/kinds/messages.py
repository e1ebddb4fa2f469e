"""What a string of a user interface holds beside words: placeholders, tags, ICU messages.

Two texts are compared for what a program reads in them, not for how they are written: named
placeholders may move and repeat, ``%s`` may not change its order, the branches of a plural are
those of each language.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "IcuError",
    "IcuMessage",
    "icu_problem",
    "is_icu",
    "phrases",
    "placeholder_problem",
    "read_icu",
    "tag_problem",
    "words",
]

_NAMED: Final = re.compile(
    r"\$t\([^()\n]*\)"  # i18next: another text
    r"|\{\{\{[^{}\n]*\}\}\}|\{\{[^{}\n]*\}\}"  # i18next, Angular, Mustache
    r"|\$\{[^{}\n]*\}|%\{[^{}\n]*\}|\#\{[^{}\n]*\}"  # JavaScript, Ruby
    r"|%\([^()\n]*\)[-+0#]*\d*(?:\.\d+)?[a-zA-Z]"  # Python
    r"|\{\s*[\w.$@-]+(?:\[[\w.]+\])*(?:![rsa])?(?::[^{}\n]*)?\s*\}"  # Python, ICU
    r"|\{\s*[\w.]+\s*,\s*(?:number|date|time|spellout|ordinal|duration|list)\b[^{}\n]*\}"
)
_IN_ORDER: Final = re.compile(
    r"%%|\{\}|(?<![%\d])%(?:(?P<number>[1-9]\d?)\$)?"
    r"(?:[-+0#]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?(?P<type>[sdifuxXcge@])(?![^\W\d_])|L?[1-9n]\b)"
)
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
_MAX_DEPTH: Final = 20


def placeholder_problem(source: str, text: str) -> str | None:
    """Return what is wrong with the placeholders of ``text``, or ``None``."""
    want, have = _find_named(source), _find_named(text)
    if missing := [shown for key, shown in want.items() if key not in have]:
        return f"lacks {_join(missing)}"
    if added := [shown for key, shown in have.items() if key not in want]:
        return f"has {_join(added)}, which the source has not"
    return _order_problem(_find_ordered(source), _find_ordered(text))


def _find_named(text: str) -> dict[str, str]:
    """Return the named placeholders of a text as they are compared, and as they are written."""
    found = {}
    for match in _NAMED.finditer(text):
        key = re.sub(r"\s+", "", match[0])
        if "," in key and not key.startswith(("$t(", "{{")):
            key = ",".join(key.strip("{}").split(",")[:2])
        found[key] = match[0]
    return found


def _find_ordered(text: str) -> list[tuple[int, str]]:
    """Return the placeholders that stand for arguments by their order: number and type."""
    found, text = [], _NAMED.sub(" ", text)
    for match in _IN_ORDER.finditer(text):
        if match[0] == "%%":
            continue
        number = int(match["number"] or 0)
        if not number and match["type"] is None and match[0] != "{}":
            found.append((-1, match[0]))  # Qt's %1 and %n may stand anywhere
        else:
            found.append((number, match["type"] or "{}"))
    return found


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
    if number < 0 or type_ == "{}":
        return type_
    return f"%{number}${type_}" if number else f"%{type_}"


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
    if added := list((have - want).elements()):
        return f"has {_join(added)}, which the source has not"
    if not _nests(text, names) and _nests(source, names):
        return "has tags that do not close in order"
    return None


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
    if type_[1] not in {"plural", "select", "selectordinal"}:
        end = text.find("}", at)
        return _close_argument(text, len(text) if end < 0 else end, message, name[1], type_[1])
    if not text.startswith(",", at):
        raise IcuError(f"lacks the cases of {name[1]}")
    at += 1
    if type_[1] != "select" and (offset := _OFFSET.match(text, at)):
        at = offset.end()
    cases = set()
    while case := _ICU_CASE.match(text, at):
        cases.add(case[1])
        at = _read_text(text, case.end(), message, depth + 1)
        if at >= len(text):
            raise IcuError(f"does not close the case {case[1]} of {name[1]}")
        at += 1
    if "other" not in cases:
        raise IcuError(f"lacks the case `other` of {name[1]}")
    message.cases.setdefault(name[1], []).append(frozenset(cases))
    blanks = len(text) - len(text[at:].lstrip())
    return _close_argument(text, blanks, message, name[1], type_[1])


def _close_argument(text: str, at: int, message: IcuMessage, name: str, type_: str) -> int:
    if not text.startswith("}", at):
        raise IcuError(f"does not close the argument {name}")
    if message.arguments.get(name, "") == "":
        message.arguments[name] = type_
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
    if missing := [name for name in source.arguments if name not in message.arguments]:
        return f"lacks {_join([f'{{{name}}}' for name in missing])}{note}"
    if added := [name for name in message.arguments if name not in source.arguments]:
        return f"has {_join([f'{{{name}}}' for name in added])}, which the source has not"
    for name, type_ in source.arguments.items():
        problem = _case_problem(name, type_, source, message, needed)
        if problem is not None:
            return problem
    return None


def _case_problem(
    name: str, type_: str, source: IcuMessage, message: IcuMessage, needed: frozenset[str] | None
) -> str | None:
    if type_ == "select":
        want = frozenset().union(*source.cases[name])
        for cases in message.cases.get(name, [frozenset()]):
            if cases != want:
                return (
                    f"has the cases {_join(sorted(cases))} of {name}; a program selects"
                    f" {_join(sorted(want))}"
                )
    elif type_ == "plural":
        if name not in message.cases:
            return f"has no plural of {name}" if needed else None
        for cases in message.cases[name]:
            if missing := sorted((needed or frozenset()) - cases - _exact(cases)):
                return f"lacks the plural {_join(missing)} of {name}, which the language has"
    return None


def _exact(cases: frozenset[str]) -> frozenset[str]:
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
