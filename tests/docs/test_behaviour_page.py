"""The table of docs/behaviour.md names what there is."""

import re

from pages import ROOT

from pytest_regen.languages import find_language, find_runner, language_names

PAGE = "docs/behaviour.md"


def test_every_profile_that_is_run_has_a_row() -> None:
    """And no other has one."""
    names = {"csharp": "C#", "python": "Python", "typescript": "TypeScript"}
    text = (ROOT / PAGE).read_text("utf-8")
    listed = re.findall(r"^\| ([\w#]+), `(\w+)` \|", text, re.MULTILINE)
    run = {
        (names[language], profile)
        for language in language_names()
        if language in names
        for profile in ("default", "dataclass", "typeddict", "zod", "xchange")
        if _has_runner(language, profile)
    }

    assert sorted(listed) == sorted(run)


def _has_runner(language: str, profile: str) -> bool:
    target = find_language(language)
    try:
        target.wording(profile)
    except Exception:  # noqa: BLE001 - no such profile
        return False
    return find_runner(target, profile) is not None
