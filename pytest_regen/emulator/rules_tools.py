"""Tools of a request: their names, how many are strict, and whether one may be forced."""

import re
from collections.abc import Mapping
from typing import Any

from pytest_regen.emulator.call import Call
from pytest_regen.emulator.wire import ApiError

__all__ = ["check_tool_choice", "check_tools"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MAX_STRICT = 20


def check_tools(call: Call) -> None:
    """Check the definitions of tools.

    Raises:
        ApiError: 400, naming the tool.
    """
    tools = call.body.get("tools") or ()
    for number, tool in enumerate(tools):
        # The vendor's own tools are known by their type, and need no schema.
        if tool.get("type") in (None, "custom"):
            _check_custom(tool, f"tools.{number}.custom")
    if len({tool["name"] for tool in tools}) < len(tools):
        raise ApiError("tools: Tool names must be unique.")
    strict = sum(bool(tool.get("strict")) for tool in tools)
    if strict > _MAX_STRICT:
        raise ApiError(f"tools: at most {_MAX_STRICT} strict tools, found {strict}")


def _check_custom(tool: Mapping[str, Any], where: str) -> None:
    if not _NAME.fullmatch(tool["name"]):
        raise ApiError(f"{where}.name: String should match pattern '^{_NAME.pattern}$'")
    if "input_schema" not in tool:
        raise ApiError(f"{where}.input_schema: Field required")
    if not isinstance(tool["input_schema"], dict):
        raise ApiError(f"{where}.input_schema: Input should be an object")


def check_tool_choice(call: Call) -> None:
    """Check what is said about using tools.

    Raises:
        ApiError: 400, there are none, or none may be forced.
    """
    choice, tools = call.tool_choice, call.body.get("tools") or ()
    if choice is not None and not tools:
        raise ApiError("tool_choice: may only be specified while providing tools")
    if choice not in {"any", "tool"}:
        return
    if not call.model.forces_tools:
        raise ApiError(f'"tool_choice.type.{choice}" is not supported for this model.')
    if call.thinks:
        raise ApiError("Thinking may not be enabled when tool_choice forces tool use.")
    if choice == "tool":
        _check_forced(call.body["tool_choice"], {tool["name"] for tool in tools})


def _check_forced(choice: Mapping[str, Any], names: set[str]) -> None:
    if choice.get("name") is None:
        raise ApiError("tool_choice.tool.name: Field required")
    if choice["name"] not in names:
        raise ApiError(f"Tool '{choice['name']}' not found in provided tools")
