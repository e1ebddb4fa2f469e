"""``cassettes check`` after real runs of pytest: what it names is so, and its advice works."""

from collections.abc import Iterator

import pytest
from cassette_commands import checked, codes
from plugin_project import Project, emulated
from recorded_talk import say

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project without stores, an emulated API that its environment points to."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    monkeypatch.chdir(project.path)
    with emulated(monkeypatch, say):
        yield project


ASK = """
    import anthropic
    import pytest

    def ask(text="one", **more):
        with anthropic.Anthropic() as client:
            client.messages.create(
                model="claude-sonnet-5-5", max_tokens=9,
                messages=[{"role": "user", "content": text}], **more
            )
"""
NAMED = """
    def test_plain(cassette): ask()

    @pytest.mark.parametrize("x", ["a", "b/c d", "long " * 80])
    def test_parameters(cassette, x): ask(x)

    @pytest.mark.cassette(name="grüße an дом")
    def test_foreign(cassette): ask("zero")

    @pytest.mark.cassette(name="folder/inner.v2")
    def test_folder(cassette): ask("three")

    class TestClass:
        class TestInner:
            def test_inner(self, cassette): ask("five")

    @pytest.mark.vcr
    @pytest.mark.default_cassette("another.yaml")
    def test_marked_by_name(): ask("seven")
"""


def test_no_cassette_of_a_living_test_is_unused(project: Project, capsys: Capture) -> None:
    """Whatever its name is; that of a test that was renamed is."""
    project.pytester.makepyfile(test_m=ASK + NAMED)
    project.run("--regen-record=once").assert_outcomes(passed=8)
    assert len(list((project.path / "cassettes").rglob("*.yaml"))) == 8
    project.run().assert_outcomes(passed=8)
    capsys.readouterr()

    before = checked(capsys, "cassettes")[1]["findings"]
    renamed = (ASK + NAMED).replace("def test_plain", "def test_renamed")
    project.pytester.makepyfile(test_m=renamed)
    after = checked(capsys, "cassettes")[1]["findings"]

    assert before == []
    assert [(one["code"], one["path"]) for one in after] == [
        ("UNUSED", "cassettes/test_m/test_plain.yaml")
    ]


@pytest.mark.parametrize("kind", ["fixture", "mark"])
def test_what_drifted_in_the_last_run_is_told(project: Project, capsys: Capture, kind: str) -> None:
    """Until a run in which it did not; for tests that fail by it and those that do not."""
    test = "def test_a(cassette): ask('one')"
    if kind == "mark":
        test = "@pytest.mark.vcr\n    def test_a(): ask('one')"
    project.pytester.makepyfile(test_m=f"{ASK}\n    {test}")
    project.run("--regen-record=once").assert_outcomes(passed=1)

    project.pytester.makepyfile(test_m=f"{ASK}\n    {test}".replace("'one'", "'uno'"))
    project.run("-W", "ignore").assert_outcomes(
        passed=int(kind == "mark"), failed=int(kind == "fixture")
    )
    capsys.readouterr()
    drifted = checked(capsys, "cassettes")
    project.pytester.makepyfile(test_m=f"{ASK}\n    {test}")
    project.run().assert_outcomes(passed=1)
    capsys.readouterr()

    assert (drifted[0], codes(drifted[1])) == (0, ["DRIFT"])
    assert codes(checked(capsys, "cassettes")[1]) == []
