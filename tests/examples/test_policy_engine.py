"""The example's policy engine, by behaviour."""

from pathlib import Path
from typing import Any

import pytest
from engine import Decision, PolicyEngine, PolicyError
from tables import each

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
    {"serverName": "filesystem", "toolName": "list_allowed_directories", "args": {}},
    {"serverName": "archive", "toolName": "read", "args": {"path": ["read-path"]}},
    {
        "serverName": "archive",
        "toolName": "sync",
        "args": {
            "target": {
                "default": ["write-path", "delete-path"],
                "when": [
                    {"condition": {"arg": "prune", "is": "falsy"}, "roles": ["write-path"]},
                    {"condition": {"arg": "mode", "equals": 1}, "roles": ["read-path"]},
                    {"condition": {"arg": "mode", "in": ["a", True]}, "roles": ["none"]},
                ],
            },
            "prune": ["none"],
            "mode": ["none"],
        },
    },
    {"serverName": "web", "toolName": "fetch", "args": {"url": ["fetch-url"]}},
    {"serverName": "git", "toolName": "push", "args": {"remote": ["git-remote-url"]}},
    {
        "serverName": "git",
        "toolName": "clone",
        "args": {"url": ["git-remote-url"], "into": ["write-path"]},
    },
    {"serverName": "mail", "toolName": "send", "args": {"to": ["email-address"]}},
    {"serverName": "clock", "toolName": "now", "args": {}},
]


def rule(name: str, then: str = "allow", **condition: Any) -> dict[str, Any]:
    return {"name": name, "if": condition, "then": then}


def engine(*rules: dict[str, Any], **options: Any) -> PolicyEngine:
    options = {"home": HOME, "sandbox": SANDBOX, **options}
    return PolicyEngine({"rules": rules}, ANNOTATIONS, **options)


def call(server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"serverName": server, "toolName": tool, "arguments": arguments}


def within(folder: str, *roles: str) -> dict[str, Any]:
    return {"roles": list(roles or ("read-path",)), "within": folder}


READ_ETC = call("filesystem", "read", path="/etc/hosts")


def test_no_rule_is_a_denial() -> None:
    assert engine().evaluate(READ_ETC) == Decision("deny", "default-deny")


def test_the_first_rule_that_matches_decides() -> None:
    decided = engine(
        rule("other", "deny", tool=["write"]),
        rule("first", "escalate", tool=["read"]),
        rule("second", tool=["read"]),
    ).evaluate(READ_ETC)

    assert decided == Decision("escalate", "first", ("read-path",))


def test_every_condition_of_a_rule_must_hold() -> None:
    """Server and tool and roles: one that fails, and the rule is passed over."""
    rules = engine(
        rule("server", server=["archive"], tool=["read"]),
        rule("role", tool=["read"], roles=["write-path"]),
        rule("all", server=["filesystem"], tool=["read"], roles=["read-path"]),
    )

    assert rules.evaluate(READ_ETC).rule == "all"


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


def test_a_contained_server_is_free_in_the_sandbox() -> None:
    strict = engine(rule("never", "deny", tool=["read", "write", "move"]))

    moved = strict.evaluate(
        call("filesystem", "move", source=f"{SANDBOX}/a", destination=f"{SANDBOX}/b/c")
    )

    assert moved == Decision("allow", "structural-sandbox-allow")


def test_a_role_that_leaves_the_sandbox_is_judged() -> None:
    """Reading inside and writing outside: only the writing is escalated."""
    asking = engine(rule("ask", "escalate", tool=["move"]))

    decided = asking.evaluate(
        call("filesystem", "move", source=f"{SANDBOX}/a", destination="/srv/a")
    )

    assert decided == Decision("escalate", "ask", ("write-path",))


def test_files_of_the_sandbox_in_a_mixed_list_need_no_rule() -> None:
    """A rule has to cover the others only; where both allow, the rule is told."""
    mixed = call("filesystem", "read", path=[f"{SANDBOX}/a", "/srv/b"])
    shared = rule("shared", paths=within("/srv"))

    assert engine(shared).evaluate(mixed) == Decision("allow", "shared")
    assert engine().evaluate(mixed) == Decision("deny", "default-deny")


def test_rules_share_the_values_of_a_role() -> None:
    """Each rule takes charge of the paths it covers; the strictest verdict decides."""
    shared = engine(
        rule("docs", paths=within("/docs")), rule("logs", "escalate", paths=within("/logs"))
    )

    both = shared.evaluate(call("archive", "read", path=["/docs/a", "/logs/b"]))
    more = shared.evaluate(call("archive", "read", path=["/docs/a", "/logs/b", "/x"]))

    assert both == Decision("escalate", "logs", ("read-path",))
    assert more == Decision("deny", "default-deny")


