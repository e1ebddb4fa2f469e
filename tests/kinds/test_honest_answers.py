"""Strings of an interface, answered by a language model that saw the prompts and nothing else.

``berthly/replies.json`` holds the replies as they came: written by a language model, not recorded
from an API, unaltered. What is said here about its first tries is all that follows from them.
"""

import json
from dataclasses import replace
from pathlib import Path

from pytest_regen.kinds.translation import Translation, translation_kinds
from pytest_regen.units.kind import Unit, issues_from

FOLDER = Path(__file__).parent / "berthly"
STYLE = (
    "An app for people who travel by boat. Address the reader informally (German: du, French: tu)."
)


def catalogue() -> Translation:
    """Return the kind, as it was when the model was asked."""
    entry = {"source": "en.json", "targets": "*.json", "style": STYLE, "keep": ["Berthly"]}
    (kind,) = translation_kinds([entry], FOLDER)
    assert isinstance(kind, Translation)
    return kind


WARNED = (
    *(("de", name) for name in ("app.copyright", "app.version")),
    *(("fr", name) for name in ("app.copyright", "app.version", "berth.photos", "nav.messages")),
    ("fr", "search.distance"),
)
"""What is said of first tries: no error in 222 strings, and 7 warnings, each of a right text."""


def test_first_tries() -> None:
    """What fails is what a person would send back; nothing else does."""
    kind, found = catalogue(), {}
    replies = json.loads((FOLDER / "replies.json").read_text("utf-8"))
    for language, answers in replies.items():
        assert answers.keys() == kind.read_source().texts.keys()
        for name, reply in answers.items():
            unit = Unit(name, FOLDER / f"{language}.json", "", "", kind)
            unit = replace(unit, text=kind.extract(reply, unit))
            if issues := issues_from(kind.check(unit), unit):
                found[language, name] = [issue.code for issue in issues]
                assert {issue.severity for issue in issues} == {"warning"}

    assert sum(map(len, replies.values())) == 222
    assert found == {key: ["UNTRANSLATED"] for key in WARNED}
