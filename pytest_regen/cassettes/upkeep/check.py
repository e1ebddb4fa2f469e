"""Checks of cassettes on disk: secrets, damage, age, size, missing tests; and their baseline."""

import codecs
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pytest_regen.canonical import canonical_hash
from pytest_regen.cassettes.files.bodies import UndecodableBodyError, unpack, unpack_file
from pytest_regen.cassettes.files.parser import parse_yaml, text_of
from pytest_regen.cassettes.files.reader import (
    CassetteFile,
    StoredInteraction,
    content_of,
    read_cassette,
)
from pytest_regen.cassettes.files.storage import PARTIAL, is_packed, name_parts, unused_reason
from pytest_regen.cassettes.headers import holds_credential, identifies_account
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.json_bodies import leaves
from pytest_regen.cassettes.misses import VOLATILE, Difference, differences
from pytest_regen.cassettes.scrubbing import credentials_across_events, secrets_and_values_in
from pytest_regen.credentials.names import is_placeholder
from pytest_regen.credentials.search import ASSIGNED, find_secrets, secrets_with_values
from pytest_regen.errors import CassetteUnreadableError, UsageError
from pytest_regen.files import replace_file
from pytest_regen.strict_json import json_or_none
from pytest_regen.text import plural

_VERSION: Final = 1
_ROUNDS: Final = 20_000
"""Some milliseconds per value: a short password must not be guessed from its hash."""
_HASH_BYTES: Final = 16


class AcceptedFinding(NamedTuple):
    """One accepted finding, as the baseline stores it."""

    path: str
    """The cassette, relative to the baseline's folder, with ``/``."""
    code: str
    """``SECRET`` or ``HEADER``."""
    kind: str
    """The kind of credential, or the name of the header."""
    hash: str


class Baseline:
    """The file of findings that are accepted and not reported again.

    It names the kind and the cassette of each finding with a hash of the value, but neither the
    value nor its line, so it may be committed, and lines may move.

    Args:
        path: the file.
        known: its entries.
        takes_all: whether every finding is added to it.
    """

    def __init__(
        self, path: Path, known: Iterable[AcceptedFinding] = (), *, takes_all: bool = False
    ) -> None:
        self.path = path
        self._known = frozenset(known)
        self._takes_all = takes_all
        self._met: set[AcceptedFinding] = set()

    @classmethod
    def read(cls, path: Path, *, takes_all: bool = False) -> "Baseline":
        """Return the baseline at ``path``.

        Args:
            path: the file; it may be missing if it takes all findings.
            takes_all: whether every finding is added to it.

        Raises:
            UsageError: it is missing, or not a baseline.
        """
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            if takes_all:
                return cls(path, takes_all=True)
            raise UsageError(
                f"{path} is not there",
                hint="make it with --update-baseline, or name another baseline",
            ) from None
        except OSError as error:
            raise UsageError(
                f"{path}: {error.strerror}", hint="name a baseline that can be read"
            ) from None
        return cls(path, _entries(path, json_or_none(data)), takes_all=takes_all)

    def covers(
        self, cassette: Path, code: Literal["SECRET", "HEADER"], kind: str, value: str
    ) -> bool:
        """Whether a finding is accepted; marks it as seen."""
        if not (self._known or self._takes_all):
            return False
        place = self._place(cassette)
        salt = f"{code}\0{kind}\0{place}".encode("utf-8", "surrogatepass")
        data = value.encode("utf-8", "surrogatepass")
        digest = pbkdf2_hmac("sha256", data, salt, _ROUNDS, _HASH_BYTES).hex()
        found = AcceptedFinding(place, code, kind, digest)
        if not self._takes_all and found not in self._known:
            return False
        self._met.add(found)
        return True

    def outdated_entries(self, checked: Iterable[Path]) -> tuple[AcceptedFinding, ...]:
        """Return entries that were not seen although their cassette was checked or is gone."""
        places = {self._place(path) for path in checked}
        folder = self.path.absolute().parent
        return tuple(
            sorted(
                entry
                for entry in self._known - self._met
                if entry.path in places or not (folder / entry.path).exists()
            )
        )

    def write(self, checked: Iterable[Path]) -> int:
        """Write the entries that were seen or whose cassettes were not checked; return how many.

        Raises:
            UsageError: it cannot be written.
        """
        kept = sorted((self._known | self._met) - {*self.outdated_entries(checked)})
        entries = [entry._asdict() for entry in kept]
        text = json.dumps({"version": _VERSION, "findings": entries}, indent=2, ensure_ascii=False)
        try:
            replace_file(self.path, f"{text}\n")
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}", hint="name another file"
            ) from None
        return len(kept)

    def _place(self, cassette: Path) -> str:
        return Path(os.path.relpath(cassette, self.path.absolute().parent)).as_posix()


