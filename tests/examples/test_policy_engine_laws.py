"""A law of the example's policy engine, and its agreement with real decisions."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from engine import Decision, PolicyEngine
from hypothesis import given
from hypothesis import strategies as st

DATA = Path(__file__).parents[3] / "shared" / "data" / "policy-readonly"
SANDBOX = "/no/such/box"
WRITE = {"serverName": "filesystem", "toolName": "write", "args": {"path": ["write-path"]}}
ENGINE = PolicyEngine(
    {"rules": []}, [WRITE], home="/no/home", sandbox=SANDBOX, protected=["/no/such"]
)

names = st.sampled_from(["a", "b", "such", "box", "no", ".", "..", "", "a b", "ä", "~", "BOX"])


@given(st.lists(names, max_size=8).map("/".join))
def test_a_path_below_the_sandbox_stays_there_whatever_dots_it_holds(path: str) -> None:
    """The sandbox allows exactly what really lies in it; traversal leads to the protected rest."""
    really = os.path.normpath(f"{SANDBOX}/{path}")
    request = {
        "serverName": "filesystem",
        "toolName": "write",
        "arguments": {"path": f"{SANDBOX}/{path}"},
    }

    decided = ENGINE.evaluate(request)

    if f"{really}/".startswith(f"{SANDBOX}/"):
        assert decided == Decision("allow", "structural-sandbox-allow")
    else:
        assert decided.decision == "deny"


@pytest.mark.skipif(not DATA.is_dir(), reason="the real policy data is not beside this checkout")
@pytest.mark.parametrize("allowlists", [None, "domainAllowlists_variant"])
def test_real_scenarios_are_decided_as_by_the_original_engine(allowlists: str | None) -> None:
    """248 requests to 213 real tools under 58 rules: decision, rule and escalated roles agree."""

    def load(name: str) -> Any:
        return json.loads((DATA / f"{name}.json").read_text("utf-8"))

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

    assert len(expected["results"]) == len(scenarios) == 248
    for each in expected["results"]:
        scenario, roles = scenarios[each["i"]], tuple(each.get("escalatedRoles", ()))
        right = Decision(each["decision"], each["rule"], roles)
        assert engine.evaluate(scenario["request"]) == right, scenario["description"]
