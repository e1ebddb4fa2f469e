"""``--regen``: what fails is regenerated alone, and passing only then is an outcome of its own."""

from collections.abc import Callable

import pytest
from plugin_project import Project

from pytest_regen.stores import RegenStore

STORE = "generated/GET_v1_projects"


def test_a_failing_type_is_regenerated_alone(project: Project) -> None:
    """Letter G, word REGENERATED, own count; only the page at fault was replaced."""
    path = project.broken()
    before = RegenStore.open(path)
    project.answered_by("Good")

    result = project.run("--regen")

    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"{STORE} .G.*"])
    after = RegenStore.open(path)
    changed = [key for key in after.pages if after.pages[key] != before.pages[key]]
    assert [(key.type_name, key.page) for key in changed] == [("Owner", 1)]
    assert project.run().ret == 0


def test_without_the_option_nothing_is_touched(project: Project) -> None:
    """A failing type stays as it is, and no provider is asked for."""
    path = project.broken()
    project.pytester.makeconftest("def pytest_regen_provider(config): raise SystemExit(9)")
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}

    result = project.run()

    assert result.ret == 1
    assert before == {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


def test_addopts_do_not_heal(project: Project) -> None:
    """The option must stand on the command line itself; a line says that it does not."""
    project.broken()
    project.answered_by("Good")
    project.pytester.makeini("[pytest]\nregen_stores = generated/*\naddopts = --regen\n")

    result = project.run()

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["--regen is not in effect: it comes from addopts*"])


@pytest.mark.parametrize(
    ("choice", "ci", "code"),
    [("auto", False, 0), ("regenerated", False, 1), ("never", True, 0), ("auto", True, 1)],
)
def test_what_fails_a_run_that_changed_a_store(
    project: Project, in_ci: Callable[[], None], choice: str, code: int, *, ci: bool
) -> None:
    if ci:
        in_ci()
    project.pytester.makeini(f"[pytest]\nregen_stores = generated/*\nregen_fail_on = {choice}\n")
    project.broken()
    project.answered_by("Good")

    assert project.run("--regen").ret == code


def test_a_dry_run_asks_for_nothing(project: Project) -> None:
    """It says which page would be asked; the type stays failed."""
    path = project.broken()
    project.pytester.makeconftest("def pytest_regen_provider(config): raise SystemExit(9)")
    before = (path / "pages.json").read_bytes()

    result = project.run("--regen-dry-run")

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"dry run: {STORE}::Owner: would ask page 1, about * tokens in"])
    assert (path / "pages.json").read_bytes() == before


@pytest.mark.parametrize(("choice", "code"), [("regenerated", 1), ("auto", 0)])
def test_a_session_that_learned_counts_as_regenerated(
    pytester: pytest.Pytester, in_ci: Callable[[], None], choice: str, code: int
) -> None:
    """It changes no store, so that ``auto`` lets it pass in CI, too."""
    in_ci()
    pytester.makeini(f"[pytest]\nregen_fail_on = {choice}\n")
    pytester.makepyfile(
        """
        import pytest
        from pytest_regen.turns import ScriptedProvider

        @pytest.fixture
        def regen_provider():
            return ScriptedProvider(["[1]", "[2]"])

        @pytest.mark.regen
        def test_two(generator_session):
            session = generator_session(system="s", response=list[int])
            assert session.ask("give") == [2]
        """
    )

    result = pytester.runpytest_inprocess()

    assert result.parseoutcomes() == {"regenerated": 1}
    assert result.ret == code
    assert ("exit 1: a test passed only after" in result.stdout.str()) == bool(code)


def test_one_attempt_is_no_regeneration(project: Project) -> None:
    """Attempts count calls of the test, the first included."""
    project.broken()
    project.answered_by("Good")

    project.run("--regen", "--regen-attempts=1").assert_outcomes(passed=2, failed=1)


def test_with_a_debugger_nothing_heals(project: Project) -> None:
    """Whoever starts a debugger wants to see the failure."""
    project.broken()
    asks = "def pytest_collection_modifyitems(config): config.option.usepdb = True\n"
    project.answered_by("Good", asks)

    project.run("--regen").assert_outcomes(passed=2, failed=1)
