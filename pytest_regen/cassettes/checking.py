"""What is wrong with cassettes on disk: secrets, damage, age, size, tests that are gone."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pytest_regen.canonical import canonical_hash
from pytest_regen.cassettes.differences import differences
from pytest_regen.cassettes.paths import leaves
from pytest_regen.cassettes.reading import CassetteFile, StoredInteraction, read_cassette
from pytest_regen.cassettes.scrubbing import PRIVATE_HEADERS
from pytest_regen.cassettes.values import json_or_none
from pytest_regen.errors import CassetteUnreadableError, UsageError
from pytest_regen.turns.secrets import find_secrets

__all__ = ["Finding", "Limits", "cassettes_in", "check_cassettes"]

Severity = Literal["error", "warning"]

_SUFFIXES = frozenset({".yaml", ".yml", ".json", ".partial"})
_VOLATILE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b(?:[a-z]+_)?(?=\w*\d)[A-Za-z0-9]{12,}\b|\b\d{6,}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one cassette."""

    code: str
    severity: Severity
    path: Path
    line: int | None
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        mark = "" if self.severity == "error" else "warning: "
        return f"{place}: {mark}[{self.code}] {self.message}"


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a cassette is told as old or large."""

    days: int | None = None
    kilobytes: int = 1_000
    today: date | None = None
    drifted: frozenset[str] = frozenset()
    """Cassettes (from the working folder) that drifted in the last test run."""


def cassettes_in(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the cassettes among and below ``paths``, sorted.

    A file that is named is taken whatever it is called; in folders those with a cassette's suffix.

    Raises:
        UsageError: nothing is there.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
        elif path.exists():
            found.add(path)
        else:
            raise UsageError(f"{path} is not there", hint="name cassettes, or folders of them")
    if not found:
        raise UsageError(
            f"no cassettes in {', '.join(map(str, paths))}",
            hint="a check of nothing would always pass: name cassettes, or folders of them",
        )
    return tuple(sorted(found))


def check_cassettes(paths: Iterable[Path], limits: Limits) -> tuple[Finding, ...]:
    """Return what is wrong with these cassettes, by path and line."""
    found: list[Finding] = []
    files: list[CassetteFile] = []
    for path in paths:
        try:
            file = read_cassette(path)
            if file is not None:
                files.append(file)
                found += [*_secrets(file), *_edited(file), *_notes(file, limits)]
        except CassetteUnreadableError as error:
            line = re.search(r":(\d+): ", error.what)
            found.append(
                Finding("UNREADABLE", "error", path, int(line[1]) if line else None, error.why)
            )
    found += _varying(files)
    return tuple(sorted(found, key=lambda one: (str(one.path), one.line or 0, one.code)))


def _secrets(file: CassetteFile) -> Iterator[Finding]:
    """Yield credentials in the text as it stands, in decoded bodies, and in headers."""
    told = set()
    for number, line in enumerate(file.path.read_text("utf-8", "replace").splitlines(), 1):
        for kind in find_secrets(line):
            told.add(kind)
            yield Finding("SECRET", "error", file.path, number, f"a credential ({kind})")
    for stored in file.interactions:
        found = _readable(stored)
        if found is None:
            continue
        bodies = (found.request_body + b"\n" + found.response_body).decode("utf-8", "replace")
        for kind in set(find_secrets(bodies + " " + found.uri)) - told:
            message = f"a credential in a compressed or laid-out body ({kind})"
            yield Finding("SECRET", "error", file.path, stored.line, message)
        for name in {*found.request_headers, *found.response_headers} & PRIVATE_HEADERS:
            message = f"the header {name!r}, which holds a credential or identifies an account"
            yield Finding("HEADER", "error", file.path, stored.line, message)


def _readable(stored: StoredInteraction) -> Any:  # noqa: ANN401 - an Interaction or None
    try:
        return stored.interaction
    except CassetteUnreadableError:
        return None


def _edited(file: CassetteFile) -> Iterator[Finding]:
    for stored in file.interactions:
        try:
            _ = stored.interaction
        except CassetteUnreadableError as error:
            yield Finding("EDITED", "error", file.path, stored.line, error.why)


def _notes(file: CassetteFile, limits: Limits) -> Iterator[Finding]:
    path = file.path

    def warning(code: str, message: str) -> Finding:
        return Finding(code, "warning", path, None, message)

    if path.suffix == ".partial":
        yield warning("PARTIAL", "left by a run that failed or was killed; rename it or delete it")
        return
    kilobytes = path.stat().st_size // 1_000
    if kilobytes > limits.kilobytes:
        yield warning("OVERSIZE", f"{kilobytes} kB, over {limits.kilobytes}")
    age = _age(file.metadata, limits)
    if age is not None and limits.days is not None and age > limits.days:
        yield warning("STALE", f"recorded {age} days ago, over {limits.days}")
    if str(path) in limits.drifted:
        yield warning("DRIFT", "a request of the last test run was not what is recorded here")
    gone = _gone(path)
    if gone:
        yield warning("UNUSED", gone)


def _age(metadata: Mapping[str, Any], limits: Limits) -> int | None:
    try:
        recorded = date.fromisoformat(str(metadata.get("recorded_at")))
    except ValueError:
        return None
    return ((limits.today or date.today()) - recorded).days  # noqa: DTZ011 - days suffice


def _gone(path: Path) -> str:
    """Return why no test can use a cassette that lies where those of a module's tests do."""
    folder = next((p for p in path.parents if p.parent.name == "cassettes"), None)
    if folder is None or not folder.name.startswith("test"):
        return ""
    module = folder.parent.parent / f"{folder.name}.py"
    if not module.is_file():
        return f"its test module {module} is gone"
    try:
        tree = ast.parse(module.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return ""
    name = path.relative_to(folder).with_suffix("").as_posix()
    known = {*_test_names(tree), *_texts(tree)}
    plain = name.partition("[")[0]
    return "" if {name, plain, path.name} & known else f"{module} has no test {plain}"


def _test_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            # A class may inherit its tests, so every method counts for every class.
            names = {
                n.name
                for n in ast.walk(tree)
                if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
            }
            yield from (f"{node.name}.{name}" for name in names)


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _varying(files: Sequence[CassetteFile]) -> Iterator[Finding]:
    """Yield the paths in which requests differ that are otherwise the same."""
    groups: defaultdict[str, dict[str, tuple[StoredInteraction, Any]]] = defaultdict(dict)
    for file in files:
        for stored in file.interactions:
            found = _readable(stored)
            body = json_or_none(found.request_body) if found is not None else None
            if isinstance(body, Mapping):
                masked = [(path, _masked(value)) for path, value in leaves(body)]
                groups[canonical_hash(masked)].setdefault(stored.key, (stored, body))
    told: set[tuple[Path, str]] = set()
    for group in groups.values():
        (_, first), *others = group.values()
        for stored, body in others:
            for one in differences(first, body):
                if (stored.path, one.path) not in told:
                    told.add((stored.path, one.path))
                    message = f"{one.path} varies between recordings; ignore = [{one.path!r}]"
                    yield Finding("VARIES", "warning", stored.path, stored.line, message)


def _masked(value: object) -> object:
    return _VOLATILE.sub("*", value) if isinstance(value, str) else value
