r"""Half a character (``\ud83d`` alone), which JSON can hold and UTF-8 cannot: kept and compared."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from recorded import answering

from pytest_regen.cassettes import use_cassette

HALF = "\ud83d"
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ignore": {"ignore": ["$.id"]},
    "normalize": {"normalize": lambda body: {**body, "id": 0}},
    "scrub": {"scrub": lambda text: text.replace("Ivy", "[name]")},
}


@pytest.mark.parametrize("way", WAYS)
def test_half_a_character_is_recorded_and_found_again(tmp_path: Path, way: str) -> None:
    """Also where the project's own rule changes the bodies that hold it."""
    path = tmp_path / "c.yaml"
    sent = {"id": 1, "text": f"{HALF} to Ivy"}
    said = {"text": f"Ivy has {HALF}"}

    def ask(mode: Any) -> object:
        answer = httpx2.Response(200, content=json.dumps(said))
        answer.headers["content-type"] = "application/json"
        with (
            answering(lambda _: answer),
            use_cassette(path, mode=mode, **WAYS[way]),
            httpx2.Client() as client,
        ):
            found = client.post("https://api.example/v1/x", content=json.dumps(sent))
            return json.loads(found.content)

    assert ask("once") == said
    kept = "[name]" if way == "scrub" else "Ivy"
    assert ask("none") == {"text": f"{kept} has {HALF}"}
