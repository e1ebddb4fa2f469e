"""What running the types of a TypeScript store finds, by node, tsc and zod of the project."""

from pathlib import Path

import pytest
from run_stores import needs_node, run_store

from pytest_regen.languages import find_runner
from pytest_regen.languages.typescript.language import TypeScript
from pytest_regen.validation.stores import behaviour_of_store


def check(path: Path, profile: str, changes: dict[str, str] | None = None) -> set[tuple[str, str]]:
    """Return which types of an edited store have which codes, whatever reading them shows."""
    store = run_store(path, changes, language="typescript", profile=profile)
    found = behaviour_of_store(store)
    assert not found.why_not
    return {(name, issue.code) for name, issues in found.issues.items() for issue in issues}


@needs_node
def test_an_enum_is_held_against_its_texts(tmp_path: Path) -> None:
    """No literal is assigned to an enum, though JSON that is read is: its texts are compared."""
    literal = 'export type State = "free" | "taken";'
    right, wrong = (f'export enum State {{ A = "free", B = "{b}" }}' for b in ("taken", "took"))

    assert not check(tmp_path / "right", "default", {literal: right})
    assert ("State", "ROUND_TRIP") in check(tmp_path / "wrong", "default", {literal: wrong})


@needs_node
@pytest.mark.parametrize(
    ("profile", "old", "new", "type_"),
    [
        ("default", "  maker: string;", "  private maker: string;", "Crane"),
        (
            "zod",
            "export const Crane = z.object({",
            "export const Crane = z.strictObject({",
            "Crane",
        ),
        (
            "zod",
            "  get crane() {\n    return Crane.optional();\n  },",
            "  crane: Crane,",
            "Harbour",
        ),
    ],
)
def test_what_does_not_load_or_refuses_too_much_is_its_own_fault(
    tmp_path: Path, profile: str, old: str, new: str, type_: str
) -> None:
    """A modifier, a schema declared later, or one that refuses what an API adds; no other type."""
    assert check(tmp_path, profile, {old: new}) == {(type_, "ROUND_TRIP")}


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program, or the package with the command that installs it."""
    runner = find_runner(TypeScript(), "zod")
    assert runner is not None
    monkeypatch.delenv("REGEN_NODE_MODULES", raising=False)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "node").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tools))

    assert runner.missing(tmp_path) == (
        "types were only read: "
        "the package typescript is not installed: npm install --save-dev typescript"
    )

    monkeypatch.setenv("PATH", str(tmp_path))
    assert runner.missing(tmp_path) == "types were only read: node is not on the PATH"
