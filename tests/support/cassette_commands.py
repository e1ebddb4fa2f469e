"""Commands about cassettes, called as a user calls them, and cassettes to call them on."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_regen.cli.app import main


def run(*words: str) -> int:
    """Call a command; return its exit code."""
    with pytest.raises(SystemExit) as caught:
        main(["cassettes", *words])
    return int(caught.value.code or 0)


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a check."""
    code = run("check", *words, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def codes(found: dict[str, Any]) -> list[str]:
    """Return the codes found, in order."""
    return [one["code"] for one in found["findings"]]


def foreign(
    path: Path, *bodies: Any, headers: dict[str, Any] | None = None, said: Any = b"{}"
) -> Path:
    """Write a cassette as vcrpy does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": said}}
    if isinstance(said, bytes) and said.startswith(b"\x1f\x8b"):
        response["headers"] = {"content-encoding": ["gzip"]}
    uri = "https://api.anthropic.com/v1/messages"
    data = {
        "version": 1,
        "interactions": [
            {
                "request": {"method": "POST", "uri": uri, "headers": headers or {},
                            "body": json.dumps(body)},
                "response": response,
            }
            for body in bodies
        ],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(data), "utf-8")
    return path