def _entries(path: Path, value: Any) -> list[AcceptedFinding]:
    listed = value.get("findings") if isinstance(value, dict) else None
    if not isinstance(listed, list) or value.get("version") != _VERSION:
        raise _no_baseline(path, f"it has no list of findings of version {_VERSION}")
    found = []
    for number, entry in enumerate(listed, 1):
        names = AcceptedFinding._fields
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(name), str) for name in names
        ):
            wanted = ", ".join(names)
            raise _no_baseline(path, f"finding {number} has not all of {wanted} as text")
        found.append(AcceptedFinding(*(entry[name] for name in names)))
    return found


def _no_baseline(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is no baseline",
        why=why,
        hint="name another file, or make this one anew: delete it, then --update-baseline",
    )


FindingSeverity = Literal["error", "warning"]
Known = Callable[[Literal["SECRET", "HEADER"], str, str], bool]
"""Whether a finding is accepted, by code, kind and value."""

_SUFFIXES = frozenset({".yaml", ".yml", ".json", PARTIAL})
_FOLDER = "cassettes"
_TOP = re.compile(
    rb"^(?:# pytest-regen cassette|['\"]?(?:http_)?interactions['\"]?\s*:)", re.MULTILINE
)
_LINE_END = re.compile(r"(?<!\\)\n")
"""Not where double-quoted YAML text continues in the next line."""
_PROXY_COOKIES = frozenset({"__cf_bm", "_cfuvid", "__cflb", "__cfruid", "AWSALB", "AWSALBCORS"})
"""Cookies set by proxies to tell machines from people and to balance load."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about one cassette."""

    code: str
    severity: FindingSeverity
    path: Path
    line: int | None
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        mark = "" if self.severity == "error" else "warning: "
        return f"{place}: {mark}[{self.code}] {self.message}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The age and the size from which a cassette is reported."""

    days: int | None = None
    kilobytes: int = 1_000


def cassettes_in(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the cassettes in ``paths``, and the other YAML and JSON files, both sorted.

    A file that is named is taken as a cassette whatever its name and content. In a folder, files
    with a cassette's suffix are taken if they lie below a folder called ``cassettes`` or have the
    key ``interactions``, so that broken cassettes are among them.

    Raises:
        UsageError: there is nothing at a path.
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
    """Whether a file in ``folder`` is a cassette or was meant to be one."""
    # The path as given, not from the root: a whole project may lie below a folder of that name.
    if path.suffix == PARTIAL or _FOLDER in (folder.absolute().name, *path.parts[:-1]):
        return True
    try:
        data = path.read_bytes()
        data = (unpack_file(data) if is_packed(path) else data).removeprefix(codecs.BOM_UTF8)
    except (OSError, UndecodableBodyError):
        # The check reports it, as it cannot read it either.
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
    paths: Iterable[Path],
    limits: Limits,
    drifted: Collection[str] = (),
    baseline: Baseline | None = None,
) -> tuple[Finding, ...]:
    """Return the findings in these cassettes, by path and line.

    Args:
        paths: the cassettes.
        limits: from where a cassette counts as old or large.
        drifted: cassettes (relative to the working directory) that drifted in the last test run.
        baseline: credentials and headers that are not reported again.
    """
    found: list[Finding] = []
    files: list[CassetteFile] = []
    for path in paths:
        known = partial(baseline.covers, path) if baseline else _is_new
        try:
            file = read_cassette(path)
            if file is not None:
                files.append(file)
                found += [
                    *_secrets(file, known),
                    *_edit_findings(file),
                    *_notes(file, limits, drifted),
                ]
        except CassetteUnreadableError as error:
            layout = _other_layout(path)
            if layout:
                found.append(Finding("FOREIGN", "warning", path, error.line, layout))
                found += [finding for finding, _ in _secret_lines(path, known)]
            else:
                found.append(_unreadable(path, error))
    found += _variation_findings(files)
    return tuple(sorted(found, key=lambda one: (str(one.path), one.line or 0, one.code)))


