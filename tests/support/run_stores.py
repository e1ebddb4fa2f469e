"""Stores of a small harbour whose types can be run, and edits that only running shows."""

import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from command_line import command

from pytest_regen.modes import BEHAVIOUR_CODES
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Issue

DOCUMENT = """\
openapi: 3.0.3
info: {title: Harbour, version: "1"}
paths:
  /harbour:
    get:
      responses:
        "200":
          description: ok
          content:
            application/json:
              schema: {$ref: "#/components/schemas/Harbour"}
components:
  schemas:
    Harbour:
      type: object
      required: [name]
      properties:
        name: {type: string, minLength: 2}
        berths: {type: array, items: {$ref: "#/components/schemas/Berth"}}
        crane: {$ref: "#/components/schemas/Crane"}
    Berth:
      type: object
      required: [id, length]
      properties:
        id: {type: integer}
        length: {type: number, minimum: 1}
        freeFrom: {type: string, format: date-time}
        state: {$ref: "#/components/schemas/State"}
        note: {type: string, nullable: true}
    Crane:
      type: object
      required: [maker, model]
      properties:
        maker: {type: string}
        model: {type: string}
        lifts: {type: number}
    State:
      type: string
      enum: [free, taken]
"""
"""Three classes and an enum, with a limit, a time, and a text that may be null."""

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not os.environ.get("REGEN_NODE_MODULES"),
    reason="node is not there, or REGEN_NODE_MODULES names no packages",
)


@cache
def _original(language: str, profile: str) -> Path:
    """Return a store that was generated, and validated, once."""
    folder = Path(mkdtemp(prefix="harbour-"))
    (folder / "api.yaml").write_text(DOCUMENT, "utf-8")
    made = command(
        *("generate", folder / "api.yaml", "GET /harbour", "--out", folder / "api"),
        *("--language", language, "--profile", profile, "--provider", "template"),
    )
    assert made.code == 0, made.err
    return folder


def run_store(
    path: Path, changes: Mapping[str, str] | None = None, *, language: str, profile: str
) -> RegenStore:
    """Return a store in a new folder below ``path``, written by the template and then edited.

    Args:
        path: gets the description, the store, and what the cache of the original holds.
        changes: text in the source to what stands there instead; each must be found.
        language: of the store.
        profile: of the store.
    """
    shutil.copytree(_original(language, profile), path, dirs_exist_ok=True)
    store = RegenStore.open(path / "api" / "GET_harbour")
    edit(store, changes or {})
    return RegenStore.open(store.path)


def edit(store: RegenStore, changes: Mapping[str, str]) -> None:
    """Change the source of a store by hand."""
    text = store.source_path.read_text("utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    store.source_path.write_text(text, "utf-8")


def behaviour_issues(store: RegenStore) -> dict[str, list[Issue]]:
    """Return what running the types of a store shows, by type; those without are left out."""
    found = {
        name: [issue for issue in result.issues if issue.code in BEHAVIOUR_CODES]
        for name, result in validate_store(store).items()
    }
    return {name: issues for name, issues in found.items() if issues}
