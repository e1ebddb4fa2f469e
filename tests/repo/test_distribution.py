"""What stands around the code: addresses, workflows, the action and the hooks of pre-commit."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import command
from pages import ROOT
from store_factory import MISSPELT, make_store
from tables import each

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@each(
    ("label", "place"),
    [
        ("Documentation", "README.md"),
        ("Issues", "README.md"),
        ("Security", "SECURITY.md"),
        ("Security", ".github/ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_addresses_are_the_same_everywhere(label: str, place: str) -> None:
    """Files name those of [project.urls] themselves; SECURITY.md says so where there is none."""
    address = PROJECT.get("urls", {}).get(label)
    text = (ROOT / place).read_text("utf-8")

    assert address is None or address in text
    if place == "SECURITY.md":
        assert ("There is no address for private reports yet." in text) == (address is None)


FORMS = {
    "github-workflows": (".github/workflows/ci.yml", ".github/workflows/release.yml"),
    "github-actions": ("action.yml",),
    "dependabot": (".github/dependabot.yml",),
    "github-issue-config": (".github/ISSUE_TEMPLATE/config.yml",),
    "github-issue-forms": tuple(
        f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "feature", "code")
    ),
}


@each("form", FORMS)
def test_files_of_github_have_its_form(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the schemas say that check-jsonschema ships."""
    check = pytest.importorskip("check_jsonschema")
    monkeypatch.chdir(ROOT)

    with pytest.raises(SystemExit) as end:
        check.main(["--builtin-schema", f"vendor.{form}", *FORMS[form]])

    assert end.value.code == 0


def test_workflows_pin_read_and_test_what_they_should() -> None:
    """Actions by whole hashes, no right to write, each Python version of the classifiers."""
    files = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / "action.yml"]

    used = [use for path in files for use in re.findall(r"uses: (\S+@.*)", path.read_text("utf-8"))]
    rights = [yaml.safe_load(path.read_text("utf-8")).get("permissions") for path in files[:-1]]
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]["tests"]
    name = "Programming Language :: Python :: 3."
    classified = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if name in line}

    assert len(used) > 10
    assert not [line for line in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", line)]
    assert all(right in ({}, {"contents": "read"}) for right in rights)
    assert set(job["strategy"]["matrix"]["python"]) == classified
    assert all(row["experimental"] for row in job["strategy"]["matrix"]["include"])


def test_what_is_published_was_tested() -> None:
    """By every job of CI, at the very commit of the tag; with no more rights than to read."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]

    assert (jobs["publish"]["needs"], jobs["build"]["needs"]) == ("build", "tests")
    assert jobs["tests"]["uses"] == "./.github/workflows/ci.yml"
    assert jobs["tests"]["permissions"] == {"contents": "read"}


ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def run_action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the action that checks, in the shell that GitHub runs it in."""
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == "run")
    given = {name: options.get("default", "") for name, options in ACTION["inputs"].items()}
    given |= inputs
    values = {
        name: given[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1]]  # type: ignore[index]
        for name, value in step["env"].items()
    }
    temp = folder / "temp"
    temp.mkdir(exist_ok=True)
    there = {
        **os.environ,
        **values,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(temp),
        "GITHUB_OUTPUT": str(temp / "output"),
    }
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(words, cwd=folder, env=there, check=False, capture_output=True, text=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="the shell of the action is bash")
def test_the_action_fails_with_what_it_checks(tmp_path: Path) -> None:
    """Paths are words on any lines; another command is refused; the output names the report."""
    make_store(tmp_path / "generated" / "GET_v1_projects", MISSPELT)
    (tmp_path / "pytest.ini").write_text("[pytest]\nregen_stores = generated/*\n", "utf-8")

    red = run_action(tmp_path, paths="generated/GET_v1_projects\n  pytest.ini;exit\n")
    tests = run_action(tmp_path, command="pytest", paths="generated/GET_v1_projects")
    other = run_action(tmp_path, command="regenerate\n::notice::planted")

    assert red.returncode == 2
    assert "pytest.ini;exit" in red.stderr
    assert tests.returncode == 1, tests.stderr
    report = Path((tmp_path / "temp/output").read_text("utf-8").strip().removeprefix("report="))
    assert "<html" in report.read_text("utf-8")
    assert (other.returncode, other.stdout[:7], other.stdout.count("\n")) == (2, "::error", 1)


HOOKS = {
    hook["id"]: hook
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}


def run_hook(name: str, *files: object) -> int:
    """Run a hook's command as pre-commit does: its words, its arguments, then the files."""
    program, *words = shlex.split(HOOKS[name]["entry"])
    assert program == "pytest-regen"
    return command(*words, *files).code


def test_the_hooks_of_pre_commit_pass_and_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores, recordings, and types that are older than their description; no model is called."""
    monkeypatch.chdir(tmp_path)
    cassette = ROOT / "cassettes" / "talk.yaml"
    document = ROOT / "examples" / "csharp_dto" / "api.yaml"
    make_store(tmp_path / "generated" / "GET_v1_projects")
    assert run_hook("regen-validate", "generated/GET_v1_projects") == 0
    make_store(tmp_path / "generated" / "GET_v1_owners", MISSPELT)

    assert run_hook("regen-validate", "generated/GET_v1_owners") == 1
    assert run_hook("regen-cassettes", cassette) == 0
    assert run_hook("regen-generate", document, "GET /v1/tides") == 1
    assert re.search(HOOKS["regen-cassettes"]["files"], "tests/cassettes/a/b.yaml")
