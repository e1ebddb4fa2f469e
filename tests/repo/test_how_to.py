"""The recipes of docs/how-to.md work as they stand there."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pages import blocks, printed
from store_factory import GOOD, MISSPELT, make_store

from pytest_regen.stores import RegenStore

RULE, MODEL = blocks("docs/how-to.md", "python")
STORE = "generated/GET_v1_projects"


class Chat(BaseHTTPRequestHandler):
    """A model with an interface of its own, which writes ``Owner`` as it must be."""

    def do_POST(self) -> None:
        """Answer any request."""
        self.rfile.read(int(self.headers["content-length"]))
        answer: Any = {"choices": [{"message": {"content": GOOD["Owner", 1]}}]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def chat() -> Iterator[ThreadingHTTPServer]:
    """The model, listening."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a store whose ``Owner`` has a misspelt field."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nregen_stores = generated/*\n", "utf-8")
    make_store(tmp_path / STORE, MISSPELT)
    return tmp_path


def test_a_rule_for_all_types(project: Path) -> None:
    """Each type that breaks the rule fails with its words."""
    (project / "conftest.py").write_text(RULE, "utf-8")

    lines = printed("pytest -q", project)

    told = [line for line in lines if "STYLE" in line and line.startswith("FAILED")]
    assert len(told) == 1, lines  # Owner has an error of its own, State no accessors.
    assert "use init accessors, never set" in told[0]


def test_another_model_heals_and_is_recorded(project: Path, chat: ThreadingHTTPServer) -> None:
    """With ``once`` it is asked and recorded; then the recording answers in its place."""
    (project / "conftest.py").write_text(MODEL, "utf-8")
    env = {"MY_MODEL_URL": f"http://127.0.0.1:{chat.server_port}/v1/chat/completions"}
    stored = project / STORE / "pages.json"
    before, source = stored.read_bytes(), (project / STORE / "ProjectDataObject.cs").read_bytes()

    live = printed("pytest --regen --regen-record once", project, env)
    chat.shutdown()
    chat.server_close()
    stored.write_bytes(before)
    (project / STORE / "ProjectDataObject.cs").write_bytes(source)
    replayed = printed("pytest --regen", project, env)

    assert any(line.startswith(f"{STORE} .G.") for line in live), "\n".join(live)
    assert any(line.startswith(f"{STORE} .G.") for line in replayed), "\n".join(replayed)
    assert RegenStore.open(project / STORE).pages_of("Owner")[0].output == GOOD["Owner", 1]
