"""Makes rules out of the constitution: one session with a model, repaired by what tests find."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from engine import PATH_ROLES, URL_ROLES, PolicyError
from library import CONSTITUTION, INVARIANTS, LISTS, MEMBERS, engine, tools
from pydantic import BaseModel, ConfigDict, Field

from pytest_regen import Provider
from pytest_regen.canonical import canonical_hash
from pytest_regen.sessions import GeneratorSession, Policy, RepairContext
from pytest_regen.turns import schema_to_prompt_hint


class Strict(BaseModel):
    """A part of a rule; an unknown key is a mistake that must not be dropped silently."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", populate_by_name=True)


class Paths(Strict):
    """Every path that carries one of the roles lies within a folder."""

    roles: list[str]
    within: str


class Domains(Strict):
    """Every URL that carries one of the roles leads to one of these domains."""

    roles: list[str]
    allowed: list[str]


class Listed(Strict):
    """Every value that carries one of the roles is on the list; ``@name`` is a named list."""

    roles: list[str]
    allowed: list[str]
    match_type: Literal["domains", "emails", "identifiers"] = Field(alias="matchType")


class Conditions(Strict):
    """When a rule applies; all that is given must hold."""

    roles: list[str] | None = None
    server: list[str] | None = None
    tool: list[str] | None = None
    paths: Paths | None = None
    domains: Domains | None = None
    lists: list[Listed] | None = None


class Rule(Strict):
    """One rule; the first that matches decides."""

    name: str
    principle: str
    when: Conditions = Field(alias="if")
    then: Literal["allow", "escalate"]
    reason: str


class Rules(Strict):
    """A policy."""

    rules: list[Rule]

    def policy(self) -> dict[str, Any]:
        """Return it as the engine reads it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


SYSTEM = f"""\
You turn a constitution into rules for a policy engine. The engine judges each role of a call on
its own; for each role the first rule that covers it decides; the strictest verdict counts. What no
rule covers is denied, so write no rules that deny.

A rule's "if" holds conditions that must all hold: "roles", "server", "tool" (lists of names),
"paths" {{roles, within}}, "domains" {{roles, allowed}}, "lists" [{{roles, allowed, matchType}}].
Path roles: {", ".join(sorted(PATH_ROLES))}. URL roles: {", ".join(sorted(URL_ROLES))}.
Named lists: {", ".join(f"@{name} ({', '.join(members)})" for name, members in MEMBERS.items())}.

## Decided before any rule

{"".join(f"- {rule}{chr(10)}" for rule in INVARIANTS)}
## Tools

{"".join(f"- {json.dumps(tool.to_json(), ensure_ascii=False)}{chr(10)}" for tool in tools())}
{CONSTITUTION}"""

ASK = "Write the rules that put the constitution into effect."


class ModelCompiler:
    """Compiles and repairs rules in one conversation, so that a repair knows what was tried.

    Args:
        provider: who answers.
        model: name of the model.
    """

    def __init__(self, provider: Provider, model: str) -> None:
        self._session = GeneratorSession(SYSTEM, Rules, provider=provider, model=model)
        self._model = model

    @property
    def fingerprint(self) -> str:
        """Everything the rules depend on."""
        return canonical_hash([SYSTEM, ASK, self._model, schema_to_prompt_hint(Rules)])

    def compile(self) -> Policy:
        """Return the first rules."""
        return self._session.ask(ASK, check=problems).policy()

    def repair(self, policy: Policy, context: RepairContext) -> Policy:
        """Return rules that answer the failures; those in force are the session's last."""
        want = context.wanted or {}
        failures = [
            f"- {result}; wanted: {want.get(result.scenario.id, result.scenario.expected_decision)}"
            for result in context.failures
        ]
        truth = [f"- {fact.request}: {fact.expected_decision}" for fact in context.handwritten]
        parts = [
            "These scenarios fail under the rules below, and the rules are to blame:",
            "\n".join(failures),
            f"The judge says: {context.analysis}",
            "Always true, whatever else changes:",
            "\n".join(truth),
            "The rules in force:",
            json.dumps(policy, ensure_ascii=False),
            "Write all rules again, changed as little as possible.",
        ]
        return self._session.ask("\n\n".join(parts), check=problems).policy()


def problems(rules: Rules) -> Iterator[str]:
    """Yield what makes rules unusable although they have the right form."""
    try:
        engine(rules.policy())
    except PolicyError as error:
        yield str(error)
    existing = {name for tool in tools() for name in (tool.server_name, tool.tool_name)}
    for rule in rules.rules:
        names = [*(rule.when.server or ()), *(rule.when.tool or ())]
        for name in names:
            if name not in existing:
                yield f"rule {rule.name!r} names {name!r}, which is no server and no tool"
        for entry in rule.when.lists or ():
            for value in entry.allowed:
                if value.startswith("@") and value[1:] not in LISTS:
                    yield f"rule {rule.name!r} names the list {value}, which does not exist"