def outdated_findings(baseline: Baseline, checked: Iterable[Path]) -> tuple[Finding, ...]:
    """Return the entries of a baseline that no longer apply, one finding for each cassette."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for entry in baseline.outdated_entries(checked):
        kinds[entry.path].append(entry.kind)
    return tuple(
        Finding(
            "BASELINE",
            "warning",
            baseline.path,
            None,
            f"{plural(len(found), 'finding')} of {path} no longer "
            f"{'applies' if len(found) == 1 else 'apply'} ({', '.join(sorted({*found}))})",
        )
        for path, found in kinds.items()
    )


def _is_new(code: str, kind: str, value: str) -> bool:  # noqa: ARG001 - as a baseline is asked
    return False


def _unreadable(path: Path, error: CassetteUnreadableError) -> Finding:
    code = "EDITED" if error.is_edited else "UNREADABLE"
    return Finding(code, "error", path, error.line, error.why)


def _other_layout(path: Path) -> str:
    """Return what a valid file of interactions holds if they are not HTTP as vcrpy records it.

    For example messages of a socket, calls of another protocol, or bodies that only the project's
    serializer understands. Empty if something is missing that should be there.
    """
    try:
        data, _ = parse_yaml(text_of(path, content_of(path)[0] or b""), path)
    except CassetteUnreadableError:
        return ""
    items = data.get("interactions") if isinstance(data, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return ""
    if not any({"request", "response", "key"} & item.keys() for item in items):
        what = ", ".join(sorted({str(name) for name in items[0]})[:4])
        return f"it holds no requests of HTTP but {what}: only its text was searched"
    halves = [item.get(half) for item in items for half in ("request", "response")]
    if any(_is_laid_out(half) for half in halves):
        return "its bodies are laid out by another serializer: only its text was searched"
    return ""


def _is_laid_out(half: object) -> bool:
    """Whether a body has members of its own, rather than text under a misspelt key."""
    body = half.get("body") if isinstance(half, Mapping) else None
    if not isinstance(body, Mapping) or {"string", "base64_string"} & body.keys():
        return False
    return len(body) > 1 or any(isinstance(value, Mapping | list) for value in body.values())


def _secret_lines(path: Path, known: Known) -> Iterator[tuple[Finding, str]]:
    """Yield credentials in the raw text, each with its kind."""
    for number, kind, value in _secrets_by_line(_text_of(path)):
        if not known("SECRET", kind, value):
            yield Finding("SECRET", "error", path, number, f"a credential ({kind})"), kind


def _secrets(file: CassetteFile, known: Known) -> Iterator[Finding]:
    """Yield credentials in the raw text, in decoded bodies, and in headers."""
    reported = set()
    for finding, kind in _secret_lines(file.path, known):
        reported.add(kind)
        yield finding
    for stored in file.interactions:
        found = _readable(stored)
        if found is None:
            continue
        pairs = {
            *secrets_and_values_in(unpack(found.request_body)),
            *secrets_and_values_in(found.response_body),
            *secrets_with_values(f"{found.uri} {found.reason}"),
        }
        kinds = {kind for kind, value in pairs if not known("SECRET", kind, value)}
        for kind in sorted(kinds - reported):
            message = f"a credential in a compressed or laid-out body ({kind})"
            yield Finding("SECRET", "error", file.path, stored.line, message)
        if found.is_stream:
            text = found.response_body.decode("utf-8", "replace")
            for kind in credentials_across_events(text):
                if not known("SECRET", kind, text):
                    message = f"a credential in pieces, in several events of a stream ({kind})"
                    yield Finding("SECRET", "error", file.path, stored.line, message)
        yield from _headers(file.path, stored.line, found, known)


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    try:
        return (unpack_file(data) if is_packed(path) else data).decode("utf-8", "replace")
    except UndecodableBodyError:
        # Reported as unreadable; there is nothing to search.
        return ""


def _headers(path: Path, line: int, found: Interaction, known: Known) -> Iterator[Finding]:
    telling: defaultdict[str, list[str]] = defaultdict(list)
    for name, values in (*found.request_headers.items(), *found.response_headers.items()):
        if holds_credential(name, values) and not _is_harmless_header(name, values):
            telling[name] += values
    for name, said in sorted(telling.items()):
        if known("HEADER", name, "\n".join(said)):
            continue
        if identifies_account(name):
            message = f"the header {name!r}, which identifies an account"
            yield Finding("HEADER", "warning", path, line, message)
        else:
            message = f"the header {name!r}, which holds a credential"
            yield Finding("HEADER", "error", path, line, message)


def _is_harmless_header(name: str, values: Iterable[str]) -> bool:
    """Whether a header holds only placeholders, or cookies unrelated to an account."""
    if all(map(is_placeholder, values)):
        return True
    if name not in {"cookie", "set-cookie"}:
        return False
    cookies = [cookie for value in values for cookie in value.split(";")[: _pairs_in(name)]]
    return all(cookie.partition("=")[0].strip() in _PROXY_COOKIES for cookie in cookies)


def _pairs_in(name: str) -> int | None:
    # After the first pair of Set-Cookie come its attributes.
    return 1 if name == "set-cookie" else None


def _secrets_by_line(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each line with a credential, its kind and its text.

    What counts as a credential only by its name is searched together with the lines it is folded
    with: YAML may break lines between a quote and the name after it.
    """
    first = 1
    for folded in _LINE_END.split(text):
        kinds = cache(partial(find_secrets, folded))
        lines = folded.split("\n")
        for number, line in enumerate(lines, first):
            reported = set()
            for kind, value in secrets_with_values(line):
                if kind not in reported and (
                    kind != ASSIGNED or len(lines) == 1 or kind in kinds()
                ):
                    reported.add(kind)
                    yield number, kind, value
        first += len(lines)


