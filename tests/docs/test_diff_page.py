"""docs/diff.md lists every kind of change."""

import re

from pages import ROOT

from pytest_regen.documents import changes

PAGE = "docs/diff.md"


def test_every_kind_is_listed() -> None:
    """None is made that the table lacks."""
    code = "".join(
        (ROOT / "pytest_regen" / name).read_text("utf-8")
        for name in ("documents/changes.py", "cli/diff.py")
    )
    made = set(re.findall(r'[Cc]hange\(\s*"(\w+)"', code)) | {"value_added", "value_removed"}
    table = (ROOT / PAGE).read_text("utf-8").partition("| `kind` |")[2]

    assert len(made) > 10
    assert made <= set(re.findall(r"`(\w+)`", table)), changes.__name__