def test_the_strictest_role_decides() -> None:
    copying = call("filesystem", "move", source="/srv/a", destination="/srv/b")

    decided = engine(
        rule("read", roles=["read-path"]),
        rule("delete", "escalate", roles=["delete-path"]),
        rule("write", "escalate", roles=["write-path"]),
    ).evaluate(copying)
    denied = engine(rule("some", roles=["read-path", "delete-path"])).evaluate(copying)

    assert decided == Decision("escalate", "delete", ("delete-path", "write-path"))
    assert denied == Decision("deny", "default-deny")


def test_a_missing_argument_still_carries_its_roles() -> None:
    """Without a value there is nothing to be inside of: rules on paths do not match."""
    no_path = call("filesystem", "read")

    assert engine(rule("in", paths=within("/etc"))).evaluate(no_path).decision == "deny"
    assert engine(rule("any", roles=["read-path"])).evaluate(no_path).decision == "allow"


@each(
    ("arguments", "rule_name"),
    [
        ({}, "write"),
        ({"prune": False}, "write"),
        ({"prune": True}, "delete"),
        ({"prune": []}, "delete"),
        ({"prune": 1, "mode": 1}, "read"),
        ({"prune": 1, "mode": True}, "none"),
        ({"prune": 1, "mode": "a"}, "none"),
        ({"prune": 1, "mode": "b"}, "delete"),
    ],
)
def test_roles_depend_on_the_call(arguments: dict[str, Any], rule_name: str) -> None:
    """The first case that holds gives the roles, else the default; ``true`` is not 1."""
    decided = engine(
        rule("delete", "escalate", roles=["delete-path"]),
        rule("write", "escalate", roles=["write-path"]),
        rule("read", "escalate", roles=["read-path"]),
        rule("none", tool=["sync"]),
    ).evaluate(call("archive", "sync", target="/srv", **arguments))
    strictest = "write" if rule_name == "delete" else rule_name

    assert decided.rule == strictest
    assert ("delete-path" in decided.escalated_roles) == (rule_name == "delete")


def test_an_unknown_tool_is_denied() -> None:
    """A tool nobody annotated, or a tool of another server, is denied before any rule."""
    everything = engine(rule("all", server=["web", "filesystem"]))

    decided = {
        everything.evaluate(call("web", "read", path="/")),
        everything.evaluate(call("filesystem", "fetch", url="https://a.example")),
    }

    assert decided == {Decision("deny", "structural-unknown-tool")}


def test_asking_for_the_sandbox_is_free() -> None:
    """``list_allowed_directories`` without arguments is allowed; with any, rules decide."""
    assert engine().evaluate(call("filesystem", "list_allowed_directories")) == Decision(
        "allow", "structural-introspection-allow"
    )
    assert engine().evaluate(call("filesystem", "list_allowed_directories", a=1)) == Decision(
        "deny", "default-deny"
    )


def test_a_trusted_server_is_allowed() -> None:
    assert engine(trusted=["clock"]).evaluate(call("clock", "anything")) == Decision(
        "allow", "trusted-server"
    )


def test_a_tool_without_resources_is_decided_by_the_first_rule() -> None:
    assert engine(rule("time", server=["clock"])).evaluate(call("clock", "now")).rule == "time"
    assert engine().evaluate(call("clock", "now")) == Decision("deny", "default-deny")


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


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("~/x", f"{HOME}/x"),
        ("//no//such/./x/", "/no/such/x"),
        ("/../../no", "/no"),
        ("/no\0/../such", "/such"),
        ("/no/\ud800", "/no/\ud800"),
    ],
)
def test_paths_in_unusual_spellings(path: str, resolved: str) -> None:
    """Home, repeated slashes, dots above the root and bytes no file can have."""
    assert engine().resolve(path) == resolved


@pytest.mark.parametrize(
    ("url", "pattern", "matches"),
    [
        ("https://a.example/x?y", "a.example", True),
        ("https://A.Example:8443/x", "a.example", True),
        ("https://user:pw@a.example/", "a.example", True),
        ("https://a.example@evil.example/", "a.example", False),
        ("https://evil.example\\@a.example/", "a.example", False),
        ("https://example/", "*.example", True),
        ("https://notexample/", "*.example", False),
        ("https://a.example/", "*", True),
        ("https://127.0.0.1/", "*", False),
        ("https://0x7f.1/", "*", False),
        ("https://[::1]:80/", "*", False),
        ("file:///etc/passwd", "*", False),
        ("https://a.example/owner/it", "a.example/owner/it", False),
    ],
)
def test_domains_of_urls(url: str, pattern: str, *, matches: bool) -> None:
    """The host decides, not what stands around it; ``*`` means names, never addresses."""
    web = engine(rule("known", domains={"roles": ["fetch-url"], "allowed": [pattern]}))

    assert (web.evaluate(call("web", "fetch", url=url)).decision == "allow") == matches


