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


def test_a_wrong_type_fails_alone(project: Project) -> None:
    """The other types of the store pass, the exit code is 1 in either way of running."""
    project.broken()

    result = project.run()

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"FAILED {STORE}::Owner - *"])
    assert result.ret == 1


@pytest.mark.parametrize("name", ["GET_ä", "GET_{a}[b c]"])
def test_a_node_id_is_accepted_back(project: Project, name: str) -> None:
    """Whatever the folder is called, what pytest prints can be given to pytest."""
    project.store(name)
    everything = collected(project)

    assert everything == units("ProjectDataObject", "Owner", "State", store=f"generated/{name}")
    assert collected(project, everything[1]) == [everything[1]]


def test_an_unknown_type_lists_what_there_is(project: Project) -> None:
    """It is a usage error, not an empty selection."""
    project.store()

    result = project.run(f"{STORE}::Ownr")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: not found: {STORE}::Ownr", "*ProjectDataObject, Owner, State*"]
    )


def test_stores_are_collected_whatever_testpaths_says(project: Project) -> None:
    """Without a path on the command line a gate is never left out."""
    project.pytester.makeini("[pytest]\nregen_stores = generated/*\ntestpaths = tests\n")
    project.store()
    (project.path / "tests").mkdir()
    (project.path / "tests" / "test_a.py").write_text("def test_a(): pass\n", "utf-8")

    assert collected(project) == ["tests/test_a.py::test_a", *ALL]


@pytest.mark.parametrize("args", [(".",), (STORE, "generated", STORE)])
def test_stores_below_a_path_are_collected_once(project: Project, args: tuple[str, ...]) -> None:
    """A folder brings its stores in, and naming them again does not double them."""
    project.store()

    assert collected(project, *args) == ALL


def test_a_store_that_no_glob_matches_can_be_named(project: Project) -> None:
    """A folder given by name that is a store is collected, ini value or not."""
    project.pytester.makeini("[pytest]\n")
    project.store()

    assert collected(project) == []
    assert collected(project, f"{STORE}::State") == units("State")


def test_a_glob_without_a_match_is_a_usage_error(project: Project) -> None:
    """A gate that checks nothing must not pass."""
    project.pytester.makepyfile(test_plain="def test_y(): pass")

    result = project.run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: regen_stores: 'generated/?' matches no store*"])


def test_keywords_and_deselection_work(project: Project) -> None:
    """``-k`` knows types and stores, ``--deselect`` takes node ids."""
    project.store()
    project.store("GET_v1_users")

    assert collected(project, "-k", "v1_users and Owner") == units(
        "Owner", store="generated/GET_v1_users"
    )
    assert collected(project, "--deselect", "generated/GET_v1_users") == ALL
    assert collected(project, STORE, "--deselect", f"{STORE}::Owner") == units(
        "ProjectDataObject", "State"
    )


@pytest.mark.parametrize(
    ("name", "text"), [("ir.json", '{"types": 4}'), ("prompts.json", "{"), ("pages.json", None)]
)
def test_a_damaged_store_is_one_failing_item(project: Project, name: str, text: str | None) -> None:
    """It says what is wrong, without a traceback and without stopping the other tests."""
    path = project.store() / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text, "utf-8")
    project.pytester.makepyfile(test_plain="def test_y(): pass")

    result = project.run()

    assert result.ret == 1
    assert result.parseoutcomes()["passed"] >= 1
    result.stdout.fnmatch_lines([f"*{name}*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_item_points_into_the_generated_file(project: Project) -> None:
    """Reports give the generated file and the line on which the type begins."""
    store = project.store()
    source = (store / "ProjectDataObject.cs").read_text("utf-8").splitlines()
    begins = source.index("public class Owner")

    items, _ = project.pytester.inline_genitems(f"{STORE}::Owner")

    assert items[0].reportinfo() == (store / "ProjectDataObject.cs", begins, f"{STORE}: Owner")


def test_a_lost_boundary_line_fails_types_and_not_the_run(project: Project) -> None:
    """The first type has the line and what mends it; ordinary tests run on."""
    path = project.store()
    source = next(path.glob("*.cs"))
    text = source.read_text("utf-8")
    source.write_text(text.replace("// [REGEN:END Owner]\n", ""), "utf-8")
    project.pytester.makepyfile(test_plain="def test_plain(): pass")

    result = project.run()

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*that line * opens ('// ?REGEN:BEGIN Owner?')", "*pytest-regen rebuild*"]
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
