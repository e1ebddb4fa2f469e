"""What many tests have in common is told once: by cause, with one command for all of them."""

import json
import shlex
import textwrap
from pathlib import Path

import pytest
import yaml
from plugin_project import Project
from syrupy.assertion import SnapshotAssertion

MODULE = """
    import httpx2
    import pytest

    def ask(**more):
        body = {"model": "m", "messages": [{"role": "user", "content": "one"}], **more}
        return httpx2.post("https://api.test/v1/messages", json=body)
"""
CASES = """
    @pytest.mark.vcr
    @pytest.mark.parametrize("n", range(14))
    def test_tools(n):
        ask(tool_choice={"type": "auto"})

    @pytest.mark.vcr
    @pytest.mark.parametrize("n", range(10))
    def test_system(n):
        ask(system="another", tool_choice={"type": "auto"})

    @pytest.mark.vcr
    def test_message():
        ask(messages=[{"role": "user", "content": "two"}])

    @pytest.mark.vcr
    def test_same():
        ask()
"""


def foreign(path: Path, body: str, uri: str = "https://api.test/v1/messages") -> None:
    """Write a cassette as vcrpy does."""
    headers = {"content-type": ["application/json"]}
    request = {"method": "POST", "uri": uri, "headers": headers, "body": body}
    pairs = [{"request": request, "response": RESPONSE}]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"version": 1, "interactions": pairs}), "utf-8")


RESPONSE = {
    "status": {"code": 200, "message": "OK"},
    "headers": {"content-type": ["application/json"]},
    "body": {"string": "{}"},
}
BODY = {"model": "m", "messages": [{"role": "user", "content": "one"}]}


@pytest.fixture
def module(pytester: pytest.Pytester) -> Project:
    """A module most of whose tests no longer ask for what they recorded."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(test_m=textwrap.dedent(MODULE) + textwrap.dedent(CASES))
    folder = project.path / "cassettes" / "test_m"
    names = [f"test_tools[{n}]" for n in range(14)] + [f"test_system[{n}]" for n in range(10)]
    for name in [*names, "test_message", "test_same"]:
        body = {**BODY, "system": "one"} if "system" in name else BODY
        foreign(folder / f"{name}.yaml", json.dumps(body))
    return project


def section(result: pytest.RunResult) -> list[str]:
    """Return the lines of the section on cassettes."""
    start = next(n for n, line in enumerate(result.outlines) if " cassettes =" in line)
    return result.outlines[start + 1 : -1]


def test_drift_of_many_tests_is_told_by_cause(module: Project, snapshot: SnapshotAssertion) -> None:
    """A screenful: each path with the tests that share it, the most common one first.

    The command reads the names of the tests from a file; what drifted stands in full in another.
    The report has all tests of a cause.
    """
    result = module.run("-q")
    for name in ("report.json", "report.html"):
        module.run(f"--regen-report={name}")
    command = shlex.split(section(result)[-1].removeprefix("next: "))
    named = module.run("--collect-only", "-q", command[1])

    result.assert_outcomes(passed=26)
    assert section(result) == snapshot
    assert command[2:] == ["--record-mode", "rewrite"]
    assert sum("::" in line for line in named.outlines) == 25
    assert not any("test_same" in line for line in named.outlines)
    whole = (module.path / ".pytest_cache/d/regen/drift.txt").read_text("utf-8")
    assert whole.count("drift: ") == 25
    assert 'recorded "one", sent "another"' in whole
    report = json.loads((module.path / "report.json").read_text("utf-8"))
    found = {one["cause"]: len(one["tests"]) for one in report["cassettes"]["causes"]}
    assert found == {
        "$.tool_choice is new": 24,
        "$.system differs": 10,
        "$.messages[*].content differs": 1,
    }
    page = (module.path / "report.html").read_text("utf-8")
    assert "$.tool_choice is new" in page
    assert "24 tests" in page


def test_tests_that_fail_of_one_cause_are_told_once_more(
    module: Project, snapshot: SnapshotAssertion
) -> None:
    """Each has said what is wrong with it; that all have the same, only the section says."""
    module.pytester.makeini("[pytest]\nregen_drift = fail\n")

    result = module.run("-q", "--tb=no", "-W", "ignore")

    lines = section(result)
    assert lines[: next(n for n, line in enumerate(lines) if "short test" in line)] == snapshot


def test_a_value_drawn_by_chance_is_ignored_with_the_line_that_is_offered(module: Project) -> None:
    """A new recording would drift again; the line ends it, and real drift is still told."""
    call = '{"id": "run_%s1b2c3d4e5f", "calls": [{"id": "call_%s1b2c3d4e5f", "name": "%s"}]}'
    module.pytester.makepyfile(
        test_m=f"""
        import httpx2
        import pytest

        @pytest.mark.vcr
        @pytest.mark.parametrize("name", ["same", "other"])
        def test_call(name):
            httpx2.post("https://api.test/v1", content={call!r} % ("ded2", "ded2", name))
        """
    )
    for name in ("same", "other"):
        file = module.path / f"cassettes/test_m/test_call[{name}].yaml"
        body = call % ("ded2" if name == "same" else "27db", "27db", "same")
        foreign(file, body, "https://api.test/v1")

    told = section(module.run("-q", "test_m.py"))

    setting = 'ignore = ["$.calls[*].id", "$.id"] in [tool.pytest-regen.cassettes]'
    assert told[-2:] == [
        "next: pytest 'test_m.py::test_call[other]' --record-mode rewrite",
        f"next: {setting}, if that differs in each run",
    ]
