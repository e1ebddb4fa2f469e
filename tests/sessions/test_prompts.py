"""What a generator is told."""

from scenario_doubles import FETCH, READ, TOOLS

from pytest_regen.sessions import ConditionalRoles, ToolAnnotation, build_generator_system_prompt


def test_the_same_arguments_are_the_same_bytes() -> None:
    """The prompt cache and the content hash rest on it."""
    prompts = {
        build_generator_system_prompt("Be kind.", TOOLS, lists={"b": ["2"], "a": ["1"]}),
        build_generator_system_prompt("Be kind.", TOOLS, lists={"a": ["1"], "b": ["2"]}),
    }

    assert len(prompts) == 1


def test_invariants_are_told() -> None:
    """A generator that does not know them writes what no rule can satisfy."""
    prompt = build_generator_system_prompt(
        "Be kind.",
        [READ],
        invariants=["Unknown tools are denied."],
        sandbox="/box",
        protected=["/box/keys"],
        permitted_directories=["/downloads"],
    )

    for told in ("Unknown tools are denied.", "sandbox /box", "/box/keys are denied", "/downloads"):
        assert told in prompt


def test_tools_are_told_with_roles_schema_and_conditions() -> None:
    """Everything a valid request needs."""
    conditional = ToolAnnotation.model_validate(
        {
            "serverName": "files",
            "toolName": "edit",
            "args": {
                "path": {
                    "default": ["read-path", "write-path"],
                    "when": [{"condition": {"arg": "dry", "is": "truthy"}, "roles": ["read-path"]}],
                }
            },
        }
    )
    prompt = build_generator_system_prompt("Be kind.", [READ, conditional])

    assert isinstance(conditional.args["path"], ConditionalRoles)
    assert "- files/read: Reads a file." in prompt
    assert "required: path" in prompt
    assert 'values of mode: ["text", "bytes"]' in prompt
    assert 'read-path if {"arg": "dry", "is": "truthy"}; otherwise read-path, write-path' in prompt


def test_prompts_for_other_tools_share_a_long_beginning() -> None:
    """Instructions, invariants and constitution stand before the tools."""
    one = build_generator_system_prompt("Be kind.", [READ], invariants=["x"])
    other = build_generator_system_prompt("Be kind.", [FETCH], invariants=["x"])

    assert one.index("## Tools") == other.index("## Tools")
    assert one[: one.index("## Tools")] == other[: other.index("## Tools")]


def test_every_value_of_a_list_is_told() -> None:
    """Editing the last one changes the prompt, and with it the hash."""
    values = [f"host{number}.org" for number in range(9)]
    prompt = build_generator_system_prompt("Be kind.", [], lists={"hosts": values})

    assert f"@hosts: {', '.join(values)}" in prompt
