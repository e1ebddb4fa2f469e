"""What is wrong with cassettes on disk: secrets, damage, age, size, tests that are gone."""

import codecs
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from pytest_regen.canonical import canonical_hash
from pytest_regen.cassettes.differences import Difference, differences
from pytest_regen.cassettes.files.decoding import UndecodableBodyError, unpacked, unpacked_file
from pytest_regen.cassettes.files.places import PARTIAL, is_packed, name_parts
from pytest_regen.cassettes.files.reading import CassetteFile, StoredInteraction, read_cassette
from pytest_regen.cassettes.headers import holds_credential
from pytest_regen.cassettes.paths import leaves
from pytest_regen.cassettes.scrubbing import hidden_in_stream, secrets_in
from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.cassettes.upkeep.unused import why_unused
from pytest_regen.cassettes.values import Interaction
from pytest_regen.errors import CassetteUnreadableError, UsageError
from pytest_regen.turns.secrets import ASSIGNED, find_secrets

__all__ = ["Finding", "Limits", "cassettes_in", "check_cassettes"]

Severity = Literal["error", "warning"]

_SUFFIXES = frozenset({".yaml", ".yml", ".json", PARTIAL})
_FOLDER = "cassettes"
_TOP = re.compile(
    rb"^(?:# pytest-regen cassette|['\"]?(?:http_)?interactions['\"]?\s*:)", re.MULTILINE
)
_LINE_END = re.compile(r"(?<!\\)\n")
"""Not where a double-quoted text of YAML goes on in the next line."""
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
    """From where on a cassette is reported as old or large."""

    days: int | None = None
    kilobytes: int = 1_000


