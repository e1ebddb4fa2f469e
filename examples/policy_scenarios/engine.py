"""A policy engine: decides, from rules and fixed invariants, whether a tool may be called.

    engine = PolicyEngine(policy, annotations, home="/home/ada", sandbox="/home/ada/box")
    engine.evaluate({"serverName": "files", "toolName": "read", "arguments": {"path": "/etc"}})

Every argument of a tool carries *roles* that say what the call does with it: reads a path, fetches
a URL. Structural invariants come first and no rule can change them; then each role is judged on
its own by the first rule that covers it, and the strictest verdict decides. What no rule covers is
denied. The engine is deterministic, runs no process, opens no connection, and needs this file only.
"""

import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pytest_regen.sessions import ScenarioRequest

Verdict = Literal["allow", "escalate", "deny"]
Outcome = tuple[Verdict, str]

PATH_ROLES = frozenset(
    {"read-path", "write-path", "delete-path", "write-history", "delete-history"}
)
URL_ROLES = frozenset({"fetch-url", "git-remote-url"})
RESOURCE_ROLES = PATH_ROLES | URL_ROLES | {"github-owner", "github-repo", "proxy-domain"}
"""Roles that name something outside the call; others (text, names, flags) need no permission."""

CONTAINED_SERVERS = frozenset({"filesystem", "git"})
"""Servers that are really confined to the sandbox, so that what they do inside it is harmless."""

_SEVERITY: dict[Verdict, int] = {"allow": 0, "escalate": 1, "deny": 2}
_DEFAULT: Outcome = ("deny", "default-deny")
_IN_SANDBOX: Outcome = ("allow", "structural-sandbox-allow")
_CONDITIONS = frozenset({"roles", "server", "tool", "paths", "domains", "lists"})
_SCP_REMOTE = re.compile(r"(?:[^@/:]+@)?([^:/@]+):(?!//)(.+)")


