"""Strings of an interface, answered by a language model that saw the prompts and nothing else.

``berthly/replies.json`` holds the replies as they came: written by a language model, not recorded
from an API, unaltered. What is said here about its first tries is all that follows from them.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pytest_regen.kinds import messages
from pytest_regen.kinds.translation import Translation, translation_kinds
from pytest_regen.units.kind import Unit, issues_from

FOLDER = Path(__file__).parent / "berthly"
STYLE = (
    "An app for people who travel by boat. Address the reader informally (German: du, French: tu)."
)
LANGUAGES = ("de", "fr")


@cache
def catalogue() -> Translation:
    """Return the kind, as it was when the model was asked."""
    entry = {"source": "en.json", "targets": "*.json", "style": STYLE, "keep": ["Berthly"]}
    (kind,) = translation_kinds([entry], FOLDER)
    return kind


@cache
def answers(language: str) -> dict[str, str]:
    """Return the texts that the replies give, by name."""
    kind, path = catalogue(), FOLDER / f"{language}.json"
    replies = json.loads((FOLDER / "replies.json").read_text("utf-8"))[language]
    return {
        name: kind.extract(reply, Unit(name, path, "", "", kind)) for name, reply in replies.items()
    }


def codes(language: str, name: str, text: str) -> list[str]:
    """Return the codes of a text, warnings in small letters."""
    kind = catalogue()
    unit = Unit(name, FOLDER / f"{language}.json", text, "", kind)
    found = issues_from(kind.check(unit), unit)
    return [issue.code if issue.severity == "error" else issue.code.lower() for issue in found]


FOUND: dict[tuple[str, str], list[str]] = {}
"""What is wrong with first tries, by language and name: all of it was looked at, see below."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_string_was_answered(language: str) -> None:
    """Nothing was left out, and nothing added."""
    assert answers(language).keys() == catalogue().read_source().texts.keys()
    assert len(answers(language)) == 111


@pytest.mark.parametrize("language", LANGUAGES)
def test_first_tries(language: str) -> None:
    """What fails is what a person would send back; nothing else does."""
    found = {
        (language, name): problems
        for name, text in answers(language).items()
        if (problems := codes(language, name, text))
    }

    assert found == {key: value for key, value in FOUND.items() if key[0] == language}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_done_to_a_right_answer_is_found(language: str) -> None:
    """A placeholder lost or translated, a tag lost, a remark added, the source copied."""
    source = catalogue().read_source().texts
    missed = []
    for name, text in answers(language).items():
        for harm, code in harms(source[name], text):
            if code not in codes(language, name, harm):
                missed.append((name, harm))

    assert not missed


def harms(source: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield texts with one fault each, and the code of the fault."""
    is_icu = messages.is_icu(source)
    for match in re.finditer(r"\{\{?\w+\}\}?|%\(\w+\)s|%s|%d", text):
        if not is_icu or text.count(match[0]) == 1:
            yield text.replace(match[0], ""), "PLACEHOLDER"
            if match[0] not in {"%s", "%d"}:
                yield (
                    text.replace(match[0], match[0].replace("}", "x}").replace(")", "x)")),
                    "PLACEHOLDER",
                )
    for match in re.finditer(r"</\w+>", text):
        yield text.replace(match[0], ""), "TAGS"
    yield f"{text}\n\nI kept the tone informal.", "LENGTH"
    if is_icu:
        yield text[:-1], "PLACEHOLDER"
    if len([word for word in messages.words(source) if len(word) > 3]) > 3:
        yield source, "UNTRANSLATED"
