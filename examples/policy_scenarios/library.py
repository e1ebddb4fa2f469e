"""The seed library of the example: its files and folders, and an engine for its policies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import PolicyEngine

from pytest_regen.sessions import TestScenario, ToolAnnotation

HERE = Path(__file__).parent

CONSTITUTION = (HERE / "constitution.md").read_text("utf-8")
ANNOTATIONS = json.loads((HERE / "annotations.json").read_text("utf-8"))
LISTS = json.loads((HERE / "lists.json").read_text("utf-8"))

MEMBERS = {
    name: sorted({*members["values"], *members["manualAdditions"]} - {*members["manualRemovals"]})
    for name, members in LISTS.items()
}
"""Who is on each list in the end."""

HOME = "/home/marrow"
SANDBOX = "/home/marrow/desk"
PROTECTED = ("/srv/seeds/donors",)
ALLOWLISTS = {"git": ["git.seeds.example"]}

INVARIANTS = (
    f"Anything at or below {PROTECTED[0]}: deny (structural-protected-path).",
    f"Paths of filesystem and git at or below {SANDBOX}: allow (structural-sandbox-allow).",
    "list_allowed_directories without arguments: allow (structural-introspection-allow).",
    f"A remote of git not at {ALLOWLISTS['git'][0]}: escalate (structural-domain-escalate).",
    "A tool that is not listed: deny (structural-unknown-tool).",
)
"""What the engine decides before any rule, in words, for those who write rules and scenarios."""


def tools() -> list[ToolAnnotation]:
    """Return the tools of the library, in the order of the file."""
    return [
        ToolAnnotation.model_validate({"serverName": server, **tool})
        for server, annotated in ANNOTATIONS["servers"].items()
        for tool in annotated["tools"]
    ]


def handwritten() -> list[TestScenario]:
    """Return the scenarios that people wrote."""
    written = json.loads((HERE / "handwritten.json").read_text("utf-8"))["scenarios"]
    return [TestScenario.model_validate(data) for data in written]


def engine(policy: Mapping[str, Any]) -> PolicyEngine:
    """Return the one engine that decides: for tests, for the loop, for its structural filter."""
    return PolicyEngine(
        policy,
        ANNOTATIONS,
        home=HOME,
        sandbox=SANDBOX,
        protected=PROTECTED,
        allowlists=ALLOWLISTS,
        lists=LISTS,
    )
