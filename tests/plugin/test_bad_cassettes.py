"""Tests whose cassette is none: pytest tells file and line, and shows no line but the project's."""

import os
import textwrap
from collections.abc import Mapping

import pytest
from bad_cassettes import BAD
from plugin_project import Project

from pytest_regen.emulator import Emulator

ASK = """
    import httpx2
    import os
    import pytest
    from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

    def ask():
        said = (Message("user", "Hello."),)
        request = TurnRequest("You are terse.", said, "claude-sonnet-5-5", 200)
        return AnthropicProvider().send(request)

    def ask_over_http():
        url = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
        return httpx2.post(f"{url}/v1/messages", json={})
"""
STRICT = """
    @pytest.mark.cassette(name="{name}{suffix}")
    def test_{test}(cassette): ask()
"""
LENIENT = """
    @pytest.mark.default_cassette("{name}{suffix}")
    @pytest.mark.vcr{config}
    def test_{test}(): ask_over_http()
"""


FOREIGN = ("INTERNALERROR", "site-packages", "pytest_regen/cassettes", "pytest_plugin/")
"""What stands in lines that are not the project's."""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project without stores, with a folder of cassettes."""
    pytester.path.joinpath("cassettes/test_m").mkdir(parents=True)
    project = Project(pytester)
    pytester.makeini("[pytest]\nregen_unplayed = ignore\n")
    return project


def write(project: Project, template: str, suffixes: Mapping[str, str], more: str = "") -> None:
    """Write a module with a test for each cassette, which is named with its suffix."""
    source = ASK + more
    for name, suffix in suffixes.items():
        config = '(serializer="json")' if suffix == ".json" else ""
        test = name.replace("-", "_")
        source += template.format(name=name, test=test, suffix=suffix, config=config)
    project.pytester.makepyfile(test_m=textwrap.dedent(source))


def failing(result: pytest.RunResult) -> list[str]:
    """Return the lines of the summary."""
    return [line for line in result.outlines if line.startswith(("FAILED ", "ERROR "))]


@pytest.mark.parametrize("template", [STRICT, LENIENT], ids=["cassette", "vcr"])
def test_each_is_told_in_the_summary(
    project: Project, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    """File and line in one line per test, the reason above; no internal error."""
    monkeypatch.setenv("COLUMNS", "400")
    bads = {name: bad for name, bad in [*BAD.items()][:3] if bad.vcr or template is STRICT}
    for name, bad in bads.items():
        (project.path / f"cassettes/test_m/{name}{bad.suffix}").write_bytes(bad.content)
    write(project, template, {name: bad.suffix for name, bad in bads.items()})

    result = project.run("-W", "ignore", "--color=no")

    lines = failing(result)
    assert len(lines) == len(bads)
    for name, bad in bads.items():
        test = name.replace("-", "_")
        place = f"cassettes/test_m/{name}{bad.suffix}"
        [line] = [one for one in lines if f"::test_{test} " in one]
        assert f" - {place}:{bad.line or ''}" in line
        assert "the cassette cannot be read" in line
        assert (project.path / place).read_bytes() == bad.content
    text = result.stdout.str() + result.stderr.str()
    assert all(bad.says in text for bad in bads.values())
    for foreign in FOREIGN:
        assert foreign not in text, foreign


DOORS = {"cassette": (STRICT, "--regen-record"), "vcr": (LENIENT, "--record-mode")}


@pytest.mark.skipif(os.name == "nt", reason="pipes")
@pytest.mark.parametrize("mode", ["none", "rewrite"])
@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_file_is_told(
    project: Project, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, door: str, mode: str
) -> None:
    """A folder, a pipe, a link to itself: in one line per test, without waiting or replacing."""
    monkeypatch.setenv("COLUMNS", "400")
    folder = project.path / "cassettes/test_m"
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    (folder / "linked.yaml").symlink_to("pipe.yaml")
    before = sorted(folder.iterdir())
    template, option = DOORS[door]
    write(project, template, dict.fromkeys(("folder", "pipe", "linked"), ".yaml"))

    result = project.run("-W", "ignore", f"{option}={mode}")

    lines = failing(result)
    assert len(lines) == 3
    assert all("the cassette cannot be " in line for line in lines)
    assert not any(word in result.stdout.str() for word in FOREIGN)
    assert sorted(folder.iterdir()) == before
    assert door == "vcr" or not emulator.requests


@pytest.mark.parametrize("name", ["a/b-c.d", "x" * 300, "ü" * 200])
def test_any_name_of_a_marked_test_becomes_a_file(
    project: Project, emulator: Emulator, name: str
) -> None:
    """As in pytest-recording, and where that fails, a name that can be."""
    mark = f"@pytest.mark.default_cassette({name!r})\n@pytest.mark.vcr\n"
    source = textwrap.dedent(ASK) + f"\n{mark}def test_a(): ask_over_http()\n"
    project.pytester.makepyfile(test_m=source)

    project.run("--record-mode=once").assert_outcomes(passed=1)
    result = project.run("-W", "ignore")

    result.assert_outcomes(passed=1)
    assert len(emulator.requests) == 1
    [file] = (file for file in (project.path / "cassettes").rglob("*") if file.is_file())
    assert len(file.name.encode()) <= 255
