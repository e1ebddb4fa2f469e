"""The cassette of a test in pytest: drift, sharing, unplayed recordings, ``cassettes check``."""

from collections.abc import Iterator

import pytest
from cassette_commands import checked, codes
from plugin_project import Project, emulated
from recorded_talk import FILE, TALK, say


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project without stores, an emulated API that its environment points to."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    monkeypatch.chdir(project.path)
    with emulated(monkeypatch, say):
        yield project


UNPLAYED = """
    def test_talk(cassette):
        pass
"""


@pytest.mark.parametrize("policy", ["fail", "warn", "ignore"])
def test_what_nobody_asked_for(project: Project, policy: str) -> None:
    """It fails a passing test, is told, or is nobody's business."""
    project.pytester.makepyfile(test_talk=TALK)
    project.run("--regen-record=once").assert_outcomes(passed=1)
    project.pytester.makeini(f"[pytest]\nregen_unplayed = {policy}\n")
    project.pytester.makepyfile(test_talk=UNPLAYED)

    result = project.run("-W", "ignore")

    result.assert_outcomes(passed=1, errors=1 if policy == "fail" else 0)
    told = "5 of 5 recordings were not asked for" in result.stdout.str()
    assert told == (policy != "ignore")
    project.pytester.makepyfile(test_talk=UNPLAYED.replace("pass", "assert False"))
    project.run("-W", "ignore").assert_outcomes(failed=1)  # which has other worries