def cassettes_in(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the cassettes among and below ``paths``, and the other YAML and JSON files, sorted.

    A file that is named is taken for a cassette whatever it is called and holds. Of a folder those
    are taken that have a cassette's suffix and lie below a folder called ``cassettes``, or have the
    key ``interactions``: what should be a cassette and is broken is among them.

    Raises:
        UsageError: nothing is there.
    """
    found: set[Path] = set()
    others: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for file in path.rglob("*"):
                if name_parts(file)[1] in _SUFFIXES and file.is_file():
                    (found if _should_be_cassette(file, path) else others).add(file)
        elif path.exists():
            found.add(path)
        else:
            raise UsageError(f"{path} is not there", hint="name cassettes, or folders of them")
    if not found:
        raise UsageError(
            f"no cassettes in {', '.join(map(str, paths))}",
            hint="a check of nothing would always pass: name cassettes, or folders of them",
        )
    return tuple(sorted(found)), tuple(sorted(others - found))


def _should_be_cassette(path: Path, folder: Path) -> bool:
    """Whether a file of ``folder`` is a cassette, or was meant to be one."""
    # As named, not from the root: a whole project may lie below a folder of that name.
    if path.suffix == PARTIAL or _FOLDER in (folder.absolute().name, *path.parts[:-1]):
        return True
    try:
        data = path.read_bytes()
        data = (unpacked_file(data) if is_packed(path) else data).removeprefix(codecs.BOM_UTF8)
    except (OSError, UndecodableBodyError):
        # Reported by the check, which cannot read it either.
        return True
    if not data.lstrip().startswith(b"{"):
        return _TOP.search(data) is not None
    value = json_or_none(data)
    return (
        not {"interactions", "http_interactions"}.isdisjoint(value)
        if isinstance(value, Mapping)
        else b'interactions"' in data
    )


def check_cassettes(
    paths: Iterable[Path], limits: Limits, drifted: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return what is wrong with these cassettes, by path and line.

    Args:
        paths: the cassettes.
        limits: what is old or large.
        drifted: cassettes (from the working folder) that drifted in the last test run.
    """
    found: list[Finding] = []
    files: list[CassetteFile] = []
    for path in paths:
        try:
            file = read_cassette(path)
            if file is not None:
                files.append(file)
                found += [*_secrets(file), *_edited(file), *_notes(file, limits, drifted)]
        except CassetteUnreadableError as error:
            found.append(_unreadable(path, error))
    found += _varying(files)
    return tuple(sorted(found, key=lambda one: (str(one.path), one.line or 0, one.code)))


def _unreadable(path: Path, error: CassetteUnreadableError) -> Finding:
    code = "EDITED" if error.is_edited else "UNREADABLE"
    return Finding(code, "error", path, error.line, error.why)


def _secrets(file: CassetteFile) -> Iterator[Finding]:
    """Yield credentials in the text as it stands, in decoded bodies, and in headers."""
    told = set()
    for number, kind in _in_lines(_text_of(file.path)):
        told.add(kind)
        yield Finding("SECRET", "error", file.path, number, f"a credential ({kind})")
    for stored in file.interactions:
        found = _readable(stored)
        if found is None:
            continue
        kinds = {*secrets_in(unpacked(found.request_body)), *secrets_in(found.response_body)}
        for kind in sorted({*kinds, *find_secrets(f"{found.uri} {found.reason}")} - told):
            message = f"a credential in a compressed or laid-out body ({kind})"
            yield Finding("SECRET", "error", file.path, stored.line, message)
        if found.is_stream:
            for kind in hidden_in_stream(found.response_body.decode("utf-8", "replace")):
                message = f"a credential in pieces, in several events of a stream ({kind})"
                yield Finding("SECRET", "error", file.path, stored.line, message)
        headers = [*found.request_headers.items(), *found.response_headers.items()]
        for name in sorted({name for name, values in headers if holds_credential(name, values)}):
            message = f"the header {name!r}, which holds a credential or identifies an account"
            yield Finding("HEADER", "error", file.path, stored.line, message)


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    return (unpacked_file(data) if is_packed(path) else data).decode("utf-8", "replace")


def _in_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the kinds of credential in each line, with its number.

    What is none but for its name (the signature of a thinking block is not) is looked at together
    with the lines it is folded with: YAML may break them between a quote and the name behind it.
    """
    first = 1
    for folded in _LINE_END.split(text):
        kinds = cache(partial(find_secrets, folded))
        lines = folded.split("\n")
        for number, line in enumerate(lines, first):
            for kind in find_secrets(line):
                if kind != ASSIGNED or len(lines) == 1 or kind in kinds():
                    yield number, kind
        first += len(lines)


def _readable(stored: StoredInteraction) -> Interaction | None:
    try:
        return stored.interaction
    except CassetteUnreadableError:
        return None


def _edited(file: CassetteFile) -> Iterator[Finding]:
    for stored in file.interactions:
        try:
            _ = stored.interaction
        except CassetteUnreadableError as error:
            yield _unreadable(file.path, error)


def _notes(file: CassetteFile, limits: Limits, drifted: Collection[str]) -> Iterator[Finding]:
    path = file.path

    def warning(code: str, message: str) -> Finding:
        return Finding(code, "warning", path, None, message)

    if path.suffix == PARTIAL:
        yield warning("PARTIAL", "left by a run that failed or was killed; rename it or delete it")
        return
    if not file.interactions:
        yield warning("EMPTY", "it holds no recording; delete it, or record into it")
    kilobytes = path.stat().st_size // 1_000
    if kilobytes > limits.kilobytes:
        yield warning("OVERSIZE", f"{kilobytes} kB, over {limits.kilobytes}")
    age = _age(file.metadata)
    if age is not None and limits.days is not None and age > limits.days:
        yield warning("STALE", f"recorded {age} days ago, over {limits.days}")
    if os.path.relpath(path) in drifted:
        yield warning("DRIFT", "a request of the last test run was not what is recorded here")
    unused = why_unused(path)
    if unused:
        yield warning("UNUSED", unused)


def _age(metadata: Mapping[str, Any]) -> int | None:
    """Return the days since it was recorded, if it says when."""
    try:
        recorded = date.fromisoformat(str(metadata.get("recorded_at")))
    except ValueError:
        return None
    return (date.today() - recorded).days  # noqa: DTZ011 - days suffice


def _varying(files: Sequence[CassetteFile]) -> Iterator[Finding]:
    """Yield the paths in which requests differ that are otherwise the same."""
    groups: defaultdict[str, dict[str, tuple[StoredInteraction, Any]]] = defaultdict(dict)
    for file in files:
        for stored in file.interactions:
            found = _readable(stored)
            body = json_or_none(found.request_body) if found is not None else None
            if isinstance(body, Mapping):
                # What is nested hundreds of levels deep is compared with nothing.
                with suppress(RecursionError):
                    masked = [(path, _masked(value)) for path, value in leaves(body)]
                    groups[canonical_hash(masked)].setdefault(stored.key, (stored, body))
    told: set[tuple[Path, str]] = set()
    for group in groups.values():
        (_, first), *others = group.values()
        for stored, body in others:
            for one in differences(first, body):
                if (stored.path, one.path) not in told:
                    told.add((stored.path, one.path))
                    message = f"{one.path} varies between recordings{_remedy(body, one)}"
                    yield Finding("VARIES", "warning", stored.path, stored.line, message)


def _remedy(body: Any, varying: Difference) -> str:  # noqa: ANN401 - any JSON value
    """Return what to do about a value that varies; to ignore a prompt would compare nothing."""
    whole = dict(leaves(body)).get(varying.path)
    if isinstance(whole, str) and _VOLATILE.fullmatch(whole):
        return f"; ignore = [{varying.path!r}]"
    return (
        f" in part: {varying.recorded} and {varying.sent}; a function given as normalize= takes "
        "that part out"
    )


def _masked(value: object) -> object:
    return _VOLATILE.sub("*", value) if isinstance(value, str) else value
