"""A test with a cassette sends nothing past it, however it came to have one."""

import textwrap

import pytest
from plugin_project import Project

from pytest_regen.emulator import Emulator

ASKING = """
    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    def ask():
        said = (Message("user", "hello"),)
        return AnthropicProvider().send(TurnRequest("", said, "claude-sonnet-5-5", 100)).text
"""


@pytest.mark.parametrize(
    "test",
    [
        """
    @pytest.mark.cassette
    class TestIt:
        def test_it(self):
            ask()
""",
        """
    @pytest.fixture(autouse=True)
    def agent():
        return ask()

    def test_it(cassette):
        assert cassette.played + cassette.recorded == 1
""",
    ],
    ids=["class", "automatic"],
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


# Marks that a test is given after it was collected

LATE = {
    "wrapper": """
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(items):
            result = yield
            for item in items:
                if "wrapper" in item.path.parts:
                    item.add_marker(MARK)
            return result
    """,
    "own_markers": """
        def pytest_itemcollected(item):
            item.own_markers.append(MARK.mark)
    """,
    "set_up": """
        def pytest_runtest_setup(item):
            item.add_marker(MARK)
    """,
    "module": """
        @pytest.fixture(scope="module", autouse=True)
        def marked(request):
            request.node.add_marker(MARK)
    """,
}
"""What a conftest does, by the folder it lies in."""

PLAIN = """
    import os
    import httpx2
    import pytest

    def ask(words):
        return httpx2.get(os.environ["ANTHROPIC_BASE_URL"] + "/v1/models?" + words).content

    @pytest.fixture
    def agent():
        return ask("agent")

    def test_plain():
        ask("plain")

    def test_fixture(tmp_path, agent):
        assert agent
"""
TESTS = ["test_fixture", "test_plain"]
COUNT = len(TESTS) * len(LATE)


def write_late(project: Project, mark: str) -> None:
    """Write a folder for each way in which a test may be given a mark."""
    project.pytester.makeini("[pytest]\naddopts = --import-mode=importlib\n")
    for way, conftest in LATE.items():
        folder = project.path / way
        folder.mkdir()
        head = f"import pytest\nMARK = pytest.mark.{mark}\n"
        (folder / "conftest.py").write_text(head + textwrap.dedent(conftest), "utf-8")
        (folder / "test_m.py").write_text(textwrap.dedent(PLAIN), "utf-8")


@pytest.mark.parametrize(
    ("mark", "record"), [("vcr", "--record-mode=once"), ("cassette", "--regen-record=once")]
)
def test_a_mark_counts_whenever_it_was_added(
    project: Project, emulator: Emulator, mark: str, record: str
) -> None:
    """By a hook at any time before set-up, or by a fixture of a wider scope: nothing is sent."""
    write_late(project, mark)

    project.run(record).assert_outcomes(passed=COUNT)
    assert len(emulator.requests) == COUNT
    for way in LATE:
        assert sorted(path.stem for path in (project.path / way).rglob("*.yaml")) == TESTS, way

    project.run().assert_outcomes(passed=COUNT)
    assert len(emulator.requests) == COUNT


TOO_LATE = """
    import os
    import httpx2
    import pytest

    @pytest.fixture(autouse=True)
    def late(request):
        request.node.add_marker(pytest.mark.{mark})

    def test_it():
        httpx2.get(os.environ["ANTHROPIC_BASE_URL"] + "/v1/models")
"""


@pytest.mark.parametrize("mark", ["vcr", "cassette", "block_network"])
def test_a_mark_that_comes_too_late_is_an_error(
    project: Project, emulator: Emulator, mark: str
) -> None:
    """Other fixtures of the test are there by now; nothing is sent, and the message says when."""
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(test_m=textwrap.dedent(TOO_LATE.format(mark=mark)))

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            f"test_m.py::test_it: the mark {mark} was added when the test was set up already",
            "  why: *",
            "  next: *pytest_collection_modifyitems*",
        ]
    )
    assert not emulator.requests
