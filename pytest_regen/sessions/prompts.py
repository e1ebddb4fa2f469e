"""The prompts of a scenario generator: its system prompt and the messages of its turns.

Text here is part of every content hash through ``PROMPT_FORMAT``: raise that number, and only
then, when the text changes.
"""

import json
from collections.abc import Mapping, Sequence

from pytest_regen.sessions.input_schema import InputSchema
from pytest_regen.sessions.scenarios import ConditionalRoles, TestScenario, ToolAnnotation
from pytest_regen.text import flatten, quoted

PROMPT_FORMAT = 3

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
    sandbox: str | None = None,
    protected: Sequence[str] = (),
    permitted_directories: Sequence[str] = (),
    lists: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the system prompt of a scenario generator. Pure: equal arguments, equal bytes.

    What changes least stands first, so that prompts for other tools share a long beginning.
    Handwritten scenarios go into the first message of the group that has their tools.

    Args:
        constitution: what the policy is to implement, in prose.
        annotations: the tools; all of them, also where they are asked about in groups.
        invariants: what the engine decides before any rule, one sentence each. A generator that
            does not know them writes scenarios that no rule can satisfy.
        sandbox: folder in which everything is allowed.
        protected: paths that no request may touch.
        permitted_directories: folders that the compiled rules name.
        lists: named lists of the policy and their values, all of them.
    """
    sections = [
        _INSTRUCTIONS,
        _list("Structural Invariants", _invariants(invariants, sandbox, protected)),
        _section("Constitution", constitution.strip()),
        _list("Directories Named by the Rules", permitted_directories),
        _list("Lists", [f"@{name}: {', '.join(v)}" for name, v in sorted((lists or {}).items())]),
        _list("Tools", map(_tool, annotations)),
    ]
    return "\n\n".join(section for section in sections if section)


def _invariants(
    invariants: Sequence[str], sandbox: str | None, protected: Sequence[str]
) -> list[str]:
    found = list(invariants)
    if sandbox:
        found.append(f"Requests whose paths all lie within the sandbox {sandbox} are allowed.")
    if protected:
        found.append(f"Requests that touch {', '.join(protected)} are denied.")
    return found


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _list(title: str, lines: "Sequence[str] | map[str]") -> str:
    return _section(title, "\n".join(f"- {line}" for line in lines))


def _tool(annotation: ToolAnnotation) -> str:
    # Servers word names and comments: those stay on their line, or in their place of the list.
    text = flatten("/".join(annotation.tool))
    if annotation.comment.strip():
        text += f": {_indent(annotation.comment)}"
    schema = InputSchema(annotation.input_schema or {})
    types = schema.types()
    typed = {name: flatten(f"{name} ({kind})" if kind else name) for name, kind in types.items()}
    arguments = [
        f"  - {typed.get(name) or flatten(name)}: {flatten(_roles(roles))}"
        for name, roles in annotation.args.items()
    ]
    required = schema.required
    if required:
        names = [
            flatten(tool) if tool in annotation.args else typed.get(tool, tool) for tool in required
        ]
        arguments.append(f"  - required: {', '.join(names)}")
    known = {*annotation.args, *required}
    optional = [typed[name] for name in schema.names if name not in known]
    if optional:
        arguments.append(f"  - optional: {', '.join(optional)}")
    arguments += [f"  - values of {flatten(name)}: {quoted(v)}" for name, v in schema.choices()]
    return "\n".join([text, *arguments])


def _indent(text: str) -> str:
    return "\n    ".join(flatten(line) for line in text.strip().splitlines())


def _roles(roles: tuple[str, ...] | ConditionalRoles) -> str:
    if not isinstance(roles, ConditionalRoles):
        return ", ".join(roles)
    cases = [
        f"{', '.join(choice.roles)} if {json.dumps(dict(choice.condition), sort_keys=True)}"
        for choice in roles.when
    ]
    return "; ".join([*cases, f"otherwise {', '.join(roles.default)}"])


def _handwritten_section(scenarios: Sequence[TestScenario]) -> str:
    if not scenarios:
        return ""
    lines = [f"- {scenario.request} -> {scenario.expected_decision}" for scenario in scenarios]
    return (
        "These exist already and are right. Do not write scenarios for the same requests, and "
        "write nothing that contradicts them ('not-allow' means deny or escalate).\n\n"
        + "\n".join(lines)
    )


def first_message(
    handwritten: Sequence[TestScenario], tools: Sequence[ToolAnnotation] | None
) -> str:
    """Return the user message of the first turn, before the hint of the schema.

    Args:
        handwritten: those that exist for these tools, to be neither repeated nor contradicted.
        tools: the group asked about; ``None`` for all tools.
    """
    text = "Generate test scenarios following the instructions above."
    if tools is not None:
        names = "\n".join(
            f"- {annotation.server_name}/{annotation.tool_name}" for annotation in tools
        )
        text += (
            f" Write scenarios for these tools only; others are asked about elsewhere:\n\n{names}"
        )
    section = _handwritten_section(handwritten)
    return f"{text}\n\n{section}" if section else text


def scenarios_as_json(scenarios: Sequence[TestScenario]) -> str:
    """Return scenarios in the form in which a model gives them, without their source."""
    # In the order in which they are asked for: the reason before the decision.
    fields = ("description", "request", "reasoning", "expected_decision")
    items = [{name: scenario.to_json()[name] for name in fields} for scenario in scenarios]
    return json.dumps({"scenarios": items}, ensure_ascii=False, indent=1)
