"""Marks that mean nothing are refused while tests are collected, before anything is paid."""

import pytest
from function_project import MODULE, FunctionProject
from plugin_project import Project

STORE = "generated/GET_v1_projects"


def write(project: Project, *marks: str) -> None:
    """Make a module with a test for each mark."""
    project.store()
    functions = "def initials(name):\n    return name[0]\n\n\ndef surname(name):\n    return name\n"
    project.pytester.makepyfile(names=functions)
    tests = (
        f"@pytest.mark.{mark}\ndef test_{number}(regen_store):\n    pass\n"
        for number, mark in enumerate(marks)
    )
    project.pytester.makepyfile(test_own="import pytest\n\n" + "\n".join(tests))


WRONG = {
    "regen(stores='x')": ["unknown argument", "it takes store, types"],
    "regen(attempts=0)": ["whole number of at least 1"],
    "regen(on={'A': 1})": ["a name or a list of names"],
    "regen(store='generated/GET_v1_project')": ["there is no store", f"there is {STORE}"],
    "regen('src/a.py::f')": ["there is no store", "regen(unit='src/a.py::f')"],
    "regen(unit='names.py::initials')": ["no marker lines", "init names.py::initials --yes"],
    "regen(unit='names.py::surnam')": ["surname is in names.py", 'unit="names.py::surname"'],
    "regen(unit='old.py::surname')": ["surname is in names.py", 'unit="names.py::surname"'],
    "regen(unit='names.py::f')": ["no kind claims the file", "correct the mark"],
    "cassette(nam='x')": ["unknown argument", "it takes name, record"],
    "cassette(record='onec')": ["it is one of"],
    "cassette(normalize=1)": ["it is a function"],
    "cassette(drift='maybe')": ["it is one of fail, warn, ignore"],
    "cassette(name='../../x')": ["leads out of"],
    "cassette(name='a.json')": ["name it a.yaml"],
    "cassette(ignore=['x'])": ["not a path into JSON"],
    "cassette(passthrough_hosts='https://prices.test/')": ["passthrough_hosts"],
}
"""What is said of each mark."""


def test_a_wrong_mark_is_an_error_of_its_test(project: Project) -> None:
    """Three lines: the value, why with what would be right, and what to do; no line of ours.

    One that a hook adds is checked like those that are written.
    """
    write(project, *[*WRONG][:-1], "skipif(False, reason='')")
    number, mark = len(WRONG) - 1, [*WRONG][-1]
    hook = f"if item.name == 'test_{number}': item.add_marker(pytest.mark.{mark})"
    project.pytester.makeconftest(
        f"import pytest\n\n\ndef pytest_runtest_setup(item):\n    {hook}\n"
    )

    result = project.run()

    result.assert_outcomes(passed=3, errors=len(WRONG))
    text = result.stdout.str().partition("short test summary")[0]
    for number, (mark, told) in enumerate(WRONG.items()):
        error = text.partition(f"ERROR at setup of test_{number} ")[2].partition("\n____")[0]
        lines = [line for line in error.splitlines()[1:] if line and not line.startswith("==")]
        whys = [line for line in lines if line.startswith("  why:  ")]
        # That a name leads nowhere is a reason in itself.
        assert whys or "cassette(name" in mark, error
        assert len(lines) == 2 + len(whys), error
        assert lines[0].startswith(f"test_own.py::test_{number}: ")
        assert lines[-1].startswith("  next: ")
        assert not [words for words in told if words not in error], error
        shows_value = ("there is no", "is not a path", "is not a host", "leads out")
        assert mark in error or any(words in error for words in shows_value), error


def test_a_wrong_mark_fails_no_unit(pytester: pytest.Pytester) -> None:
    """Not even one whose only tests are those that marks name."""
    functions = FunctionProject(pytester)
    example = '    >>> minutes("30m")\n    30\n'
    module = MODULE.replace(example, "")
    mark = "@pytest.mark.regen(unit='src/acme/times.py::minuts')"
    functions.write(f"{mark}\ndef test_near():\n    pass\n", module=module)

    pytester.runpytest_inprocess().assert_outcomes(passed=1, errors=1)


def test_a_right_mark_is_none_of_our_business(project: Project) -> None:
    """Declared names, those of schemas and their places; a path as text or as a path.

    One that names a damaged store is no error of its own: nobody knows which types it has.
    """
    write(
        project,
        "regen",
        "regen(types='Project')",
        "regen(types='#/components/schemas/Owner')",
        f"regen('{STORE}', ['Owner'], 2, 'DRIFT')",
        "regen(store=__import__('pathlib').Path('generated') / 'GET_v1_projects')",
        "cassette('other', 'none')",
    )

    project.run("test_own.py").assert_outcomes(passed=6)
    (project.path / STORE / "prompts.json").write_text("{", "utf-8")
    project.run("test_own.py").assert_outcomes(passed=6)
