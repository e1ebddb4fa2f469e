"""A test with a cassette sends nothing past it, however it came to have one."""

from collections.abc import Iterator

import pytest
from plugin_project import Project, emulated
from recorded_talk import say

from pytest_regen.emulator import Emulator

ASKING = """
    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    def ask():
        said = (Message("user", "hello"),)
        return AnthropicProvider().send(TurnRequest("", said, "claude-sonnet-5-5", 100)).text
"""


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An emulated API that the environment points to."""
    with emulated(monkeypatch, say) as running:
        yield running


@pytest.mark.parametrize(
    "test",
    [
        """
    @pytest.mark.cassette(name="x")
    def test_it():
        ask()
""",
        """
    @pytest.mark.cassette
    class TestIt:
        def test_it(self):
            ask()
""",
        """
    @pytest.fixture
    def agent():
        return ask()

    def test_it(agent, cassette):
        assert agent
""",
        """
    @pytest.fixture(autouse=True)
    def agent():
        return ask()

    def test_it(cassette):
        assert cassette.played + cassette.recorded == 1
""",
    ],
    ids=["mark", "class", "fixture", "automatic"],
)
def test_nothing_is_sent_past_a_cassette(project: Project, emulator: Emulator, test: str) -> None:
    """The mark implies the fixture, and other fixtures find the cassette in use."""
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(test_order=ASKING + test)

    missed = project.run()
    assert not emulator.requests
    assert missed.ret == 1

    project.run("--regen-record", "once").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert len(emulator.requests) == 1
