"""No reply of any shape does harm: it is stored, validated and healed, and never a traceback."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_documents import document_of
from store_asking import heal_type
from store_factory import GOOD, make_store
from tables import each

from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.errors import TransportError
from pytest_regen.regeneration import TurnSettings, generate_store, heal_store, partial_regenerate
from pytest_regen.stores import RegenStore
from pytest_regen.turns import AnthropicProvider, Budget, CallableProvider, Reply, ScriptedProvider
from pytest_regen.validation import validate_store

OWNER = GOOD["Owner", 1]
TIMES = 400
DEEP = {
    "generics": OWNER.replace("string?", "List<" * TIMES + "int" + ">" * TIMES),
    "strings": OWNER.replace('"name"', '"na" + ' + '"" + ' * TIMES + '"me"'),
    "classes": "public class Owner { " * TIMES + "}" * TIMES,
    "blocks": OWNER.replace("{ get; set; }", "{ get " + "{" * TIMES + "}" * TIMES + " }"),
    "branches": "#if A\n" + "#elif B\n// b\n" * TIMES + "#endif\n" + OWNER,
    "minus": OWNER.replace("{ get; set; }", "=> " + "-" * TIMES + "1;"),
}
"""Legal C#, nested too deep for whoever reads it level by level."""
REPEATED = {
    "braces": "{",
    "open members": "public class Owner {\nx {\n",
    "open generics": "A<",
    "fences": "```\nx {\n",
    "thinking": "<think>",
}
"""What a model may repeat until a limit stops it."""
HOSTILE = {
    "NUL": OWNER.replace("Name", "Na\0me"),
    "half a character": OWNER.replace("Name", "Na\ud83dme"),
    "boundaries": f"// [REGEN:END Owner]\n// [REGEN:BEGIN Owner]\n{OWNER}\n// [REGEN:END State]",
    "conflict": f"<<<<<<< HEAD\n{OWNER}\n=======\n{OWNER}\n>>>>>>> other",
}
SHAPES = DEEP | HOSTILE | {name: text * (400 // len(text)) for name, text in REPEATED.items()}


def a_model_of(text: str) -> TurnSettings:
    """Return settings whose model says ``text`` whatever it is asked."""
    return TurnSettings(CallableProvider(lambda _: text))


def codes(path: Path) -> set[str]:
    """Return the codes of the errors in a store, read afresh."""
    results = validate_store(RegenStore.open(path)).values()
    return {issue.code for result in results for issue in result.errors}


def generated(folder: Path, text: str) -> Path:
    """Return the store of a small document that was generated with ``text`` as every reply."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "state": {"type": "integer"}},
    }
    api = folder / "api.json"
    api.write_text(json.dumps(document_of(schema)), "utf-8")
    return generate_store(
        api, "GET /things", folder, settings=a_model_of(text), attempts=2
    ).plan.path


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deep_is_a_syntax_error(tmp_path: Path, text: str) -> None:
    """The page says so, whoever stored it; a right reply mends it."""
    path = make_store(tmp_path / "store", {("Owner", 1): text}).path

    [owner] = validate_store(RegenStore.open(path), types=["Owner"]).values()
    assert {issue.page for issue in owner.errors if issue.code == "SYNTAX"} == {1}
    assert "200 levels" in str(owner.errors)

    heal_store(path, settings=a_model_of(OWNER))
    assert not codes(path)


@each("text", SHAPES.values(), ids=SHAPES)
def test_no_reply_stops_a_generation_or_what_comes_after_it(tmp_path: Path, text: str) -> None:
    """It is stored as it was read; the store can be validated, healed and read from then on."""
    path = generated(tmp_path, text)

    assert codes(path)
    partial_regenerate(path, provider=a_model_of(text).provider, accept_any=True)
    assert codes(path)


def test_the_page_is_told_from_thinking_and_other_types(tmp_path: Path) -> None:
    """The extractor knows what was asked for: a right answer heals, whatever stands before it."""
    wrong = OWNER.replace('"name"', '"nmae"')
    draft = "```csharp\npublic class Draft { public string? Name { get; set; } }\n```"
    for number, reply in enumerate(
        (
            f"<think>\n{draft}\n</think>\n```csharp\n{OWNER}\n```",
            f"A sketch:\n{draft}\nThe answer:\n```csharp\n{OWNER}\n```",
        )
    ):
        path = make_store(tmp_path / str(number), {("Owner", 1): wrong}).path
        heal_store(path, settings=a_model_of(reply))

        assert not codes(path), reply
        assert RegenStore.open(path).pages_of("Owner")[0].output == OWNER


def test_a_broken_stream_is_taken_from_the_budget_of_a_run(tmp_path: Path) -> None:
    """As far as it is known; the call after it may be one too many."""
    path = make_store(tmp_path / "store", {("Owner", 1): OWNER.replace('"name"', '"nmae"')}).path
    fault = Fault(kind="cut", reply=EmulatedReply("So it goes on. " * 200), after=20)
    budget = Budget(100_000)
    with Emulator(lambda _: fault) as emulator:
        provider = AnthropicProvider(api_key="k", base_url=emulator.base_url, max_retries=0)
        result = heal_type(
            path, "Owner", settings=TurnSettings(provider, max_tokens=30_000, budget=budget)
        )
        provider.close()

    assert result.stop_reason == "transport"
    assert result.usage.total_tokens == budget.spent > 500


@pytest.mark.parametrize("text", [None, b"bytes", 7])
def test_a_reply_whose_text_is_no_text_is_an_error_of_the_provider(
    tmp_path: Path, text: Any
) -> None:
    """A provider of somebody else may return anything."""
    path = make_store(tmp_path / "store", {("Owner", 1): ""}).path
    provider = ScriptedProvider([Reply(text)])

    result = heal_type(path, "Owner", settings=TurnSettings(provider))

    assert isinstance(result.failure, TransportError)
    assert "whose text is" in str(result.failure)


SNIPPET = st.sampled_from(
    [
        OWNER, "```", "```csharp\n", "<think>", "</think>", "{", "}", "<", "[", '"', '"""', "//",
        "/*", "#if A\n", "#endif\n", "\n", "\0", "\ud800", "\u2028", "\ufeff", "\r", "=> ",
        "// [REGEN:BEGIN A]\n", "<<<<<<< HEAD\n", "=======\n", "public class Owner\n{\n",
        "enum E { A }", "{ get; set; }",
    ]
)  # fmt: skip
REPLY = st.lists(st.tuples(SNIPPET | st.text(max_size=8), st.integers(1, 300)), max_size=12).map(
    lambda parts: "".join(text * (times if times > 250 else 1) for text, times in parts)
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=10,
    deadline=None,
)
@given(REPLY)
def test_whatever_a_model_says_the_store_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Generation ends; validating and regenerating what it left ends as well."""
    path = generated(tmp_path_factory.mktemp("s"), text)

    codes(path)
    partial_regenerate(path, provider=a_model_of(text).provider)
    codes(path)
