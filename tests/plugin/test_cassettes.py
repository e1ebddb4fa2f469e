"""The cassette of a test in pytest: drift, misses in the summary, unplayed recordings."""

from collections.abc import Iterator

import pytest
from plugin_project import Project, emulated
from recorded_talk import CHANGED, FILE, TALK, say


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project without stores, an emulated API that its environment points to."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    with emulated(monkeypatch, say):
        yield project


def chunks(project: Project, file: str = FILE) -> list[str]:
    """Return the recordings of a cassette, one text each."""
    return (project.path / file).read_text("utf-8").split("\n- key: ")[1:]


@pytest.mark.parametrize("where", ["marker", "fixture", "ini", "table"])
def test_drift_may_be_tolerated(project: Project, where: str) -> None:
    """Replayed in recorded order, listed at the end, wherever the choice stands."""
    project.pytester.makepyfile(test_talk=TALK)
    project.run("--regen-record=once").assert_outcomes(passed=1)
    test = CHANGED
    if where == "marker":
        mark = '@pytest.mark.cassette(drift="warn")\n    def test'
        test = CHANGED.replace("def test", mark)
    elif where == "fixture":
        config = (
            '@pytest.fixture\n    def cassette_config(): return {"drift": "warn"}\n\n    def test'
        )
        test = CHANGED.replace("def test", config)
    elif where == "ini":
        project.pytester.makeini("[pytest]\nregen_drift = warn\n")
    else:
        project.pytester.makepyprojecttoml('[tool.pytest-regen.cassettes]\ndrift = "warn"\n')
    project.pytester.makepyfile(test_talk=test)

    result = project.run("-W", "ignore")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "=*= cassettes =*",
            "drift: test_talk.py::test_talk: test_talk.yaml: POST /v1/messages *turn 3*",
            '*$.messages[[]4].content: recorded "third", sent "third, reworded"',
            "next: pytest test_talk.py::test_talk --regen-record *",
        ]
    )


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


def test_a_failing_test_has_other_worries(project: Project) -> None:
    """Recordings that a failing test did not come to are not held against it."""
    project.pytester.makepyfile(test_talk=TALK)
    project.run("--regen-record=once").assert_outcomes(passed=1)
    project.pytester.makepyfile(test_talk=UNPLAYED.replace("pass", "assert False"))

    project.run("-W", "ignore").assert_outcomes(failed=1)


def test_recordings_of_a_failed_test_wait(project: Project) -> None:
    """They stay beside the cassette unless they are asked for."""
    project.pytester.makepyfile(test_talk=TALK + "\n        assert False\n")

    result = project.run("--regen-record=once")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_talk.py::test_talk failed: *test_talk.yaml.partial; *"])
    assert not (project.path / FILE).exists()
    assert (project.path / f"{FILE}.partial").exists()

    project.run("--regen-record=once", "--regen-keep-failed").assert_outcomes(failed=1)
    assert len(chunks(project)) == 5
    assert not (project.path / f"{FILE}.partial").exists()


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("passthrough_hosts='https://prices.test/'", "passthrough_hosts"),
        ("drift='maybe'", "it is one of fail, warn, ignore"),
        ("ignore=['x']", "no path into JSON"),
        ("name='../../x'", "leads out of"),
        ("name='x/'", "names no file"),
        ("name='a.json'", "name it a.yaml"),
    ],
)
def test_wrong_arguments_are_told(project: Project, argument: str, told: str) -> None:
    """The message says what would be right."""
    marked = TALK.replace("def test", f"@pytest.mark.cassette({argument})\n    def test")
    project.pytester.makepyfile(test_talk=marked)

    result = project.run("-W", "ignore")

    assert told in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("name", ["a/b-c.d", "nul.txt", "ü" * 200, "a\\nb"])
def test_any_name_becomes_a_safe_file(project: Project, name: str) -> None:
    """Separators make folders below the module's; reserved and long names get a safe one."""
    marked = TALK.replace("def test", f"@pytest.mark.cassette(name={name!r})\n    def test")
    project.pytester.makepyfile(test_talk=marked)

    project.run("--regen-record=once").assert_outcomes(passed=1)
    project.run("-W", "ignore").assert_outcomes(passed=1)

    assert (name == "a/b-c.d") == (project.path / "cassettes/test_talk/a/b-c.d.yaml").exists()
    [file] = (project.path / "cassettes/test_talk").rglob("*.yaml")
    assert len(file.name.encode()) <= 255
    assert file.name.lower().partition(".")[0] not in {"con", "nul"}
    assert not set(file.name) & set('<>:"|?*\n')


def test_the_project_keeps_names_of_its_own_out(project: Project) -> None:
    """What the hook's functions take out is not written, and the test replays all the same."""
    project.pytester.makeconftest(
        """
        def pytest_regen_scrubbers(config):
            return [lambda text: text.replace("third", "3rd")]
        """
    )
    project.pytester.makepyfile(test_talk=TALK)

    project.run("--regen-record=once").assert_outcomes(passed=1)

    text = (project.path / FILE).read_text("utf-8")
    assert "third" not in text
    assert text.count("3rd") == 3
    project.run("-W", "ignore").assert_outcomes(passed=1)


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
    """It does so in every run, and so is recorded like a test that passes."""
    project.pytester.makepyfile(test_talk=TALK + f"\n        {end}\n")

    recorded, replayed = project.run("--regen-record=once"), project.run()

    assert recorded.parseoutcomes() == replayed.parseoutcomes() == {outcome: 1}