def _readable(stored: StoredInteraction) -> Interaction | None:
    try:
        return stored.interaction
    except CassetteUnreadableError:
        return None


def _edit_findings(file: CassetteFile) -> Iterator[Finding]:
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
    unused = unused_reason(path)
    if unused:
        yield warning("UNUSED", unused)


def _age(metadata: Mapping[str, Any]) -> int | None:
    """Return the days since it was recorded, if the file says when."""
    try:
        recorded = date.fromisoformat(str(metadata.get("recorded_at")))
    except ValueError:
        return None
    return (date.today() - recorded).days  # noqa: DTZ011 - days suffice


def _variation_findings(files: Sequence[CassetteFile]) -> Iterator[Finding]:
    """Yield the paths at which otherwise equal requests differ."""
    groups: defaultdict[str, dict[str, tuple[StoredInteraction, Any]]] = defaultdict(dict)
    for file in files:
        for stored in file.interactions:
            found = _readable(stored)
            body = json_or_none(found.request_body) if found is not None else None
            if isinstance(body, Mapping):
                # Values nested hundreds of levels deep are not compared.
                with suppress(RecursionError):
                    masked = [(path, _mask_volatile(value)) for path, value in leaves(body)]
                    groups[canonical_hash(masked)].setdefault(stored.key, (stored, body))
    reported: set[tuple[Path, str]] = set()
    for group in groups.values():
        (_, first), *others = group.values()
        for stored, body in others:
            for difference in differences(first, body):
                if (stored.path, difference.path) not in reported:
                    reported.add((stored.path, difference.path))
                    message = (
                        f"{difference.path} varies between recordings{_remedy(body, difference)}"
                    )
                    yield Finding("VARIES", "warning", stored.path, stored.line, message)


def _remedy(body: Any, varying: Difference) -> str:
    """Return advice for a value that varies; ignoring a whole prompt would compare nothing."""
    whole = dict(leaves(body)).get(varying.path)
    if isinstance(whole, str) and VOLATILE.fullmatch(whole):
        return f"; ignore = [{varying.path!r}]"
    return (
        f" in part: {varying.recorded} and {varying.sent}; a function given as normalize= takes "
        "that part out"
    )


def _mask_volatile(value: object) -> object:
    return VOLATILE.sub("*", value) if isinstance(value, str) else value
