"""Stores as nodes, types as items, node ids that work everywhere."""

import pytest
from plugin_project import Project

STORE = "generated/GET_v1_projects"


def collected(project: Project, *args: str) -> list[str]:
    """Return the node ids that a run would run."""
    result = project.run("--collect-only", "-q", *args)
    assert result.ret in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}, result.outlines
    return [line for line in result.outlines if "::" in line]


def units(*names: str, store: str = STORE) -> list[str]:
    """Return the node ids of types."""
    return [f"{store}::{name}" for name in names]


ALL = units("ProjectDataObject", "Owner", "State")


@pytest.mark.parametrize("name", ["GET_ä", "GET_{a}[b c]"])
def test_a_node_id_is_accepted_back(project: Project, name: str) -> None:
    """Whatever the folder is called, what pytest prints can be given to pytest."""
    project.store(name)
    everything = collected(project)

    assert everything == units("ProjectDataObject", "Owner", "State", store=f"generated/{name}")
    assert collected(project, everything[1]) == [everything[1]]


def test_types_are_chosen_like_tests(project: Project) -> None:
    """``-k`` knows types and stores, ``--deselect`` takes node ids; a folder brings its stores in.

    Without a path on the command line a gate is never left out, whatever ``testpaths`` says. An
    unknown type, and a glob without a match, are usage errors and no empty selection.
    """
    users = "generated/GET_v1_users"
    unmatched = project.run()
    project.store()
    project.store("GET_v1_users")

    assert collected(project, "-k", "v1_users and Owner") == units("Owner", store=users)
    assert collected(project, "--deselect", users) == ALL
    rest = units("ProjectDataObject", "State")
    assert collected(project, STORE, "--deselect", f"{STORE}::Owner") == rest
    assert len(collected(project, ".")) == 6
    assert collected(project, STORE, f"{STORE}::Owner", STORE) == ALL
    unknown = project.run(f"{STORE}::Ownr")
    (project.path / "tests").mkdir()
    (project.path / "tests" / "test_a.py").write_text("def test_a(): pass\n", "utf-8")
    project.pytester.makeini("[pytest]\nregen_stores = generated/*projects\ntestpaths = tests\n")
    assert collected(project) == ["tests/test_a.py::test_a", *ALL]
    assert collected(project, f"{users}::State") == units("State", store=users)
    assert [run.ret for run in (unmatched, unknown)] == [pytest.ExitCode.USAGE_ERROR] * 2
    unmatched.stderr.fnmatch_lines(["ERROR: regen_stores: 'generated/?' matches no store*"])
    listed = ["ERROR: not found: *::Ownr", "*ProjectDataObject, Owner, State*"]
    unknown.stderr.fnmatch_lines(listed)
