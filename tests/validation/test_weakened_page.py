"""docs/codes.md and docs/kinds.md: each example shows what stands below it."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT, blocks

from pytest_regen.documents.ir import FieldIR, Scalar, TypeIR
from pytest_regen.kinds.functions.guard import compare_code, find_cheats
from pytest_regen.kinds.functions.source import FunctionRegion, read_module
from pytest_regen.languages import find_language, find_weaknesses
from pytest_regen.units.kind import Unit

SECTION = (ROOT / "docs/codes.md").read_text("utf-8").partition("\n## WEAKENED\n")[2]
EXAMPLES = re.findall(
    r"^```diff\n(.*?)^```\n\n```text\n(WEAKENED.*?)```", SECTION, re.DOTALL | re.MULTILINE
)
LENGTH = FieldIR(
    json_name="length", type=Scalar(kind="number"), required=True, constraints={"minimum": 0}
)
SHIP = TypeIR(name="Ship", schema_id="#/Ship", is_root=True, kind="object", fields=(LENGTH,))
LANGUAGES = {"class Ship(": "python", "export ": "typescript", "public class": "csharp"}


def sides(diff: str) -> tuple[str, str]:
    """Return the old text of a diff and the new one."""
    lines = [line or " " for line in diff.split("\n")]
    return tuple(  # type: ignore[return-value]
        "\n".join(line[1:] for line in lines if line[0] in f" {sign}") + "\n" for sign in "-+"
    )


def messages(old: str, new: str) -> Iterator[str]:
    """Yield what is said of new code in place of old."""
    language = next((name for sign, name in LANGUAGES.items() if sign in new), "")
    if language:
        for found in find_weaknesses(find_language(language), SHIP, old, new):
            yield found.message
        return
    name = re.findall(r"def (\w+)", new)[0]
    marked = [FunctionRegion().enclose_all(text, [name]) for text in (old, new)]
    before, after = (read_module(text).places[name] for text in marked)
    for issue in (*find_cheats(after), *compare_code(before, after)):
        yield issue.message


@pytest.mark.parametrize(("diff", "said"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_shows_what_is_said(diff: str, said: str) -> None:
    """One weakness each, in these words."""
    assert [f"WEAKENED: {message}" for message in messages(*sides(diff))] == [said.strip()]


def test_the_careful_kind_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that lists the examples is told, and so is a comment; nothing beside itself."""
    all_blocks = blocks("docs/kinds.md", "python")
    (patterns,) = (block for block in all_blocks if "Patterns(Kind)" in block)
    (careful,) = (block for block in all_blocks if "(Patterns)" in block)
    (tmp_path / "regen_kinds.py").write_text(patterns, "utf-8")
    (tmp_path / "patterns.toml").write_text(blocks("docs/kinds.md", "toml")[0], "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "regen_kinds", raising=False)
    names: dict[str, type] = {}
    exec(careful, names)
    kind = names["CarefulPatterns"]()
    monkeypatch.delitem(sys.modules, "regen_kinds")

    def said(old: str, new: str) -> list[str]:
        path = tmp_path / "patterns.json"
        units = (Unit("draught", path, text, text, kind) for text in (old, new))
        return [getattr(found, "message", found) for found in kind.weakens(*units)]

    right = r"\d+([.,]\d+)? m"
    (listed,) = said(right, f"{right}|12.25 m")
    assert listed.startswith("lists '12.25 m'")
    assert said(right, f"{right} # noqa") == ["adds 'noqa'"]
    assert said(f"{right} # noqa", f"{right} # noqa") == []
