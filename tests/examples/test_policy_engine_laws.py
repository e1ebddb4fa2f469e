"""Laws of the example's policy engine, and its agreement with real decisions."""

import os

import pytest
from engine import Decision, PolicyEngine
from hypothesis import given
from hypothesis import strategies as st
from policy_doubles import load

SANDBOX = "/no/such/box"
WRITE = {"serverName": "filesystem", "toolName": "write", "args": {"path": ["write-path"]}}
ENGINE = PolicyEngine(
    {"rules": []}, [WRITE], home="/no/home", sandbox=SANDBOX, protected=["/no/such"]
)

names = st.sampled_from(["a", "b", "such", "box", "no", ".", "..", "", "a b", "ä", "~", "BOX"])
paths = st.lists(names, max_size=8).map("/".join)
absolute = paths.map(lambda path: f"/{path}")


@given(paths)
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


@given(absolute, st.sampled_from(["//", "/./", "/a/../"]))
def test_spellings_of_one_path_are_decided_alike(path: str, slash: str) -> None:
    assert ENGINE.resolve(path.replace("/", slash)) == ENGINE.resolve(path)


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
