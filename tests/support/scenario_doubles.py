"""Scenarios, tools and replies for tests of sessions: a library of files, and words about them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pytest_regen.sessions import (
    DiscardedScenario,
    ScenarioCorrection,
    ScenarioRequest,
    TestScenario,
    ToolAnnotation,
)

READ = ToolAnnotation(
    server_name="files",
    tool_name="read",
    comment="Reads a file.",
    args={"path": ("read-path",)},
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "mode": {"enum": ["text", "bytes"]}},
        "required": ["path"],
    },
)
WRITE = ToolAnnotation(server_name="files", tool_name="write", args={"path": ("write-path",)})
FETCH = ToolAnnotation(server_name="web", tool_name="fetch", args={"url": ("fetch-url",)})
TOOLS = (READ, WRITE, FETCH)


def request(path: str, tool: str = "read", **arguments: Any) -> ScenarioRequest:
    """Return a call of a tool of the server ``files``."""
    found = {"path": path, **arguments}
    return ScenarioRequest(server_name="files", tool_name=tool, arguments=found)


def scenario(
    path: str, expected: str = "allow", tool: str = "read", **changes: Any
) -> TestScenario:
    """Return a scenario about ``path``; its description names tool and path."""
    options: dict[str, Any] = {
        "description": f"{tool} {path}",
        "request": request(path, tool),
        "expected_decision": expected,
        "reasoning": "so it is",
    }
    return TestScenario(**{**options, **changes})


def handwritten(path: str, expected: str = "not-allow", **changes: Any) -> TestScenario:
    """Return a scenario of a person."""
    return scenario(path, expected, source="handwritten", **changes)


def correction(path: str, decision: str, **changes: Any) -> ScenarioCorrection:
    """Return a correction that names its scenario by description alone."""
    options: dict[str, Any] = {
        "scenario_description": f"read {path}",
        "corrected_decision": decision,
        "corrected_reasoning": "the constitution says so",
    }
    return ScenarioCorrection(**{**options, **changes})


def discard(path: str, expected: str = "allow") -> DiscardedScenario:
    """Return a scenario that a protected path makes impossible."""
    return DiscardedScenario(
        scenario=scenario(path, expected), actual="deny", rule="structural-protected-path"
    )


def said(scenarios: Iterable[TestScenario]) -> str:
    """Return what a model says that has these scenarios in mind, in camelCase."""
    items = [
        {
            "description": one.description,
            "request": {
                "serverName": one.request.server_name,
                "toolName": one.request.tool_name,
                "arguments": one.request.arguments,
            },
            "expectedDecision": one.expected_decision,
            "reasoning": one.reasoning,
        }
        for one in scenarios
    ]
    return json.dumps({"scenarios": items}, indent=1)


def named(scenarios: Sequence[TestScenario]) -> list[tuple[str, str]]:
    """Return descriptions and expectations."""
    return [(one.description, one.expected_decision) for one in scenarios]
