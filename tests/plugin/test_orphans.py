"""Cassettes that belong to no test: told at the end of a full run, and never wrongly."""

import textwrap
from pathlib import Path

import pytest
from plugin_project import Project

SUITE = """
    import pytest

    def test_one(cassette): pass

    def test_two(cassette): pass

    @pytest.mark.skip(reason="not here")
    def test_skipped(cassette): pass

    @pytest.mark.parametrize("x", ["a", "b"])
    def test_many(cassette, x): pass

    class TestIn:
        def test_class(self, cassette): pass

    @pytest.mark.vcr
    def test_marked(): pass
"""
OWN = [
    "test_one", "test_two", "test_skipped", "test_many[a]", "test_many[b]", "TestIn.test_class",
    "test_marked",
]  # fmt: skip
SAID = ": no test of this run asks for it; delete it if none of another run does"
ORPHAN = f"orphan: cassettes/test_suite/test_gone.yaml{SAID}"
RECORDING = """\
interactions:
- request: {method: GET, uri: "http://x.invalid/", headers: {}, body: null}
  response:
    status: {code: 200, message: OK}
    headers: {}
    body: {string: ""}
version: 1
"""


def keep(project: Project, *names: str, module: str = "test_suite") -> None:
    """Put recordings where those of a module's tests are looked for."""
    for name in names:
        file = project.path / "cassettes" / module / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(RECORDING, "utf-8")


def orphans(result: pytest.RunResult) -> list[str]:
    """Return the lines about orphans."""
    return sorted(line for line in result.outlines if line.startswith("orphan:"))


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A suite in which every test has a recording, and one recording no test."""
    project = Project(pytester)
    pytester.makeini("[pytest]\nregen_unplayed = ignore\n")
    pytester.makepyfile(test_suite=SUITE)
    keep(project, *OWN, "test_gone")
    return project


def test_a_full_run_tells(project: Project, spread: tuple[str, ...]) -> None:
    """Once, with and without workers; tests that are skipped keep their recordings."""
    result = project.run(*spread)

    result.assert_outcomes(passed=6, skipped=1)
    assert orphans(result) == [ORPHAN]


@pytest.mark.parametrize(
    "words",
    [
        ["test_suite.py"],
        ["."],
        ["test_suite.py::test_one"],
        ["-k", "one"],
        ["-kone"],
        ["-m", "vcr"],
        ["--deselect", "test_suite.py::test_one"],
        ["--deselect=test_suite.py::test_one"],
        ["--lf"],
        ["--last-failed"],
        ["--sw"],
        ["--collect-only"],
    ],
    ids=" ".join,
)
def test_a_run_of_some_tests_says_nothing(project: Project, words: list[str]) -> None:
    """Whoever asked for less is not told of the rest."""
    assert orphans(project.run(*words)) == []


@pytest.mark.parametrize(
    "words", [["test_suite.py"], pytest.param(["-k", "one"], marks=pytest.mark.sweep)], ids=" ".join
)
def test_a_run_of_some_tests_says_nothing_with_workers(project: Project, words: list[str]) -> None:
    """What the first process was given, its workers know."""
    assert orphans(project.run(*words, "-n", "2")) == []


def test_what_failed_last_runs_alone_and_the_rest_is_no_orphan(
    project: Project, spread: tuple[str, ...]
) -> None:
    """With ``--lf`` pytest does not even collect the tests that passed."""
    broken = textwrap.dedent(SUITE).replace("def test_one(cassette): pass",
                                            "def test_one(cassette): assert 0")  # fmt: skip
    project.pytester.makepyfile(test_suite=broken)
    project.run().assert_outcomes(passed=5, failed=1, skipped=1)

    result = project.run("--lf", *spread)

    result.assert_outcomes(failed=1)
    assert orphans(result) == []


@pytest.mark.parametrize(
    "ini", ["addopts = -m 'not vcr'", "addopts = --deselect=test_suite.py::test_one"]
)
def test_a_choice_of_the_project_itself_is_a_full_run(project: Project, ini: str) -> None:
    """What its settings leave out is left out every time; those tests keep their recordings."""
    project.pytester.makeini(f"[pytest]\nregen_unplayed = ignore\n{ini}\n")

    assert orphans(project.run("-W", "ignore")) == [ORPHAN]


def test_addopts_with_lf_are_no_full_run(project: Project) -> None:
    """What pytest did not collect cannot be judged, wherever the option stands."""
    project.pytester.makeini("[pytest]\nregen_unplayed = ignore\naddopts = --lf\n")
    broken = SUITE.replace("def test_one(cassette): pass", "def test_one(cassette): assert 0")
    project.pytester.makepyfile(test_suite=broken)
    project.run()

    assert orphans(project.run()) == []


REGENERATING = """
    import pytest

    @pytest.mark.regen
    def test_regenerating(): pass

    @pytest.mark.vcr
    def test_both(cassette): pass
