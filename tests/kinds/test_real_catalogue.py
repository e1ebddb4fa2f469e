"""The catalogue of the example: nothing is wrong with it, and each fault put into it is found."""

from pathlib import Path

import pytest
from harmed_strings import harms

from pytest_regen.kinds.translation import Translation, translation_kinds
from pytest_regen.regions import JsonStrings
from pytest_regen.units.kind import Unit, issues_from

EXAMPLE = Path(__file__).parents[2] / "examples" / "translations"


def codes(kind: Translation, language: str, name: str, text: str) -> list[str]:
    """Return the codes of a translation."""
    unit = Unit(name, EXAMPLE / "locales" / f"{language}.json", text, "", kind)
    return [issue.code for issue in issues_from(kind.check(unit), unit)]


@pytest.mark.parametrize("language", ["de", "fr"])
def test_each_fault_is_found_and_nothing_else(language: str) -> None:
    """25 strings of an interface, with placeholders, plurals and tags."""
    entry = {"source": "locales/en.json", "targets": "locales/*.json", "keep": ["Toolshelf"]}
    (kind,) = translation_kinds([entry], EXAMPLE)
    assert isinstance(kind, Translation)
    source = kind.read_source().texts
    target = (EXAMPLE / "locales" / f"{language}.json").read_text("utf-8")
    tried, missed = 0, []
    for name, span in JsonStrings().find(target).items():
        assert codes(kind, language, name, span.text) == []
        for text, code in harms(source[name], span.text):
            tried += 1
            missed += [(name, text)] if code not in codes(kind, language, name, text) else []

    assert not missed
    assert tried >= 70
