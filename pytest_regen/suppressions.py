"""Comments that tell a checker to look away, whatever the language they stand in.

A comment is such a directive only where it begins with one: a sentence about ``noqa`` is none.
"""

import re
from collections.abc import Iterator
from typing import Final

# What follows the sign of a comment; matched at its beginning.
_DIRECTIVE: Final = re.compile(
    r"""(?ix)
    (?:
      type:\s*ignore \b (?:\[[^\]]*\])?
    | (?:(?:ruff|flake8|sqlfluff):\s*)? noqa \b (?:\s*:\s*[\w, ]+)? (?:\s*disable=\S+)?
    | pragma:\s*no\s?(?:cover|branch|mutate)
    | nosec \b | nosemgrep \b | nolint\w* \b | noinspection \b .*
    | pylint:\s*(?:disable|skip)\S* .*
    | mypy:\s*(?:ignore|disable|allow|no|disallow)[-\w]* .*
    | pyright:\s*(?:ignore|basic|report\w+\s*=\s*(?:false|none)) .*
    | pyre-(?:ignore|fixme|unsafe)\S* | pytype:\s*(?:disable|skip)\S* | ty:\s*ignore\S*
    | (?:fmt|yapf|isort|autopep8|ruff):\s*(?:off|skip|disable|ignore)\S*
    | @?ts-(?:ignore|nocheck|expect-error)
    | (?:eslint|tslint|oxlint|stylelint|jshint|markdownlint)[-:](?:disable|ignore)[-\w]* .*
    | biome-ignore\S* .* | deno-(?:lint|fmt)-ignore\S* .* | prettier-ignore\S*
    | (?:istanbul|v8|c8)\s+ignore\b .* | @?stryker\s+disable\b .*
    | resharper\s+disable\b .* | rubocop:disable .* | shellcheck\s+disable\S* .*
    | lint:\s*(?:ignore|disable)\S* .* | cspell:\s*(?:ignore|disable)\S* .*
    | codespell:ignore\S* .* | vale\s+(?:off|\S+\s*=\s*no) | phpcs:ignore\S* .*
    | sqlfluff:\s*(?:disable|off)\S* .* | coverage:\s*ignore\S*
    )
    """
)

# How comments begin in the languages that there are.
_SIGN: Final = re.compile(r"(?:#|//|--|/\*|<!--|;|%|\{#|\(\*)[#/!*\-]*[ \t]*")

_LONGEST: Final = 80


def directive_in(comment: str) -> str:
    """Return the directive that a comment holds, on one line; empty where it holds none.

    Args:
        comment: with its sign or without.
    """
    sign = _SIGN.match(comment)
    match = _DIRECTIVE.match(comment, sign.end() if sign else 0)
    if match is None:
        return ""
    return " ".join(match[0].removesuffix("*/").removesuffix("-->").split())[:_LONGEST]


def split_directive(directive: str) -> tuple[str, frozenset[str]]:
    """Return what a directive does, and the rules that it is limited to; none if to no rule.

    ``noqa: E501, F401`` is ``noqa`` limited to two rules, ``type: ignore`` is not limited.
    """
    match = _LIMIT.match(directive)
    if match is None:
        return directive, frozenset()
    return match[1], frozenset(filter(None, re.split(r"[\s,]+", match[2])))


_LIMIT: Final = re.compile(
    r"(?i)((?:\w+:\s*)?(?:noqa|ignore|(?:eslint|tslint|oxlint)-disable[-\w]*))\b[\s:=\[]*([^\]]*)"
)


def find_directives(text: str) -> Iterator[tuple[int, str]]:
    """Yield the directives in a text whose language is not known: its lines, and what they say.

    Lines count from 1. Whatever could be the sign of a comment is taken for one.
    """
    for number, line in enumerate(text.splitlines(), 1):
        for sign in _SIGN.finditer(line):
            if directive := directive_in(line[sign.start() :]):
                yield number, directive
                break
