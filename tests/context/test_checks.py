"""The checks for anyone's agent: a good one passes, each known-bad one fails exactly one."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from xml.sax.saxutils import escape

import pytest

from pytest_regen.context import ClarificationRequest, ClarifyingAgent
from pytest_regen.testing import (
    CHECKS,
    KNOWN_BAD,
    AgentFactory,
    ContextLossError,
    check_stateless_agent,
    completion,
    failing_checks,
)
from pytest_regen.turns.values import Provider

Said = list[dict[str, str]]

WORDS: Mapping[str, tuple[str, ...]] = {
    "carries_full_context": ("original_description", "questions_asked.1.options.0.label"),
    "answers_in_place": ("answers.0.text stands with another question",),
    "stateless": ("interleaved", "a fresh process", "after another conversation"),
    "legacy_ignored": ("clarification_answers",),
    "retry_keeps_context": ("inferred_context.reasoning", "answers.0.label"),
    "reasking_bounded": ("returns questions",),
    "skip_works": ("KeyError",),
    "structure_holds": ("original_description", "## "),
}
"""By the check what its failure says of the known bad agent."""


@pytest.mark.parametrize("check", CHECKS)
def test_a_known_bad_agent_fails_exactly_its_check(check: str) -> None:
    """The failure names what is lost."""
    assert set(KNOWN_BAD) == set(CHECKS) == set(WORDS)

    failures = failing_checks(KNOWN_BAD[check])

    assert list(failures) == [check]
    assert failures[check].check == check
    assert all(word in str(failures[check]) for word in WORDS[check])


def forgetting(view: Mapping[str, Any]) -> Said:
    """Leave placeholders out."""
    bare = [{**one, "placeholder": None} for one in view["questions_asked"]]
    return [{"role": "user", "content": json.dumps({**view, "questions_asked": bare})}]


def test_a_leaf_may_be_exempt() -> None:
    agent = partial(make, style=forgetting)
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(agent, checks=["carries_full_context"])
    assert set(caught.value.findings) == {
        "questions_asked.0.placeholder",
        "questions_asked.1.placeholder",
    }

    exempt = ["questions_asked.*.placeholder"]
    check_stateless_agent(agent, checks=["carries_full_context"], ignore=exempt)


class Endless:
    """Sends for as long as it is let, whatever is raised."""

    def __init__(self, provider: Provider) -> None:
        self._complete = completion(provider)

    def turn(self, request: ClarificationRequest) -> str:
        """Take one turn."""
        while True:
            try:
                text = self._complete([{"role": "user", "content": request.model_dump_json()}])
            except Exception:  # noqa: BLE001 - the fault
                continue
            if "subject_line" in text:
                return text


def test_an_agent_that_never_stops_is_stopped() -> None:
    with pytest.raises(ContextLossError, match="calls or more, 3 at most"):
        check_stateless_agent(Endless, checks=["reasking_bounded"])


def test_values_may_keep_their_lines_where_delimiters_hold_them() -> None:
    bad = KNOWN_BAD["structure_holds"]

    checks = ["structure_holds"]
    check_stateless_agent(bad, checks=checks, skeleton=lambda _: "whatever")
    with pytest.raises(ContextLossError):
        check_stateless_agent(bad, checks=checks, skeleton=lambda text: text.count("\n#"))


def broken(_: Provider) -> Any:
    """Return an agent that raises on every turn."""

    def turn(request: ClarificationRequest) -> str:
        raise RuntimeError(request.message)

    return turn


def test_several_failures_are_one_error() -> None:
    with pytest.raises(ContextLossError) as caught:
        check_stateless_agent(broken)

    assert "carries_full_context" in str(caught.value)
    assert "structure_holds" in str(caught.value)


def asked(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the questions of a context, each with its answer."""
    return [{**one, "answer": view["answers"].get(one["id"])} for one in view["questions_asked"]]


CONTROLS = {code: f"&#{code};" for code in (*range(1, 32), 0x85, 0x2028, 0x2029)}


def element(value: Any, name: str, *, is_pasted: bool = False) -> str:
    """Return a value as an element on one line, texts escaped."""
    tag = name.replace("_", "-")
    if isinstance(value, dict):
        inner = "".join(element(one, key, is_pasted=is_pasted) for key, one in value.items())
    elif isinstance(value, list):
        inner = "".join(element(one, "item", is_pasted=is_pasted) for one in value)
    else:
        text = str(value)
        inner = text if is_pasted else escape(text).translate(CONTROLS)
    return f"<{tag}>{inner}</{tag}>"


def xml(view: Mapping[str, Any], *, is_pasted: bool = False) -> Said:
    """Elements on one line."""
    whole = {**view, "questions_asked": asked(view), "answers": None}
    text = element(whole, "issue", is_pasted=is_pasted)
    return [{"role": "user", "content": text}]


def make(provider: Provider, style: Callable[[Mapping[str, Any]], Said]) -> Any:
    """Return an agent that asks once more where a reply is no subject line."""
    complete = completion(provider)
    system = {"role": "system", "content": "Write one: <example>Fix our roads</example>"}

    def turn(request: ClarificationRequest) -> Any:
        context = request.conversation_context
        messages: Said = [{"role": "user", "content": json.dumps(request.message)}]
        if context is not None:
            messages = style(context.model_dump(mode="json"))
        for more in ([], [{"role": "user", "content": "You have to write now, as JSON."}]):
            with suppress(ValueError):
                found = json.loads(complete([system, *messages, *more]))
                if found.get("subject_line") or (context is None and len(found) > 1):
                    return found
        raise ValueError("no subject line")

    return turn


def make_xml(provider: Provider) -> Any:
    return make(provider, xml)


def make_pasted_xml(provider: Provider) -> Any:
    return make(provider, partial(xml, is_pasted=True))


@pytest.mark.parametrize("maker", [ClarifyingAgent, make_xml])
def test_a_correct_agent_of_every_style_passes(maker: AgentFactory) -> None:
    assert not failing_checks(maker)


def test_tags_inside_a_line_are_structure() -> None:
    """Where a prompt puts texts into elements, a text that closes one is found, without a line."""
    with pytest.raises(ContextLossError, match="'a</city><city>b'"):
        check_stateless_agent(make_pasted_xml, checks=["structure_holds"])
