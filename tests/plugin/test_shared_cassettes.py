"""A cassette that several tests use: no command and no check of one takes from the others."""

from collections.abc import Iterator

import pytest
from plugin_project import Project, emulated
from recorded_talk import say

ASKING = """
    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    def ask(prompt):
        said = (Message("user", prompt),)
        return AnthropicProvider().send(TurnRequest("", said, "claude-sonnet-5-5", 100)).text
"""
SHARED = (
    ASKING
    + """
    @pytest.mark.cassette(name="shared")
    class TestShared:
        def test_one(self, cassette): ask("one")
        def test_two(self, cassette): ask("two")
"""
)
FILE = "cassettes/test_it/shared.yaml"
ONE, TWO = "test_it.py::TestShared::test_one", "test_it.py::TestShared::test_two"


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose tests ask an emulated API."""
    project.pytester.makeini("[pytest]\n")
    with emulated(monkeypatch, say):
        yield project


def recordings(project: Project) -> int:
    """Return how many recordings the shared cassette holds."""
    return (project.path / FILE).read_text("utf-8").count("\n- key: ")


@pytest.mark.parametrize("mode", ["once", "rewrite"])
def test_tests_that_share_record_into_one_file(project: Project, mode: str) -> None:
    """Whatever the mode, the second adds to what the first recorded, and both replay."""
    project.pytester.makepyfile(test_it=SHARED)

    project.run(f"--regen-record={mode}").assert_outcomes(passed=2)

    assert recordings(project) == 2
    project.run().assert_outcomes(passed=2)
    project.run(ONE).assert_outcomes(passed=1)


def test_one_of_them_drops_nothing_of_the_others(project: Project) -> None:
    """Not even where the option asks for it, and the other runs not at all."""
    project.pytester.makepyfile(test_it=SHARED)
    project.run("--regen-record=once")
    project.pytester.makepyfile(test_it=SHARED.replace('ask("one")', 'ask("other")'))

    project.run(ONE, "--regen-record=new_episodes", "--regen-drop-unplayed")

    project.run().assert_outcomes(passed=2)
    assert recordings(project) == 3


def test_the_command_names_all_who_share(project: Project) -> None:
    """Alone, it adds; over all of them, it records everything anew."""
    project.pytester.makepyfile(test_it=SHARED)
    project.run("--regen-record=once")
    project.pytester.makepyfile(test_it=SHARED.replace('ask("one")', 'ask("other")'))

    missed = project.run()
    alone = project.run(ONE)

    missed.stdout.fnmatch_lines([f"*next: pytest {ONE} {TWO} --regen-record rewrite"])
    alone.stdout.fnmatch_lines([f"*next: pytest {ONE} --regen-record new_episodes"])
    project.run(ONE, TWO, "--regen-record=rewrite").assert_outcomes(passed=2)
    assert recordings(project) == 2