@pytest.mark.parametrize(
    ("prompts", "drops"),
    [
        ("[]", f"rm {FILE}"),
        (
            '["first"]',
            "pytest test_talk.py::test_talk --regen-record new_episodes --regen-drop-unplayed",
        ),
    ],
)
def test_a_command_drops_what_nobody_asked_for(
    project: Project, monkeypatch: pytest.MonkeyPatch, prompts: str, drops: str
) -> None:
    """It is named, and takes no model."""
    project.pytester.makepyfile(test_talk=TALK)
    project.run("--regen-record=once").assert_outcomes(passed=1)
    project.pytester.makepyfile(test_talk=TALK.replace("in PROMPTS", f"in {prompts}"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")

    project.run().stdout.fnmatch_lines([f"*  next: {drops}"])

    if drops.startswith("rm"):
        (project.path / FILE).unlink()
    else:
        project.run(*drops.split()[1:]).assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_recordings_of_a_failed_test_wait(project: Project) -> None:
    """They stay beside the cassette unless they are asked for."""
    project.pytester.makepyfile(test_talk=TALK + "\n        assert False\n")

    result = project.run("--regen-record=once")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_talk.py::test_talk failed: *test_talk.yaml.partial; *"])
    assert not (project.path / FILE).exists()
    assert (project.path / f"{FILE}.partial").exists()

    project.run("--regen-record=once", "--regen-keep-failed").assert_outcomes(failed=1)
    assert (project.path / FILE).read_text("utf-8").count("\n- key: ") == 5
    assert not (project.path / f"{FILE}.partial").exists()


def test_headers_are_kept_and_left_out_as_the_project_says(project: Project) -> None:
    """The table holds for all tests; the mark of a test adds to it, and wins over the fixture."""
    project.pytester.makepyprojecttoml(
        '[tool.pytest-regen.cassettes]\ndrop_headers = ["date"]\nkeep_headers = ["user-agent"]\n'
    )
    config = '@pytest.fixture\n    def cassette_config(): return {"drop_headers": ["vary"]}\n\n    '
    mark = '@pytest.mark.cassette(drop_headers="Anthropic-*")\n    def test_talk'
    project.pytester.makepyfile(
        test_talk=TALK.replace("def test", config + "def test"),
        test_marked=TALK.replace("def test_talk", config + mark),
    )

    project.run("--regen-record=once").assert_outcomes(passed=2)

    for name, gone in (("talk", "vary:"), ("marked", "anthropic-")):
        file = f"cassettes/test_{name}/test_talk.yaml"
        text = (project.path / file).read_text("utf-8").lower()
        kept = {"vary:": "vary:", "anthropic-": "anthropic-ratelimit-"}
        assert "      date:" not in text
        assert "user-agent:" in text
        for option, line in kept.items():
            assert (line in text) == (option != gone), (name, line)


@pytest.mark.parametrize(
    ("end", "outcome"), [("pytest.skip('no')", "skipped"), ("pytest.xfail('so')", "xfailed")]
)
def test_what_skips_or_fails_as_expected_is_replayed(
    project: Project, end: str, outcome: str
) -> None:
    """It does so in every run, and is recorded like a test that passes; here by a reserved name."""
    named = TALK.replace("def test", '@pytest.mark.cassette(name="nul.txt")\n    def test')
    project.pytester.makepyfile(test_talk=named + f"\n        {end}\n")

    recorded, replayed = project.run("--regen-record=once"), project.run()

    assert recorded.parseoutcomes() == replayed.parseoutcomes() == {outcome: 1}
    (file,) = project.path.rglob("*.yaml")
    assert file.stem != "nul.txt"


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
SHARED_FILE = "cassettes/test_it/shared.yaml"
ONE, TWO = "test_it.py::TestShared::test_one", "test_it.py::TestShared::test_two"


def recordings(project: Project) -> int:
    """Return how many recordings the shared cassette holds."""
    return (project.path / SHARED_FILE).read_text("utf-8").count("\n- key: ")


@pytest.mark.parametrize("mode", ["once", "rewrite"])
def test_tests_may_share_a_cassette(project: Project, mode: str) -> None:
    """Whatever the mode, the second adds to what the first recorded, and both replay.

    One of them drops nothing of the others, not even where the option asks for it. The command that
    is named adds for one; over all who share, it records everything anew.
    """
    changed = SHARED.replace('ask("one")', 'ask("other")')
    project.pytester.makepyfile(test_it=SHARED)
    project.run(f"--regen-record={mode}").assert_outcomes(passed=2)
    assert recordings(project) == 2
    project.run(ONE).assert_outcomes(passed=1)
    project.pytester.makepyfile(test_it=changed)

    missed, alone = project.run(), project.run(ONE)

    missed.stdout.fnmatch_lines([f"*next: pytest {ONE} {TWO} --regen-record rewrite"])
    alone.stdout.fnmatch_lines([f"*next: pytest {ONE} --regen-record new_episodes"])
    project.run(ONE, "--regen-record=new_episodes", "--regen-drop-unplayed")
    project.run().assert_outcomes(passed=2)
    assert recordings(project) == 3
    project.run(ONE, TWO, "--regen-record=rewrite").assert_outcomes(passed=2)
    assert recordings(project) == 2


Capture = pytest.CaptureFixture[str]


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
    @pytest.mark.default_cassette("ü" * 200)
    def test_marked_by_name(): ask("seven")
"""


def test_no_cassette_of_a_living_test_is_unused(project: Project, capsys: Capture) -> None:
    """Whatever its name is, its file has a safe one; that of a test that was renamed is unused."""
    project.pytester.makepyfile(test_m=ASK + NAMED)
    project.run("--regen-record=once").assert_outcomes(passed=8)
    files = list((project.path / "cassettes").rglob("*.yaml"))
    assert len(files) == 8
    assert max(len(file.name.encode()) for file in files) <= 255
    assert (project.path / "cassettes/test_m/folder/inner.v2.yaml").exists()
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


def test_what_drifted_in_the_last_run_is_told(project: Project, capsys: Capture) -> None:
    """Until a run in which it did not; for tests that fail by it and those that do not."""
    tests = """
    def test_a(cassette): ask('one')

    @pytest.mark.vcr
    def test_b(): ask('one')
    """
    project.pytester.makepyfile(test_m=ASK + tests)
    project.run("--regen-record=once").assert_outcomes(passed=2)

    project.pytester.makepyfile(test_m=(ASK + tests).replace("'one'", "'uno'"))
    project.run("-W", "ignore").assert_outcomes(passed=1, failed=1)
    capsys.readouterr()
    drifted = checked(capsys, "cassettes")
    project.pytester.makepyfile(test_m=ASK + tests)
    project.run().assert_outcomes(passed=2)
    capsys.readouterr()

    assert (drifted[0], codes(drifted[1])) == (0, ["DRIFT", "DRIFT"])
    assert codes(checked(capsys, "cassettes")[1]) == []
