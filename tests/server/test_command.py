"""`python -m pytest_regen.server`, and what importing the package costs those who do not serve."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from pytest_regen.context import ConversationContext, InferredContext, Sealer
from pytest_regen.errors import UsageError
from pytest_regen.server import Quota, ServerSettings
from pytest_regen.server.__main__ import KEY_VARIABLE, _parser, _quotas, _seal_policy, main

INFERRED = InferredContext()

SUPPORT = Path(__file__).parents[1] / "support"


def test_it_serves_until_it_is_interrupted() -> None:
    """It listens on loopback, answers with the provider that was named, and ends with 0."""
    command = [sys.executable, "-m", "pytest_regen.server", "--port", "0"]
    command += ["--provider", "served_model:reply"]
    environment = {
        **os.environ,
        KEY_VARIABLE: "of a server that runs for one test",
        "PYTHONPATH": str(SUPPORT),
    }
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            said = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stderr)
            address = next(found[0] for found in said if found)
            answer = httpx2.post(
                f"{address}/api/agents/generate-subject", json={"message": "too loud"}
            )
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()
        code = process.wait(timeout=20)

    assert answer.json()["subject_line"] == "Our Rent Doubled and City Hall Shrugged"
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--provider", "served_model:reply", "--seal", "on"], "openssl rand -hex 32"),
        (["--provider", "served_model:reply", "--host", "0.0.0.0"], "--allow-host"),
        (["--provider", "nowhere:at_all"], "run from the folder"),
        ([], "ANTHROPIC_API_KEY"),
        (
            ["--provider", "served_model:reply", "--seal-key-file", "/does/not/exist"],
            "name a text file",
        ),
        (["--provider", "served_model:reply", "--first-turns", "many"], "30/hour,150/day"),
        (["--provider", "served_model:reply", "--second-turns", "0/day"], "30/hour,150/day"),
        (["--provider", "served_model:reply", "--old-seal-key", "x=y"], "openssl rand -hex 32"),
    ],
)
def test_it_does_not_start_half_configured(
    arguments: list[str],
    hint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 2, or 3 without a key for the API, and the next step on stderr."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)

    code = main(arguments)

    assert code in {2, 3}
    assert hint in capsys.readouterr().err


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the key out of the environment."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.mark.usefixtures("no_key")
def test_without_a_key_it_warns(capsys: pytest.CaptureFixture[str]) -> None:
    """It would take contexts that nobody vouches for; whoever says so is not warned."""
    kinds = []
    for arguments in ([], ["--seal", "off"]):
        options = _parser().parse_args(arguments)
        kinds.append((_seal_policy(options), "unsealed" in capsys.readouterr().err))

    assert kinds == [("off", True), ("off", False)]


@pytest.mark.usefixtures("no_key")
def test_a_key_is_replaced(tmp_path: Path) -> None:
    """The new one seals, the old one still checks; a seal is good for as long as was said."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("this key was used until yesterday, or so\n", "utf-8")
    new.write_text("from today on another one is in its place\n", "utf-8")
    given = ["--seal-key-file", str(new), "--seal-key-id", "b", "--seal-age", "60"]

    policy = _seal_policy(_parser().parse_args([*given, "--old-seal-key", f"a={old}"]))

    assert isinstance(policy, Sealer)
    context = ConversationContext(
        original_description="d", questions_asked=(), inferred_context=INFERRED
    )
    sealed = Sealer({"a": old.read_text("utf-8").strip()}).seal(context, conversation="c")
    policy.unseal(sealed, context, conversation="c")
    assert policy.seal(context, conversation="c").startswith("b.")
    assert policy.max_age == 60
    with pytest.raises(UsageError, match="names no further key"):
        _seal_policy(_parser().parse_args([*given, "--old-seal-key", f"b={old}"]))


def test_quotas_are_written_as_they_are_said() -> None:
    """Numbers, a slash, a time; several at once; none."""
    assert _quotas("--first-turns", "30/hour, 150/days,5/90") == (
        Quota(30, 3_600),
        Quota(150, 86_400),
        Quota(5, 90),
    )
    assert _quotas("--first-turns", "none") == ()


def test_the_defaults_are_those_of_the_settings() -> None:
    """Whoever gives no option gets what `ServerSettings` says."""
    options, settings = _parser().parse_args([]), ServerSettings()

    assert _quotas("--first-turns", options.first_turns) == settings.first_turns
    assert _quotas("--second-turns", options.second_turns) == settings.second_turns
    assert options.timeout == settings.model_seconds


def test_a_short_key_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key that can be guessed seals nothing."""
    (tmp_path / "key").write_text("secret\n", "utf-8")

    code = main(["--provider", "served_model:reply", "--seal-key-file", str(tmp_path / "key")])

    assert code == 2
    assert "too short" in capsys.readouterr().err


def imported_by(code: str) -> list[str]:
    """Return the modules that are there after running code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()


@pytest.mark.parametrize(
    "module",
    ["pytest_regen", "pytest_regen.pytest_plugin.plugin", "pytest_regen.cli.app"],
)
def test_who_serves_nothing_imports_no_server(module: str) -> None:
    """Neither the package nor the plugin nor the command line brings in Starlette or uvicorn."""
    found = {name.partition(".")[0] for name in imported_by(f"import {module}")}

    assert not found & {"starlette", "uvicorn"}
    assert f"{module.partition('.')[0]}" in found


def test_the_application_does_not_need_uvicorn() -> None:
    """Any ASGI server will do: only the command imports one."""
    assert "uvicorn" not in imported_by("from pytest_regen.server import create_app")


def test_without_the_extra_the_error_says_what_to_install() -> None:
    """Where Starlette is missing, importing the server names the extra."""
    code = "sys.modules['starlette'] = None\nfrom pytest_regen.server import create_app"

    failed = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"], check=False, capture_output=True, text=True
    )

    assert failed.returncode == 1
    assert "pip install 'pytest-regen[server]'" in failed.stderr


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_the_command_says_what_to_install(missing: str) -> None:
    """One error, no traceback, exit code 2."""
    code = f"import runpy, sys\nsys.modules[{missing!r}] = None\n"
    code += "runpy.run_module('pytest_regen.server', run_name='__main__', alter_sys=True)"

    failed = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )

    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
    assert "pip install 'pytest-regen[server]'" in failed.stderr
