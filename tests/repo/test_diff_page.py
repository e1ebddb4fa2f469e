"""docs/diff.md: the command shows what the page says, and the page lists every kind of change."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from command_line import command
from pages import ROOT, blocks, sessions

from pytest_regen.documents import changes

PAGE = "docs/diff.md"
EDITS = {
    "format: int32": "format: int64",
    "[red, blue]": "[red, blue, gold]",
    "maximum: 5}": "maximum: 3}\n                  tail: {type: string}",
}
"""What the sentence between the blocks says."""


def test_the_session_is_what_the_command_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older version is in git, the newer one in the folder."""
    monkeypatch.chdir(tmp_path)
    (document,) = blocks(PAGE, "yaml")
    ((words, shown),) = sessions(blocks(PAGE, "console")[0])
    Path("api.yaml").write_text(document, "utf-8")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for git in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *who, *git], check=True, capture_output=True)
    for old, new in EDITS.items():
        document = document.replace(old, new)
    Path("api.yaml").write_text(document, "utf-8")

    ran = command(*shlex.split(words)[1:])

    assert ran.code == 1
    assert [line.strip() for line in ran.err.splitlines()] == shown


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
