"""Tests whose cassette is none: pytest tells file and line, and shows no line but the project's."""

import os
import textwrap
from collections.abc import Iterator

import pytest
from bad_cassettes import BAD, GOOD
from plugin_project import Project, emulated

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


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project without stores, with a folder of cassettes."""
    pytester.path.joinpath("cassettes/test_m").mkdir(parents=True)
    project = Project(pytester)
    pytester.makeini("[pytest]\nregen_unplayed = ignore\n")
    return project


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A server that stands for the network."""
    with emulated(monkeypatch) as running:
        yield running


def suite(project: Project, template: str, *, lenient: bool) -> list[str]:
    """Write a module with a test for every bad file; return their names."""
    source, names = textwrap.dedent(ASK), []
    for name, bad in BAD.items():
        if lenient and not bad.vcr:
            continue
        config = '(serializer="json")' if bad.suffix == ".json" else ""
        test = name.replace("-", "_")
        filled = template.format(name=name, test=test, suffix=bad.suffix, config=config)
        source += textwrap.dedent(filled)
        folder = project.path / "cassettes/test_m"
        (folder / f"{name}{bad.suffix}").write_bytes(bad.content)
        names.append(name)
    project.pytester.makepyfile(test_m=source)
    return names


@pytest.mark.parametrize("template", [STRICT, LENIENT], ids=["cassette", "vcr"])
def test_each_is_told_in_the_summary(
    project: Project, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    """File and line in one line per test, the reason above; no internal error."""
    monkeypatch.setenv("COLUMNS", "400")
    names = suite(project, template, lenient=template is LENIENT)

    result = project.run("-W", "ignore", "--color=no")

    lines = [line for line in result.outlines if line.startswith(("FAILED ", "ERROR "))]
    assert len(lines) == len(names)
    for name in names:
        bad, test = BAD[name], name.replace("-", "_")
        place = f"cassettes/test_m/{name}{bad.suffix}"
        [line] = [one for one in lines if f"::test_{test} " in one]
        assert f" - {place}:{bad.line or ''}" in line
        assert "the cassette cannot be read" in line
        assert (project.path / place).read_bytes() == bad.content
    text = result.stdout.str() + result.stderr.str()
    assert all(BAD[name].says in text for name in names)
    for foreign in ("INTERNALERROR", "site-packages", "pytest_regen/cassettes", "pytest_plugin/"):
        assert foreign not in text, foreign


@pytest.mark.parametrize("mode", ["none", "once", "new_episodes"])
def test_a_good_one_beside_them_is_played(project: Project, mode: str) -> None:
    """One bad file is the business of one test."""
    folder = project.path / "cassettes/test_m"
    (folder / "good.yaml").write_bytes(GOOD)
    (folder / "empty.yaml").write_bytes(b"")
    source = textwrap.dedent(ASK)
    for name in ("good", "empty"):
        source += textwrap.dedent(STRICT.format(name=name, test=name, suffix=".yaml"))
    project.pytester.makepyfile(test_m=source)

    result = project.run("-W", "ignore", f"--regen-record={mode}")

    result.assert_outcomes(passed=1, errors=1)


DOORS = {"cassette": (STRICT, "--regen-record"), "vcr": (LENIENT, "--record-mode")}
FOREIGN = ("INTERNALERROR", "site-packages", "pytest_regen/cassettes", "pytest_plugin/")


@pytest.mark.skipif(os.name == "nt", reason="pipes")
@pytest.mark.parametrize("mode", ["none", "once", "new_episodes", "rewrite"])
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
    source = textwrap.dedent(ASK)
    for name in ("folder", "pipe", "linked"):
        filled = template.format(name=name, test=name, suffix=".yaml", config="")
        source += textwrap.dedent(filled)
    project.pytester.makepyfile(test_m=source)

    result = project.run("-W", "ignore", f"{option}={mode}")

    lines = [line for line in result.outlines if line.startswith(("FAILED ", "ERROR "))]
    assert len(lines) == 3
    assert all("the cassette cannot be " in line for line in lines)
    assert not any(word in result.stdout.str() for word in FOREIGN)
    assert sorted(folder.iterdir()) == before
    assert door == "vcr" or not emulator.requests


@pytest.mark.parametrize("door", DOORS)
def test_a_folder_that_cannot_be_made_is_told(
    project: Project, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """With the fixture before anything is sent."""
    monkeypatch.setenv("COLUMNS", "400")
    folder = project.path / "cassettes/test_m"
    folder.rmdir()
    folder.write_bytes(b"")
    template, option = DOORS[door]
    filled = template.format(name="c", test="c", suffix=".yaml", config="")
    project.pytester.makepyfile(test_m=textwrap.dedent(ASK) + textwrap.dedent(filled))

    result = project.run("-W", "ignore", f"{option}=rewrite")

    [line] = [line for line in result.outlines if line.startswith(("FAILED ", "ERROR "))]
    assert " - cassettes/test_m/c.yaml: the cassette cannot be written" in line
    assert not any(word in result.stdout.str() for word in FOREIGN)
    assert len(emulator.requests) == (1 if door == "vcr" else 0)
    assert folder.read_bytes() == b""


VANISHES = """
    import pathlib
    import pytest

    @pytest.fixture(autouse=True)
    def gone():
        (pathlib.Path(__file__).parent / "cassettes/test_m/c.yaml").unlink(missing_ok=True)
"""


@pytest.mark.parametrize("door", DOORS)
def test_a_file_that_vanishes_after_collection_is_missing(project: Project, door: str) -> None:
    """It was there when tests were collected, and is not when one asks."""
    template, _ = DOORS[door]
    (project.path / "cassettes/test_m/c.yaml").write_bytes(GOOD)
    filled = template.format(name="c", test="c", suffix=".yaml", config="")
    filled = filled.replace("cassette)", "gone, cassette)").replace("test_c()", "test_c(gone, vcr)")
    source = "".join(map(textwrap.dedent, (ASK, VANISHES, filled)))
    project.pytester.makepyfile(test_m=source.replace("autouse=True", 'scope="module"'))

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED test_m.py::test_c - no cassette at *"])


@pytest.mark.parametrize("name", ["a/b-c.d", "con", "x" * 300, "ü" * 200, "nul.txt", "a\nb"])
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
    assert "orphan" not in result.stdout.str()
    assert len(emulator.requests) == 1
    [file] = (file for file in (project.path / "cassettes").rglob("*") if file.is_file())
    assert len(file.name.encode()) <= 255


def test_a_name_no_system_has_is_told(project: Project) -> None:
    """Not by an error of the system's functions."""
    mark = "@pytest.mark.default_cassette('a\\0b')\n@pytest.mark.vcr\n"
    project.pytester.makepyfile(test_m=f"import pytest\n\n{mark}def test_a(): pass\n")

    result = project.run("-W", "ignore")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the cassette cannot be read", "*choose another name"])
    assert not any(word in result.stdout.str() for word in FOREIGN)
