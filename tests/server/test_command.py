"""`python -m pytest_regen.server`, and what importing the package costs those who do not serve."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from pytest_regen.server.__main__ import KEY_VARIABLE, main

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
        (["--provider", "served_model:reply"], "openssl rand -hex 32"),
        (["--provider", "served_model:reply", "--host", "0.0.0.0"], "--allow-host"),
        (["--provider", "nowhere:at_all"], "run from the folder"),
        ([], "ANTHROPIC_API_KEY"),
        (
            ["--provider", "served_model:reply", "--seal-key-file", "/does/not/exist"],
            "name a text file",
        ),
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
