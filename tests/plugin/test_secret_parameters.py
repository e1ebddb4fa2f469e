"""Tests whose parameters are credentials: nothing the plugin writes is named by one or shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from planted_secrets import UNLISTED
from plugin_project import Project, emulated

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
OTHER = "ghp_" + "z9Y8x7W6v5U4" * 3
TEST = """
    import logging

    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    @pytest.mark.parametrize("key", ["{secret}", "{other}"])
    @pytest.mark.cassette{options}
    def test_talk(cassette, key):
        said = (Message("user", f"My key is {{key}}, {words}."),)
        reply = AnthropicProvider().send(TurnRequest("Be brief.", said, "claude-sonnet-5-5", 200))
        logging.getLogger("talk").warning("said %s", reply.text)
        assert reply.text == "Noted." {more}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project without stores, an emulated API that its environment points to."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    with emulated(monkeypatch, lambda _body: "Noted."):
        yield project


def write(
    project: Project,
    *,
    words: str = "keep it",
    options: str = "",
    more: str = "",
    secrets: tuple[str, str] = (SECRET, OTHER),
    mark: str = "cassette",
) -> None:
    """Write the tests."""
    secret, other = secrets
    text = TEST.format(secret=secret, other=other, words=words, options=options, more=more)
    if mark == "vcr":
        text = text.replace("mark.cassette", "mark.vcr").replace("(cassette, ", "(")
    project.pytester.makepyfile(test_talk=text)


def revealing(project: Project, secrets: tuple[str, str] = (SECRET, OTHER)) -> list[Path]:
    """Return what this plugin wrote that shows a parameter; pytest's own files are its own."""
    own = project.path / ".pytest_cache" / "v" / "cache"
    return [
        path.relative_to(project.path)
        for path in project.path.rglob("*")
        if path.name != "test_talk.py" and "__pycache__" not in path.parts
        if own not in path.parents
        if any(
            secret[8:] in path.name or (path.is_file() and secret[8:].encode() in path.read_bytes())
            for secret in secrets
        )
    ]


@pytest.mark.parametrize("mark", ["vcr", "cassette"])
def test_each_has_a_cassette_without_it(project: Project, mark: str) -> None:
    """Two parameters are two files; they are found again in replay."""
    write(project, mark=mark)

    project.run("--regen-record=once").assert_outcomes(passed=2)
    replayed = project.run()

    replayed.assert_outcomes(passed=2)
    assert len(list((project.path / "cassettes" / "test_talk").iterdir())) == 2
    assert revealing(project) == []


def test_newer_kinds_show_neither(project: Project) -> None:
    """Names of files, what a failed test recorded beside its cassette, reports in JSON and HTML."""
    one, other = (UNLISTED[kind] for kind in ("webhook", "GitLab runner"))
    write(project, secrets=(one, other), more="and False")

    project.run("--regen-record=once", "--regen-report=report.json").assert_outcomes(failed=2)
    project.run("--regen-report=report.html")

    assert (project.path / "report.html").exists()
    assert len(list((project.path / "cassettes" / "test_talk").glob("*.partial"))) == 2
    assert revealing(project, (one, other)) == []


def test_drift_shows_none(project: Project) -> None:
    """Neither the differences of a miss nor of tolerated drift, nor what is written of them."""
    write(project)
    project.run("--regen-record=once")
    for options, outcome in (("", "failed"), ('(drift="warn")', "passed")):
        write(project, words="and keep it for a very long time, " * 4, options=options)

        project.run("-W", "ignore", "--regen-report=report.json").assert_outcomes(**{outcome: 2})
        project.run("-W", "ignore", "--regen-report=report.html")

        assert (project.path / "report.json").exists()
        assert (project.path / "report.html").exists()
        assert list((project.path / ".pytest_cache" / "d" / "regen").glob("*.txt"))
        assert revealing(project) == []


def test_what_pytest_recording_named_by_one_is_found(project: Project) -> None:
    """A suite that switches has its cassettes already; they keep their names."""
    write(project, mark="vcr")
    project.run("--record-mode=once").assert_outcomes(passed=2)
    folder = project.path / "cassettes" / "test_talk"
    theirs = {f"test_talk[{key}].yaml" for key in (SECRET, OTHER)}
    for file, name in zip(sorted(folder.iterdir()), sorted(theirs), strict=True):
        file.rename(folder / name)

    result = project.run("--record-mode=none", "-W", "ignore")

    result.assert_outcomes(passed=2)
    assert {file.name for file in folder.iterdir()} == theirs
