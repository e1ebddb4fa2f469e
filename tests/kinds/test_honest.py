"""Strings and functions, answered by a language model that saw the prompts and nothing else.

``berthly`` and ``quay`` hold the replies as they came: written by a language model, not recorded
from an API, unaltered. What is said here about its first tries is all that follows from them.
``quay/project.json`` holds the stubs.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_regen import sandbox
from pytest_regen.kinds.functions import function_kinds
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


def test_first_tries_of_strings() -> None:
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


QUAY = Path(__file__).parent / "quay"
FOUND = {"radio.checksum": ["DOCTEST"]}
"""What is said of first tries, by unit; nothing of the other 29.

Here the example is wrong and the code right: a comma is missing in the sentence, whose checksum is
31. A person wrote it, from memory, and no model could have passed. It is left as it was asked.
"""


def project(root: Path) -> Path:
    """Return the project, with every reply in its place."""
    for name, text in json.loads((QUAY / "project.json").read_text("utf-8")).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    (kind,) = function_kinds(["src/quay/*.py"], root)
    replies: dict[str, str] = json.loads((QUAY / "replies.json").read_text("utf-8"))
    for place in {unit.partition("::")[0] for unit in replies}:
        path = root / place
        text = path.read_text("utf-8")
        code = {
            name: kind.extract(replies[f"{place}::{name}"], Unit(name, path, "", "", kind))
            for name in kind.region.find(text)
        }
        path.write_text(kind.region.replace(text, code), "utf-8")
    return root


@pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")
def test_first_tries_of_functions(tmp_path: Path) -> None:
    """All 30 functions were answered; what fails is what a person would send back."""
    (kind,) = function_kinds(["src/quay/*.py"], project(tmp_path))
    found, count = {}, 0
    paths = [path for path in sorted(tmp_path.glob("src/quay/*.py")) if kind.claims(path)]
    kind.prepare(paths)
    for path in paths:
        text = path.read_text("utf-8")
        for name, span in kind.region.find(text).items():
            unit = Unit(name, path, span.text, text, kind)
            count += 1
            if codes := [issue.code for issue in issues_from(kind.check(unit), unit)]:
                found[f"{path.stem}.{name}"] = codes

    assert count == 30
    assert found == FOUND