"""


def test_what_a_marked_test_regenerates_is_no_orphan(project: Project) -> None:
    """It is recorded where the test's cassette would be; a test may have both kinds."""
    project.pytester.makepyfile(test_suite=REGENERATING)
    (project.path / "cassettes/test_suite").rename(project.path / "elsewhere")
    keep(project, "test_regenerating", "test_both", "test_gone")

    assert orphans(project.run("-W", "ignore")) == [ORPHAN]


@pytest.mark.parametrize("stop", ["-x", "--maxfail=1", "interrupted"])
def test_a_run_that_stopped_early_says_nothing(project: Project, stop: str) -> None:
    """It did not come to all tests, and what they use is not known."""
    body = "pytest.exit('stop')" if stop == "interrupted" else "assert 0"
    broken = SUITE.replace("def test_one(cassette): pass", f"def test_one(cassette): {body}")
    project.pytester.makepyfile(test_suite=broken)

    result = project.run(*([] if stop == "interrupted" else [stop]))

    assert orphans(result) == []


DYNAMIC = """
    import pytest

    @pytest.fixture
    def cassette_config():
        return {"name": "of_the_fixture"}

    @pytest.fixture
    def lazy(request):
        return request.getfixturevalue("cassette")

    def test_plain(cassette): pass

    @pytest.mark.cassette(name="of_the_mark")
    def test_lazy(lazy): pass

    @pytest.mark.vcr("more.yaml")
    @pytest.mark.default_cassette("given.yaml")
    def test_marked(): pass
"""


def test_what_was_used_is_no_orphan(project: Project, spread: tuple[str, ...]) -> None:
    """However a test came to its cassette: by a fixture that asks for it, by a name given there."""
    project.pytester.makepyfile(test_suite=DYNAMIC)
    (project.path / "cassettes/test_suite").rename(project.path / "elsewhere")
    keep(project, "of_the_fixture", "of_the_mark", "more", "given", "test_gone")

    result = project.run(*spread)

    result.assert_outcomes(passed=3)
    assert orphans(result) == [ORPHAN]


def test_whole_modules_may_be_gone(project: Project, spread: tuple[str, ...]) -> None:
    """Their file, or every test in it that used a cassette; other folders are not looked at."""
    keep(project, "test_a", module="test_removed")
    keep(project, "test_a", module="test_emptied")
    keep(project, "test_by_hand", module="test_emptied")
    keep(project, "Type", module="regen/GET_x")
    keep(project, "plain", module="fixtures")
    project.pytester.makepyfile(test_emptied="NAME = 'test_by_hand.yaml'\ndef test_b(): pass")

    result = project.run(*spread)

    assert orphans(result) == [
        f"orphan: cassettes/test_emptied/test_a.yaml{SAID}",
        f"orphan: cassettes/test_removed/test_a.yaml{SAID}",
        ORPHAN,
    ]


def test_a_module_that_cannot_be_collected_keeps_its_recordings(project: Project) -> None:
    """Nobody knows what its tests would use."""
    project.pytester.makepyfile(test_broken="import not_there\ndef test_a(cassette): pass")
    project.pytester.makepyfile(
        test_left="import pytest\npytest.skip('not here', allow_module_level=True)"
    )
    keep(project, "test_a", module="test_broken")
    keep(project, "test_a", module="test_left")

    broken = project.run("--continue-on-collection-errors")

    assert orphans(broken) == [ORPHAN]


def test_no_recording_is_deleted(project: Project) -> None:
    """It is for people to decide."""
    project.run()

    assert Path(project.path / "cassettes/test_suite/test_gone.yaml").exists()


def test_what_a_module_names_is_no_orphan(project: Project) -> None:
    """Used elsewhere, by a test that is skipped, or by its own ``use_cassette``; no gone case."""
    keep(project, "test_elsewhere", "of_fixture", "direct", "test_many[c]")
    project.pytester.makepyfile(
        test_suite=SUITE
        + """
    import sys
    from pathlib import Path
    from pytest_regen.cassettes import use_cassette

    if sys.platform == "nowhere":
        def test_elsewhere(cassette): pass

    class TestNamed:
        @pytest.fixture
        def cassette_config(self): return {"name": "of_fixture"}

        @pytest.mark.skip(reason="not here")
        def test_it(self, cassette): pass

    def test_direct():
        with use_cassette(Path(__file__).parent / "cassettes" / "test_suite" / "direct.yaml"):
            pass
"""
    )

    gone = f"orphan: cassettes/test_suite/test_many[c].yaml{SAID}"
    assert orphans(project.run()) == [ORPHAN, gone]
