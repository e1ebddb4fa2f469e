"""Marks that mean nothing are refused while tests are collected, before anything is paid."""

import pytest
from plugin_project import Project

STORE = "generated/GET_v1_projects"


def write(project: Project, mark: str, body: str = "pass") -> None:
    """Make a module with one marked test."""
    project.store()
    project.pytester.makepyfile(
        test_own=f"import pytest\n\n@pytest.mark.{mark}\ndef test_it(regen_store):\n    {body}\n"
    )


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        (
            "regen(stores='x')",
            ["regen(stores='x'): unknown argument", "it takes store, types"],
        ),
        ("regen(attempts=0)", ["regen(attempts=0)", "whole number of at least 1"]),
        ("regen(attempts=True)", ["regen(attempts=True)", "whole number of at least 1"]),
        ("regen(types=4)", ["regen(types=4)", "a name or a list of names"]),
        ("regen(on={'A': 1})", ["regen(on={'A': 1})", "a name or a list of names"]),
        ("regen(store=4)", ["regen(store=4)", "the path of a store"]),
        ("regen('a', 'b', 2, [], 'c', 'x')", ["regen('a', 'b', 2, [], 'c', 'x')", "and no more"]),
        (
            "regen(store='generated/GET_v1_project')",
            ["there is no store", f"there is {STORE}"],
        ),
        ("regen(store='tests')", ["there is no store", f"there is {STORE}"]),
        ("cassette(nam='x')", ["cassette(nam='x'): unknown argument", "it takes name, record"]),
        ("cassette(record='onec')", ["cassette(record='onec')", "it is one of"]),
        ("cassette(normalize=1)", ["cassette(normalize=1)", "it is a function"]),
    ],
)
def test_a_wrong_mark_is_an_error_of_its_test(project: Project, mark: str, told: list[str]) -> None:
    """Three lines: the value, why with what would be right, and what to do; no line of ours."""
    write(project, mark)

    result = project.run()

    result.assert_outcomes(passed=3, errors=1)
    text = result.stdout.str()
    error = text.partition("ERROR at setup of test_it")[2].partition("short test summary")[0]
    lines = [line for line in error.splitlines()[1:] if line and not line.startswith("==")]
    assert len(lines) == 3, error
    assert lines[0].startswith("test_own.py::test_it: ")
    assert lines[1].startswith("  why:  ")
    assert lines[2].startswith("  next: ")
    assert not [words for words in told if words not in error], error


def test_every_wrong_mark_of_a_module_is_told(project: Project) -> None:
    """In one run; methods of classes as well."""
    project.store()
    project.pytester.makepyfile(
        test_functions="""
        import pytest

        @pytest.mark.regen(typo=1)
        def test_a():
            pass

        @pytest.mark.regen(attempts="2")
        def test_b():
            pass
        """,
        test_class="""
        import pytest

        @pytest.mark.cassette(drift="no")
        class TestC:
            def test_c(self):
                pass
        """,
    )

    result = project.run()

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    told = ("test_a: regen(typo=1)", "test_b: regen(attempts='2')", "drift='no'")
    assert not [words for words in told if words not in text], text
    assert "INTERNALERROR" not in result.stdout.str()


@pytest.mark.parametrize(
    "mark",
    [
        "regen",
        "regen(types='Project')",
        "regen(types='#/components/schemas/Owner')",
        f"regen('{STORE}', ['Owner'], 2, 'DRIFT')",
        "regen(store=__import__('pathlib').Path('generated') / 'GET_v1_projects')",
        "cassette('other', 'none')",
    ],
)
def test_a_right_mark_is_none_of_our_business(project: Project, mark: str) -> None:
    """Declared names, those of schemas and their places; a path as text or as a path."""
    write(project, mark)

    project.run("test_own.py").assert_outcomes(passed=1)


def test_a_damaged_store_is_told_by_its_own_item(project: Project) -> None:
    """A mark that names it is no error of its own: nobody knows which types it has."""
    write(project, "regen(types='Owner')")
    (project.path / STORE / "prompts.json").write_text("{", "utf-8")

    project.run("test_own.py").assert_outcomes(passed=1)


def test_types_without_a_store_that_can_be_told(project: Project) -> None:
    """With several stores it could be any."""
    write(project, "regen(types='Owner')")
    project.store("GET_other")

    result = project.run("test_own.py")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_own.py::test_it: which store?"])


@pytest.mark.parametrize(
    "hook",
    [
        "def pytest_collection_modifyitems(items):\n    for item in items: ",
        "def pytest_itemcollected(item): ",
        "def pytest_runtest_setup(item): ",
    ],
)
@pytest.mark.parametrize("mark", ["regen(stores='x')", "cassette(nam='x')"])
def test_a_mark_that_a_hook_adds_is_checked_before_the_test(
    project: Project, hook: str, mark: str
) -> None:
    """As the same three lines, without the plugin's own."""
    write(project, "skipif(False, reason='')", "regen_store()")
    add = f"item.add_marker(pytest.mark.{mark})"
    project.pytester.makeconftest(f"import pytest\n\n\n{hook}{add}\n")

    result = project.run("test_own.py")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"test_own.py::test_it: {mark}: unknown argument"])
    result.stdout.no_fnmatch_line("*pytest_regen/*")


def test_a_question_without_an_answer_shows_no_line_of_ours(project: Project) -> None:
    """The fixture cannot know which of two stores is meant."""
    write(project, "skipif(False, reason='')", "regen_store()")
    project.store("GET_other")

    result = project.run("test_own.py")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_own.py::test_it: which store?"])
    result.stdout.no_fnmatch_line("*pytest_regen/*")