class PolicyError(ValueError):
    """A policy, an annotation or a request that the engine cannot read; says where and why."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the engine says about one request."""

    decision: Verdict
    rule: str
    """Name of the rule that decided; ``structural-…`` are invariants, ``default-deny`` is none."""
    escalated_roles: tuple[str, ...] = ()
    """Roles a person must approve, in the order of the annotation; only where escalated."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A request with the roles its arguments have in this very call."""

    server: str
    tool: str
    arguments: Mapping[str, Any]
    roles: Mapping[str, tuple[str, ...]] | None
    """Roles by argument name, given or not; ``None``: nobody annotated the tool."""
    carried: tuple[str, ...] = ()
    """Distinct roles of the tool's arguments, in the order of the annotation."""

    def values(self, roles: Iterable[str]) -> list[str]:
        """Return the strings that carry one of these roles, each once."""
        selected = frozenset(roles)
        strings: dict[str, None] = {}
        for name, carried in (self.roles or {}).items():
            if selected.intersection(carried):
                value = self.arguments.get(name)
                items = value if isinstance(value, list | tuple) else [value]
                strings |= dict.fromkeys(item for item in items if isinstance(item, str))
        return list(strings)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """One ``domains`` or ``lists`` condition: values of these roles must all be allowed."""

    roles: frozenset[str]
    allowed: tuple[str, ...]
    matches: Callable[[str, str, str], bool]
    """Takes the value, one allowed pattern and the role."""

    def holds(self, call: _Call, role: str | None) -> bool:
        """Whether there are values, of this role or else of its own, and each is allowed."""
        roles = {role} if role is not None and role in self.roles else self.roles
        carried = [(value, name) for name in roles for value in call.values({name})]
        return bool(carried) and all(
            any(self.matches(value, pattern, name) for pattern in self.allowed)
            for value, name in carried
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule with its paths resolved and its lists expanded."""

    outcome: Outcome
    conditions: Mapping[str, frozenset[str]]
    """Its conditions ``roles``, ``server`` and ``tool``; the call must have one of each."""
    within: tuple[frozenset[str], str] | None
    allowed: tuple[tuple[_Allowed, ...], ...]
    """Its domains and its lists; within one, entries speak of a role together."""

    def applies(self, call: _Call, role: str | None) -> bool:
        """Whether every condition but the paths holds for this role of the call."""
        has = {"roles": call.carried, "server": (call.server,), "tool": (call.tool,)}
        return (
            not any(names.isdisjoint(has[key]) for key, names in self.conditions.items())
            and (role is None or self._speaks_of(role))
            and all(entry.holds(call, role) for entries in self.allowed for entry in entries)
        )

    def _speaks_of(self, role: str) -> bool:
        limits = [self.conditions.get("roles"), None if self.within is None else self.within[0]]
        return all(roles is None or role in roles for roles in limits) and all(
            any(role in entry.roles for entry in entries) for entries in self.allowed
        )


class PolicyEngine:
    """Decides requests. Immutable once built; safe to use from several threads.

    Args:
        policy: ``{"rules": [{name, if, then, …}]}``, first match first; ``if`` holds any of
            ``roles``, ``server``, ``tool``, ``paths {roles, within}``,
            ``domains {roles, allowed}``, ``lists [{roles, allowed, matchType}]``; all must be met.
        annotations: ``{"servers": {name: {"tools": […]}}}`` or the tools alone; a tool is
            ``{serverName, toolName, args: {argument: roles}}``, roles a list or, where they depend
            on the call, ``{"default": […], "when": [{"condition": …, "roles": […]}]}``.
        home: folder that ``~`` stands for; relative paths start from the process' own folder.
        sandbox: folder in which contained servers may do anything.
        protected: paths nobody may touch, except where they lie in the sandbox.
        allowlists: domain patterns by server; a URL that matches none is escalated.
        lists: named lists (``@name`` in a rule), ``values`` and ``manualAdditions`` less
            ``manualRemovals``.
        trusted: servers whose every call is allowed.

    Raises:
        PolicyError: a rule or annotation cannot be read.
    """

    def __init__(
        self,
        policy: Mapping[str, Any],
        annotations: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        home: str | os.PathLike[str] | None = None,
        sandbox: str | os.PathLike[str] | None = None,
        protected: Iterable[str | os.PathLike[str]] = (),
        allowlists: Mapping[str, Sequence[str]] | None = None,
        lists: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
        trusted: Iterable[str] = (),
    ) -> None:
        self._home = os.fspath(home) if home is not None else os.environ.get("HOME", "/")
        self._sandbox = None if sandbox is None else self.resolve(os.fspath(sandbox))
        self._protected = tuple(self.resolve(os.fspath(path)) for path in protected)
        self._allowlists = allowlists or {}
        self._trusted = frozenset(trusted)
        self._tools = {_key(tool): tool.get("args", {}) for tool in _flat(annotations)}
        self._rules = tuple(self._read(rule, lists or {}) for rule in _rules_of(policy))

    def resolve(self, path: str) -> str:
        """Return the real path: ``~`` replaced, ``..`` taken out as text, then links followed.

        What does not exist keeps its name below the deepest folder that does.
        """
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        start = "/" if path.startswith("/") else os.getcwd()
        # POSIX lets normpath keep two leading slashes; one of our own in front takes them away.
        absolute = "/" + os.path.normpath(f"{start}/{path}").lstrip("/")
        try:
            return os.path.realpath(absolute)
        except (OSError, ValueError):  # NUL or a lone surrogate: no file can have this name
            return absolute

    def evaluate(self, request: "Mapping[str, Any] | ScenarioRequest") -> Decision:
        """Decide one request: ``{"serverName": …, "toolName": …, "arguments": {…}}`` or an object.

        Raises:
            PolicyError: the request has no server, no tool, or arguments that are no mapping.
        """
        call = self._call(request)
        resources = [role for role in call.carried if role in RESOURCE_ROLES]
        structural = self._structural(call, resources)
        if structural is not None:
            return structural
        if not resources:
            return Decision(*self._first_match(call, None))
        remaining = [role for role in resources if not self._in_sandbox(call, role)]
        if not remaining:
            return Decision(*_IN_SANDBOX)
        judged = {role: self._judge(call, role) for role in remaining}
        verdict, rule = max(judged.values(), key=_severity)
        if verdict != "escalate":
            return Decision(verdict, rule)
        return Decision(verdict, rule, tuple(r for r in remaining if judged[r][0] == "escalate"))

    def _call(self, request: "Mapping[str, Any] | ScenarioRequest") -> _Call:
        if isinstance(request, Mapping):
            (server, tool), arguments = _key(request), request.get("arguments", {})
        else:
            server, tool, arguments = request.server_name, request.tool_name, request.arguments
        if not isinstance(arguments, Mapping):
            raise PolicyError(f"arguments of {server}/{tool} are {arguments!r}, not a mapping")
        annotated = self._tools.get((server, tool))
        if annotated is None:
            return _Call(server, tool, arguments, None)
        roles = {name: _roles_in_call(spec, arguments) for name, spec in annotated.items()}
        carried = tuple(dict.fromkeys(role for own_roles in roles.values() for role in own_roles))
        return _Call(server, tool, arguments, roles, carried)

    def _structural(self, call: _Call, resources: Sequence[str]) -> Decision | None:
        """Return what the invariants say, in their order, or ``None`` where they are silent."""
        if call.server in self._trusted:
            return Decision("allow", "trusted-server")
        if any(self._is_protected(path) for path in call.values(PATH_ROLES)):
            return Decision("deny", "structural-protected-path")
        introspects = (call.server, call.tool) == ("filesystem", "list_allowed_directories")
        if introspects and call.roles is not None and not call.arguments:
            return Decision("allow", "structural-introspection-allow")
        for role in resources if call.server in self._allowlists else ():
            patterns = self._allowlists[call.server]
            urls = call.values({role}) if role in URL_ROLES else ()
            if any(not any(_domain_matches(url, p, role) for p in patterns) for url in urls):
                return Decision("escalate", "structural-domain-escalate", (role,))
        return Decision("deny", "structural-unknown-tool") if call.roles is None else None

    def _is_protected(self, path: str) -> bool:
        spared = self._sandbox is not None and self._is_within(path, self._sandbox)
        return not spared and any(self._is_within(path, folder) for folder in self._protected)

    def _in_sandbox(self, call: _Call, role: str) -> bool:
        """Whether a contained server uses this role on paths of the sandbox, and no other."""
        if self._sandbox is None or call.server not in CONTAINED_SERVERS or role not in PATH_ROLES:
            return False
        values = call.values({role})
        return bool(values) and all(self._is_within(path, self._sandbox) for path in values)

    def _judge(self, call: _Call, role: str) -> Outcome:
        """Let each rule in turn take charge of the values it covers, until none is left."""
        values = left = call.values({role})
        if not values:
            return self._first_match(call, role)
        if self._sandbox is not None and call.server == "filesystem" and role in PATH_ROLES:
            left = [value for value in values if not self._is_within(value, self._sandbox)]
        in_sandbox = [] if left == values else [_IN_SANDBOX]
        outcomes: list[Outcome] = []
        for rule in self._rules:
            if left and rule.applies(call, role):
                beyond = [v for v in left if rule.within and not self._is_within(v, rule.within[1])]
                outcomes += [] if beyond == left else [rule.outcome]
                left = beyond
        # Where both allow, the rule is told rather than the sandbox; the first of equals decides.
        return _DEFAULT if left else max([*outcomes, *in_sandbox], key=_severity)

    def _first_match(self, call: _Call, role: str | None) -> Outcome:
        for rule in self._rules:
            if rule.applies(call, role) and self._paths_hold(rule, call, role):
                return rule.outcome
        return _DEFAULT

    def _paths_hold(self, rule: _Rule, call: _Call, role: str | None) -> bool:
        roles, folder = rule.within or ((), "")
        values = call.values(roles if role is None else {role})
        inside = bool(values) and all(self._is_within(value, folder) for value in values)
        return inside or rule.within is None

    def _is_within(self, path: str, folder: str) -> bool:
        real = self.resolve(path)
        return real == folder or real.startswith(folder.rstrip("/") + "/")

    def _read(self, rule: Mapping[str, Any], lists: Mapping[str, Any]) -> _Rule:
        """Return a rule ready to be evaluated."""
        when, name = rule["if"], rule["name"]
        paths, domains = when.get("paths"), when.get("domains")
        groups = [[{**domains, "matchType": "domains"}] if domains else [], when.get("lists", [])]
        return _Rule(
            (rule["then"], name),
            {key: frozenset(when[key]) for key in ("roles", "server", "tool") if key in when},
            (frozenset(paths["roles"]), self.resolve(paths["within"])) if paths else None,
            tuple(tuple(_allowed(entry, lists, name) for entry in some) for some in groups if some),
        )


def _severity(outcome: Outcome) -> int:
    return _SEVERITY[outcome[0]]


def _rules_of(policy: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rules, once each has a name of its own, known conditions and a verdict."""
    rules = list(policy["rules"])
    names = [rule.get("name") for rule in rules]
    for name, rule in zip(names, rules, strict=True):
        conditions = set(rule.get("if") or ())
        if not name or names.count(name) > 1:
            raise PolicyError(f"a rule is named {name!r}; each needs a name of its own")
        if not conditions or not conditions <= _CONDITIONS:
            raise PolicyError(f"rule {name!r} needs conditions out of {sorted(_CONDITIONS)}")
        if rule.get("then") not in _SEVERITY:
            raise PolicyError(f"rule {name!r} says {rule.get('then')!r}, not allow, escalate, deny")
    return rules


def _allowed(entry: Mapping[str, Any], lists: Mapping[str, Any], rule: str) -> _Allowed:
    """Return a condition with its lists expanded; a list that nobody passed allows nothing."""
    if entry["matchType"] not in _MATCHES:
        raise PolicyError(f"rule {rule!r} has a matchType other than {', '.join(_MATCHES)}")
    expanded: list[str] = []
    for value in entry["allowed"]:
        members = lists.get(value[1:], {}) if value.startswith("@") else {"values": [value]}
        removed = set(members.get("manualRemovals", ()))
        values = [*members.get("values", ()), *members.get("manualAdditions", ())]
        expanded += [member for member in values if member not in removed]
    return _Allowed(frozenset(entry["roles"]), tuple(expanded), _MATCHES[entry["matchType"]])


def _flat(annotations: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tools of an annotation file, each with the name of its server."""
    if not isinstance(annotations, Mapping):
        return list(annotations)
    servers = annotations["servers"].items()
    return [{"serverName": name, **tool} for name, server in servers for tool in server["tools"]]


def _key(tool: Mapping[str, Any]) -> tuple[str, str]:
    try:
        return str(tool["serverName"]), str(tool["toolName"])
    except KeyError as missing:
        raise PolicyError(f"{dict(tool)!r} has no {missing}") from None


def _roles_in_call(spec: Any, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the roles of one argument, given all arguments of the call."""
    if not isinstance(spec, Mapping):
        return tuple(spec)
    cases = (case for case in spec.get("when", ()) if _is_met(case["condition"], arguments))
    return tuple(next(cases, {"roles": spec["default"]})["roles"])


def _is_met(condition: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a call meets a condition; comparisons know ``true`` from 1, as JSON does."""
    value = arguments.get(condition["arg"])
    if "is" not in condition:
        meant = condition["in"] if "in" in condition else [condition["equals"]]
        return any((type(value) is bool, value) == (type(other) is bool, other) for other in meant)
    is_truthy = isinstance(value, list | dict) or bool(value)
    answers = {"present": value is not None, "absent": value is None, "truthy": is_truthy}
    return answers.get(condition["is"], not is_truthy)


def _domain_of(text: str, role: str) -> str:
    """Return the host of a URL, with the repository's path for a git remote, else the text."""
    is_remote = role == "git-remote-url"
    scp = _SCP_REMOTE.fullmatch(text) if is_remote else None
    try:
        parts = urlsplit(text.replace("\\", "/"))  # as browsers read it
        scheme, host, path = parts.scheme, parts.hostname or "", parts.path
    except ValueError:
        return text
    if scp is not None:
        scheme, host, path = "ssh", scp[1].lower(), scp[2]
    path = path.strip("/").removesuffix(".git") if is_remote else ""
    return (f"{host}/{path}" if host and path else host) if scheme else text


def _domain_matches(text: str, pattern: str, role: str) -> bool:
    """Whether a URL's domain is meant: ``*`` any name, ``*.x`` x and below, ``x/y`` exactly."""
    # Hosts have no letter case, with or without a scheme before them; repositories' paths have.
    host, slash, path = _domain_of(text, role).partition("/")
    host = host.lower()
    if pattern == "*":
        return bool(host) and not _is_address(host)
    if pattern.startswith("*."):
        return host == pattern[2:].lower() or host.endswith(pattern[1:].lower())
    if "/" not in pattern:
        return bool(host) and host == pattern.lower()
    pattern_host, _, pattern_path = pattern.partition("/")
    return bool(slash) and (host, path) == (pattern_host.lower(), pattern_path)


def _is_address(host: str) -> bool:
    """Whether a host is an IP address in any spelling: dotted, short, one number, hexadecimal."""
    try:
        return ":" in host or bool(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return False


_MATCHES: dict[str, Callable[[str, str, str], bool]] = {
    "domains": _domain_matches,
    "emails": lambda text, pattern, _: text.lower() == pattern.lower(),
    "identifiers": lambda text, pattern, _: text == pattern,
}
