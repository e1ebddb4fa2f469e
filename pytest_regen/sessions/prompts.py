"""The prompts of a scenario generator: its system prompt and the messages of its turns.

Text here is part of every content hash through ``PROMPT_FORMAT``: raise that number, and only
then, when the text changes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from pytest_regen.sessions.scenarios import ConditionalRoles, TestScenario, ToolAnnotation
from pytest_regen.text import flatten, quoted

PROMPT_FORMAT = 4

_INSTRUCTIONS = """\
You write test scenarios for an access policy. A scenario is one request to a tool and the \
decision that the policy must give it. You are given the constitution that the policy implements, \
the tools with the roles of their arguments, and the invariants that hold whatever the policy says.

## Decisions

- allow: the constitution permits the request, or an invariant does.
- escalate: the constitution asks for approval, or an invariant sends the request to a person.
- deny: an invariant forbids the request, or nothing permits it and nothing asks for approval: \
what the constitution does not mention is denied, not escalated.

## What makes a good set

- Every tool has scenarios: about three if it changes things, about two if it only reads.
- Each statement of the constitution has a request that it permits and one just beyond it.
- Edges: a path that only begins like a permitted one, a parent folder, a second argument \
elsewhere, a mixed list.
- Arguments have the names, types and values that the tool's schema gives, the required ones all \
present.
- Each request stands once. Each has a concrete description, and a reason that names the statement \
or invariant it rests on: find the reason first, then the decision that follows from it."""


def build_generator_system_prompt(
    constitution: str,
    annotations: Sequence[ToolAnnotation],
    *,
    invariants: Sequence[str] = (),
    lists: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the system prompt of a scenario generator. Pure: equal arguments, equal bytes.

    Handwritten scenarios go into the first message.

    Args:
        constitution: what the policy is to implement, in prose.
        annotations: the tools.
        invariants: what the engine decides before any rule, one sentence each. A generator that
            does not know them writes scenarios that no rule can satisfy.
        lists: named lists of the policy and their values, all of them.
    """
    # What changes least stands first, because prompts for other tools then share a long beginning,
    # which is read from the cache.
    sections = [
        _INSTRUCTIONS,
        section("Structural Invariants", "", invariants),
        f"## Constitution\n\n{constitution.strip()}" if constitution.strip() else "",
        section(
            "Lists",
            "",
            [f"@{name}: {', '.join(values)}" for name, values in sorted((lists or {}).items())],
        ),
        section("Tools", "", map(_tool, annotations)),
    ]
    return "\n\n".join(filter(None, sections))


def section(title: str, explanation: str, lines: Iterable[str]) -> str:
    """Return a section of a message with a list; nothing where the list is empty."""
    items = "\n".join(f"- {line}" for line in lines)
    return "\n\n".join(filter(None, (f"## {title}", explanation, items))) if items else ""


def list_item(text: str) -> str:
    """Return what somebody wrote as it can stand in a list: no line of it begins a section."""
    # Whoever wrote it: a failure of a test may hold a page that was written to be read by a model.
    first, *more = text.strip().splitlines()
    begins_section = first.lstrip().startswith(("#", "-", "*", "=", "```"))
    return "\n".join(
        [quoted(first) if begins_section else flatten(first)]
        + [f"  | {flatten(line)}" for line in more]
    )


def _tool(annotation: ToolAnnotation) -> str:
    # Servers word names and comments: those stay on their line, or in their place of the list.
    text = flatten("/".join(annotation.tool))
    if annotation.comment.strip():
        text += ": " + "\n    ".join(map(flatten, annotation.comment.strip().splitlines()))
    arguments = [
        f"  - {flatten(name)}: {flatten(_roles(roles))}" for name, roles in annotation.args.items()
    ]
    if annotation.input_schema:
        arguments.append(f"  - JSON Schema of the arguments: {quoted(annotation.input_schema)}")
    return "\n".join([text, *arguments])


def _roles(roles: tuple[str, ...] | ConditionalRoles) -> str:
    if not isinstance(roles, ConditionalRoles):
        return ", ".join(roles)
    cases = [
        f"{', '.join(choice.roles)} if {json.dumps(dict(choice.condition), sort_keys=True)}"
        for choice in roles.when
    ]
    return "; ".join([*cases, f"otherwise {', '.join(roles.default)}"])


def first_message(handwritten: Sequence[TestScenario]) -> str:
    """Return the user message of the first turn, before the hint of the schema.

    Args:
        handwritten: those that exist, to be neither repeated nor contradicted.
    """
    text = "Generate test scenarios following the instructions above."
    if not handwritten:
        return text
    lines = [f"- {scenario.request} -> {scenario.expected_decision}" for scenario in handwritten]
    return (
        f"{text}\n\n"
        "These exist already and are right. Do not write scenarios for the same requests, and "
        "write nothing that contradicts them ('not-allow' means deny or escalate).\n\n"
        + "\n".join(lines)
    )


_HINT = """

Respond with one JSON value that matches this JSON Schema, members in its order, and with nothing \
else:

{"type": "object", "required": ["scenarios"], "properties": {"scenarios": {"type": "array", \
"items": {
  "type": "object",
  "required": ["description", "request", "reasoning", "expected_decision"],
  "properties": {
    "description": {"type": "string"},
    "request": {
      "type": "object",
      "required": ["server_name", "tool_name", "arguments"],
      "properties": {"arguments": {"type": "object"}},
      "anyOf": [
CALLS
      ]
    },
    "reasoning": {"type": "string"},
    "expected_decision": {"enum": ["allow", "deny", "escalate"]}
  }
}}}}"""


def response_hint(annotations: Sequence[ToolAnnotation]) -> str:
    """Return what tells a model the form of a reply about these tools, for the end of a message."""
    # Each server goes with its own tools, because with two independent lists of names a tool of
    # another server would fit. In the hint the reason stands before the decision, because a model
    # writes from left to right and would only justify a decision that stands there already.
    by_server: dict[str, list[str]] = {}
    for annotation in annotations:
        by_server.setdefault(annotation.server_name, []).append(annotation.tool_name)
    calls = ",\n".join(
        f'        {{"properties": {{"server_name": {{"const": {quoted(server)}}}, '
        f'"tool_name": {{"enum": {quoted(sorted(set(tools)))}}}}}}}'
        for server, tools in sorted(by_server.items())
    )
    return _HINT.replace("CALLS", calls)