@pytest.mark.parametrize(
    ("remote", "pattern", "matches"),
    [
        ("git@git.example:ada/notes.git", "git.example/ada/notes", True),
        ("ssh://git@git.example:22/ada/notes.git", "git.example/ada/notes", True),
        ("https://git.example/ada/notes/", "git.example/ada/notes", True),
        ("https://git.example/ada/other", "git.example/ada/notes", False),
        ("git@git.example:ada/notes.git", "git.example", True),
        ("origin", "origin", True),
        ("git@10.0.0.1:ada/notes", "*", False),
    ],
)
def test_domains_of_git_remotes(remote: str, pattern: str, *, matches: bool) -> None:
    """Host and repository, in each way git spells them; a named remote is its name."""
    hosted = engine(rule("ours", domains={"roles": ["git-remote-url"], "allowed": [pattern]}))

    assert (hosted.evaluate(call("git", "push", remote=remote)).decision == "allow") == matches


@each("pattern", ["GitHub.com", "*.github.com"])
@each("value", ["GitHub.com", "https://GITHUB.com/a"])
def test_hosts_have_no_letter_case(value: str, pattern: str) -> None:
    """With a scheme or without, in values and in patterns; paths of repositories have one."""
    ours = engine(rule("ours", domains={"roles": ["git-remote-url"], "allowed": [pattern]}))
    repository = f"{pattern.removeprefix('*.')}/Ada/notes"
    exact = engine(rule("ours", domains={"roles": ["git-remote-url"], "allowed": [repository]}))
    remote = "https://GitHub.com/Ada/notes"

    assert ours.evaluate(call("git", "push", remote=value)).decision == "allow"
    assert exact.evaluate(call("git", "push", remote=remote)).decision == "allow"
    assert exact.evaluate(call("git", "push", remote=remote.lower())).decision == "deny"


def test_a_url_outside_the_servers_domains_is_escalated() -> None:
    """No rule lets a server reach a domain it was not given; inside, rules decide."""
    gated = engine(rule("all", tool=["fetch"]), allowlists={"web": ["*.example"]})

    outside = gated.evaluate(call("web", "fetch", url="https://evil.test/"))
    inside = gated.evaluate(call("web", "fetch", url="https://a.example/"))

    assert outside == Decision("escalate", "structural-domain-escalate", ("fetch-url",))
    assert inside == Decision("allow", "all")


def test_cloning_into_the_sandbox_still_needs_the_remote() -> None:
    request = call("git", "clone", url="https://git.example/a/b", into=f"{SANDBOX}/b")
    ours = rule("ours", domains={"roles": ["git-remote-url"], "allowed": ["git.example"]})

    assert engine().evaluate(request) == Decision("deny", "default-deny")
    assert engine(ours).evaluate(request) == Decision("allow", "ours")


LISTED = {"roles": ["email-address"], "allowed": ["@team", "x@a.example"], "matchType": "emails"}
TEAM = {
    "team": {
        "values": ["ada@a.example", "gone@a.example"],
        "manualAdditions": ["eve@a.example"],
        "manualRemovals": ["gone@a.example"],
    }
}


@pytest.mark.parametrize(
    ("to", "decision"),
    [
        ("ADA@a.example", "allow"),
        (["eve@a.example", "x@a.example"], "allow"),
        (["eve@a.example", "mallory@a.example"], "deny"),
        ("gone@a.example", "deny"),
        ([], "deny"),
    ],
)
def test_lists_hold_all_or_nothing(to: object, decision: str) -> None:
    """Every value must be on the list, additions on, removals off, and there must be one."""
    mail = engine(rule("team", lists=[LISTED]), lists=TEAM)

    assert mail.evaluate(call("mail", "send", to=to)).decision == decision


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([rule("", tool=["x"])], "a name of its own"),
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


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"toolName": "x"}, "no 'serverName'"),
        ({"serverName": "web", "toolName": "fetch", "arguments": ["x"]}, "not a mapping"),
    ],
)
def test_a_request_that_is_none_is_refused(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        engine().evaluate(request_)
