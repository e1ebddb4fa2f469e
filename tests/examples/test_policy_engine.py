"""The example's policy engine, by behaviour, and its agreement with real decisions."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from engine import Decision, PolicyEngine, PolicyError
from hypothesis import given
from hypothesis import strategies as st
from tables import each

DATA = Path(__file__).parents[3] / "shared" / "data" / "policy-readonly"
HOME = "/no/home/ada"
SANDBOX = "/no/home/ada/box"

ANNOTATIONS = [
    {"serverName": "filesystem", "toolName": "read", "args": {"path": ["read-path"]}},
    {"serverName": "filesystem", "toolName": "write", "args": {"path": ["write-path"], "text": []}},
    {
        "serverName": "filesystem",
        "toolName": "move",
        "args": {"source": ["read-path", "delete-path"], "destination": ["write-path"]},
    },
    {"serverName": "archive", "toolName": "read", "args": {"path": ["read-path"]}},
    {"serverName": "web", "toolName": "fetch", "args": {"url": ["fetch-url"]}},
    {"serverName": "mail", "toolName": "send", "args": {"to": ["email-address"]}},
]


def rule(name: str, then: str = "allow", **condition: Any) -> dict[str, Any]:
    return {"name": name, "if": condition, "then": then}


def engine(*rules: dict[str, Any], **options: Any) -> PolicyEngine:
    options = {"home": HOME, "sandbox": SANDBOX, **options}
    return PolicyEngine({"rules": rules}, ANNOTATIONS, **options)


def call(server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"serverName": server, "toolName": tool, "arguments": arguments}


READ_ETC = call("filesystem", "read", path="/etc/hosts")


def test_the_first_rule_that_matches_decides() -> None:
    decided = engine(
        rule("other", "deny", tool=["write"]),
        rule("first", "escalate", tool=["read"]),
        rule("second", tool=["read"]),
    ).evaluate(READ_ETC)

    assert decided == Decision("escalate", "first", ("read-path",))


def test_a_protected_path_is_denied_whatever_the_rules_say() -> None:
    """Allowing everything everywhere does not open a protected path, or anything below it."""
    guarded = engine(rule("all", tool=["read"]), protected=["/etc"])

    assert guarded.evaluate(READ_ETC) == Decision("deny", "structural-protected-path")
    listed = guarded.evaluate(call("archive", "read", path=["/tmp/a", "/etc/hosts"]))
    assert listed.decision == "deny"
    beside = guarded.evaluate(call("filesystem", "read", path="/etc2/x"))
    assert beside.decision == "allow"


def test_the_sandbox_is_spared_inside_a_protected_folder() -> None:
    """The sandbox may lie in what is protected; its own files stay free."""
    guarded = engine(protected=[HOME])

    inside = guarded.evaluate(call("filesystem", "write", path=f"{SANDBOX}/a"))
    beside = guarded.evaluate(call("filesystem", "write", path=f"{SANDBOX}/../a"))

    assert inside == Decision("allow", "structural-sandbox-allow")
    assert beside == Decision("deny", "structural-protected-path")


def test_a_role_that_leaves_the_sandbox_is_judged() -> None:
    """Reading inside and writing outside: only the writing is escalated."""
    asking = engine(rule("ask", "escalate", tool=["move"]))

    decided = asking.evaluate(
        call("filesystem", "move", source=f"{SANDBOX}/a", destination="/srv/a")
    )

    assert decided == Decision("escalate", "ask", ("write-path",))


def test_links_out_of_the_sandbox_lead_out_of_it(tmp_path: Path) -> None:
    """A link is where it points; a link from outside into the sandbox is inside."""
    sandbox, secret = tmp_path / "box", tmp_path / "secret"
    sandbox.mkdir()
    secret.mkdir()
    (sandbox / "door").symlink_to(secret)
    (tmp_path / "way-in").symlink_to(sandbox)
    confined = engine(sandbox=sandbox)

    out = confined.evaluate(call("filesystem", "read", path=f"{sandbox}/door/key"))
    inside = confined.evaluate(call("filesystem", "read", path=f"{tmp_path}/way-in/new/a"))

    assert out == Decision("deny", "default-deny")
    assert inside == Decision("allow", "structural-sandbox-allow")


def test_an_unknown_tool_is_denied() -> None:
    """A tool nobody annotated, or a tool of another server, is denied before any rule."""
    everything = engine(rule("all", server=["web", "filesystem"]))

    for request in (call("web", "read", path="/"), call("filesystem", "fetch", url="x")):
        assert everything.evaluate(request) == Decision("deny", "structural-unknown-tool")


@each(
    ("url", "pattern", "matches"),
    [
        ("https://a.example/x?y", "a.example", True),
        ("https://A.Example:8443/x", "a.example", True),
        ("https://a.example@evil.example/", "a.example", False),
        ("https://evil.example\\@a.example/", "a.example", False),
        ("https://notexample/", "*.example", False),
        ("https://a.example/", "*", True),
        ("https://127.0.0.1/", "*", False),
        ("file:///etc/passwd", "*", False),
        ("https://a.example/owner/it", "a.example/owner/it", False),
    ],
)
def test_domains_of_urls(url: str, pattern: str, *, matches: bool) -> None:
    """The host decides, not what stands around it; ``*`` means names, never addresses."""
    web = engine(rule("known", domains={"roles": ["fetch-url"], "allowed": [pattern]}))

    assert (web.evaluate(call("web", "fetch", url=url)).decision == "allow") == matches


LISTED = {"roles": ["email-address"], "allowed": ["@team", "x@a.example"], "matchType": "emails"}
TEAM = {
    "team": {
        "values": ["ada@a.example", "gone@a.example"],
        "manualAdditions": ["eve@a.example"],
        "manualRemovals": ["gone@a.example"],
    }
}


@each(
    ("to", "decision"),
    [
        ("ADA@a.example", "allow"),
        (["eve@a.example", "x@a.example"], "allow"),
        (["eve@a.example", "gone@a.example"], "deny"),
        ([], "deny"),
    ],
)
def test_lists_hold_all_or_nothing(to: object, decision: str) -> None:
    """Every value must be on the list, additions on, removals off, and there must be one."""
    mail = engine(rule("team", lists=[LISTED]), lists=TEAM)

    assert mail.evaluate(call("mail", "send", to=to)).decision == decision


@each(
    ("rules", "message"),
    [
        ([rule("a", tool=["x"]), rule("a", tool=["y"])], "a name of its own"),
        ([rule("a", tools=["x"])], "needs conditions out of"),
        ([rule("a", "permit", tool=["x"])], "'permit'"),
        ([rule("a", lists=[{**LISTED, "matchType": "regex"}])], "matchType"),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused(rules: list[Any], message: str) -> None:
    """A rule that would silently mean something else never becomes an engine."""
    with pytest.raises(PolicyError, match=message):
        engine(*rules)


names = st.sampled_from(["a", "b", "such", "box", "no", ".", "..", "", "a b", "ä", "~", "BOX"])


@given(st.lists(names, max_size=8).map("/".join))
def test_a_path_below_the_sandbox_stays_there_whatever_dots_it_holds(path: str) -> None:
    """The sandbox allows exactly what really lies in it; traversal leads to the protected rest."""
    really = os.path.normpath(f"{SANDBOX}/{path}")
    guarded = engine(protected=["/no"])

    decided = guarded.evaluate(call("filesystem", "write", path=f"{SANDBOX}/{path}"))

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
    original = PolicyEngine(
        load("compiled-policy"),
        load("tool-annotations"),
        home=where["HOME"],
        sandbox=where["sandbox"],
        protected=where["protectedPaths"],
        allowlists=where[allowlists] if allowlists else None,
    )

    assert len(expected["results"]) == len(scenarios) == 248
    for entry in expected["results"]:
        scenario, roles = scenarios[entry["i"]], tuple(entry.get("escalatedRoles", ()))
        right = Decision(entry["decision"], entry["rule"], roles)
        assert original.evaluate(scenario["request"]) == right, scenario["description"]
