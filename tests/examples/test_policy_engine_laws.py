"""Laws of the example's policy engine, and its agreement with real decisions."""

import os
from typing import Any

import pytest
from engine import Decision, PolicyEngine
from hypothesis import assume, given
from hypothesis import strategies as st
from policy_doubles import load

SANDBOX = "/no/such/box"
GUARDED = "/no/such"
ROLES = ("read-path", "write-path", "fetch-url", "email-address")
TOOLS = [
    {"serverName": server, "toolName": role, "args": {"it": [role]}}
    for server in ("filesystem", "web")
    for role in ROLES
]
STRUCTURAL = {"structural-protected-path", "structural-unknown-tool", "structural-sandbox-allow"}

names = st.sampled_from(["a", "b", "such", "box", "no", ".", "..", "", "a b", "ä", "~", "BOX"])
paths = st.lists(names, max_size=8).map("/".join)
absolute = paths.map(lambda path: f"/{path}")
verdicts = st.sampled_from(["allow", "escalate", "deny"])
subsets = st.lists(st.sampled_from(ROLES), min_size=1, unique=True)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "roles": subsets,
        "server": st.lists(st.sampled_from(["filesystem", "web"]), min_size=1),
        "tool": subsets,
        "paths": st.fixed_dictionaries({"roles": subsets, "within": absolute}),
        "domains": st.fixed_dictionaries(
            {"roles": subsets, "allowed": st.lists(st.sampled_from(["*", "a.example"]))}
        ),
    },
).filter(bool)


def named(rules: list[tuple[dict[str, Any], str]]) -> list[dict[str, Any]]:
    """Give each rule a name of its own."""
    return [{"name": f"r{n}", "if": cond, "then": then} for n, (cond, then) in enumerate(rules)]


policies = st.lists(st.tuples(conditions, verdicts), max_size=6).map(named)

bounded = st.fixed_dictionaries(
    {
        "serverName": st.just("filesystem"),
        "toolName": st.sampled_from(["read-path", "write-path", "nobody"]),
        "arguments": st.fixed_dictionaries(
            {"it": st.tuples(st.sampled_from([GUARDED, SANDBOX]), absolute).map("".join)}
        ),
    }
)
"""Requests of which most meet an invariant; ``..`` may lead out again."""


def build(rules: list[dict[str, Any]], **options: Any) -> PolicyEngine:
    options = {"home": "/no/home", "sandbox": SANDBOX, "protected": [GUARDED], **options}
    return PolicyEngine({"rules": rules}, TOOLS, **options)


@given(policies, bounded)
def test_no_rules_override_an_invariant(rules: list[dict[str, Any]], request_: Any) -> None:
    """Where an invariant speaks without rules, it says the same with any."""
    alone = build([]).evaluate(request_)
    assume(alone.rule in STRUCTURAL)

    assert build(rules).evaluate(request_) == alone


@given(paths)
def test_a_path_below_the_sandbox_stays_there_whatever_dots_it_holds(path: str) -> None:
    """The sandbox allows exactly what really lies in it; traversal leads to the protected rest."""
    really = os.path.normpath(f"{SANDBOX}/{path}")
    request = {
        "serverName": "filesystem",
        "toolName": "write-path",
        "arguments": {"it": f"{SANDBOX}/{path}"},
    }

    decided = build([]).evaluate(request)

    if f"{really}/".startswith(f"{SANDBOX}/"):
        assert decided == Decision("allow", "structural-sandbox-allow")
    else:
        assert decided.decision == "deny"


@given(absolute, st.sampled_from(["//", "/./", "/a/../"]))
def test_spellings_of_one_path_are_decided_alike(path: str, slash: str) -> None:
    engine = build([])

    assert engine.resolve(path.replace("/", slash)) == engine.resolve(path)


@pytest.mark.parametrize("allowlists", [None, "domainAllowlists_variant"])
def test_real_scenarios_are_decided_as_by_the_original_engine(allowlists: str | None) -> None:
    """248 requests to 213 real tools under 58 rules: decision, rule and escalated roles agree."""
    expected, scenarios = load("expected-decisions"), load("test-scenarios")["scenarios"]
    where = expected["env"]
    engine = PolicyEngine(
        load("compiled-policy"),
        load("tool-annotations"),
        home=where["HOME"],
        sandbox=where["sandbox"],
        protected=where["protectedPaths"],
        allowlists=where[allowlists] if allowlists else None,
    )

    different = [
        (scenarios[each["i"]]["description"], decided)
        for each in expected["results"]
        if (decided := engine.evaluate(scenarios[each["i"]]["request"]))
        != Decision(each["decision"], each["rule"], tuple(each.get("escalatedRoles", ())))
    ]

    assert len(expected["results"]) == len(scenarios) == 248
    assert not different
