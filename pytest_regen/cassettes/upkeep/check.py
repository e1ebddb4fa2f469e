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
from functools import partial
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from pytest_regen.cassettes.files.bodies import UndecodableBodyError, unpack, unpack_file
from pytest_regen.cassettes.files.format import RECORDING
from pytest_regen.cassettes.files.parser import parse_text, text_of
from pytest_regen.cassettes.files.reader import CassetteFile, content_of, read_cassette
from pytest_regen.cassettes.files.storage import PARTIAL, is_packed, name_parts, unused_reason
from pytest_regen.cassettes.headers import holds_credential, identifies_account
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.scrubbing import credentials_across_events, secrets_in
from pytest_regen.credentials.names import is_placeholder
from pytest_regen.credentials.search import secrets_with_values
from pytest_regen.errors import CassetteUnreadableError, UsageError
from pytest_regen.files import replace_file
from pytest_regen.strict_json import json_or_none

_VERSION: Final = 1
# Some milliseconds per value, because a short password must not be guessed from its hash.
_ROUNDS: Final = 20_000
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
        takes_all: whether every finding is added to it; then the file may be missing.

    Raises:
        UsageError: it is missing, or not a baseline.
    """

    def __init__(self, path: Path, *, takes_all: bool = False) -> None:
        self.path = path
        self._takes_all = takes_all
        self._met: set[AcceptedFinding] = set()
        self._known: frozenset[AcceptedFinding] = frozenset()
        if takes_all and not path.exists():
            return
        try:
            self._known = frozenset(_BaselineFile.model_validate_json(path.read_bytes()).findings)
        except OSError as error:
            hint = "name another baseline, or make it with --update-baseline"
            raise UsageError(f"{path}: {error.strerror}", hint=hint) from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"{path} is not a baseline of version {_VERSION}",
                why=f"{place}: {first['msg']}" if place else first["msg"],
                hint="name another file, or make this one anew: delete it, then --update-baseline",
            ) from None

    def covers(
        self, cassette: Path, code: Literal["SECRET", "HEADER"], kind: str, value: str
    ) -> bool:
        """Whether a finding is accepted; marks it as seen."""
        place = self._place(cassette)
        salt = f"{code}\0{kind}\0{place}".encode("utf-8", "surrogatepass")
        data = value.encode("utf-8", "surrogatepass")
        digest = pbkdf2_hmac("sha256", data, salt, _ROUNDS, _HASH_BYTES).hex()
        entry = AcceptedFinding(place, code, kind, digest)
        if not self._takes_all and entry not in self._known:
            return False
        self._met.add(entry)
        return True

    def write(self, checked: Iterable[Path]) -> int:
        """Write the entries that were seen, or whose cassette is there and was not checked.

        Returns:
            How many these are.

        Raises:
            UsageError: it cannot be written.
        """
        places = {self._place(path) for path in checked}
        folder = self.path.absolute().parent
        unchecked = {entry for entry in self._known if entry.path not in places}
        present = {entry for entry in unchecked if (folder / entry.path).exists()}
        remaining = sorted(self._met | present)
        entries = [entry._asdict() for entry in remaining]
        text = json.dumps({"version": _VERSION, "findings": entries}, indent=2, ensure_ascii=False)
        try:
            replace_file(self.path, f"{text}\n")
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}", hint="name another file"
            ) from None
        return len(remaining)

    def _place(self, cassette: Path) -> str:
        return Path(os.path.relpath(cassette, self.path.absolute().parent)).as_posix()


class _BaselineFile(BaseModel):
    version: Literal[1]
    findings: list[AcceptedFinding]


FindingSeverity = Literal["error", "warning"]
Known = Callable[[Literal["SECRET", "HEADER"], str, str], bool]
"""Whether a finding is accepted, by code, kind and value."""

_SUFFIXES = frozenset({".yaml", ".yml", ".json", PARTIAL})
_FOLDER = "cassettes"
_TOP = re.compile(rb"^(?:# pytest-regen cassette|['\"]?interactions['\"]?\s*:)", re.MULTILINE)
_HEAD = frozenset({"version", RECORDING, "metadata"})
_PARTS = frozenset({"request", "response", "key"})
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


def cassettes_in(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the cassettes in ``paths``, and the other YAML and JSON files, both sorted.

    A file that is named is taken as a cassette whatever its name and content. In a folder, files
    with a cassette's suffix are taken if they lie below a folder called ``cassettes`` or have the
    key ``interactions``, so that broken cassettes are among them.

    Raises:
        UsageError: there is nothing at a path.
    """
    cassettes: set[Path] = set()
    skipped: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for file in path.rglob("*"):
                if name_parts(file)[1] in _SUFFIXES and file.is_file():
                    (cassettes if _should_be_cassette(file, path) else skipped).add(file)
        elif path.exists():
            cassettes.add(path)
        else:
            raise UsageError(f"{path} is not there", hint="name cassettes, or folders of them")
    if not cassettes:
        raise UsageError(
            f"no cassettes in {', '.join(map(str, paths))}",
            hint="a check of nothing would always pass: name cassettes, or folders of them",
        )
    return tuple(sorted(cassettes)), tuple(sorted(skipped - cassettes))


def _should_be_cassette(path: Path, folder: Path) -> bool:
    """Whether a file in ``folder`` is a cassette or was meant to be one."""
    # The path as given, not from the root: a whole project may lie below a folder of that name.
    if path.suffix == PARTIAL or _FOLDER in (folder.absolute().name, *path.parts[:-1]):
        return True
    try:
        data = path.read_bytes()
        data = (unpack_file(data) if is_packed(path) else data).removeprefix(codecs.BOM_UTF8)
    except (OSError, UndecodableBodyError):
        # A cassette, because then the check reports it: it cannot read it either.
        return True
    if not data.lstrip().startswith(b"{"):
        return _TOP.search(data) is not None
    value = json_or_none(data)
    return "interactions" in value if isinstance(value, Mapping) else b'"interactions"' in data


def check_cassettes(
    paths: Iterable[Path],
    *,
    days: int | None = None,
    kilobytes: int = 1_000,
    drifted: Collection[str] = (),
    baseline: Baseline | None = None,
) -> tuple[Finding, ...]:
    """Return the findings in these cassettes, by path and line.

    Args:
        paths: the cassettes.
        days: the age from which a cassette is reported; ``None`` for none.
        kilobytes: the size from which it is.
        drifted: cassettes (relative to the working directory) that drifted in the last test run.
        baseline: credentials and headers that are not reported again.
    """
    findings: list[Finding] = []
    for path in paths:
        covers: Known = partial(baseline.covers, path) if baseline else lambda *_: False
        try:
            file = read_cassette(path)
            if file is not None:
                notes = _notes(file, days, kilobytes, drifted)
                findings += [*_findings_inside(file, covers), *notes]
        except CassetteUnreadableError as error:
            if _is_foreign(path):
                what = (
                    "it holds no requests of HTTP as vcrpy writes them: only its text was searched"
                )
                findings.append(Finding("FOREIGN", "warning", path, error.line, what))
                findings += _secret_lines(path, covers)
            else:
                findings.append(_unreadable(path, error))
    return tuple(
        sorted(findings, key=lambda finding: (str(finding.path), finding.line or 0, finding.code))
    )


def _unreadable(path: Path, error: CassetteUnreadableError) -> Finding:
    code = "EDITED" if error.is_edited else "UNREADABLE"
    return Finding(code, "error", path, error.line, error.why)


def _is_foreign(path: Path) -> bool:
    """Whether a file that is no cassette is a valid one of another program.

    For example messages of a socket, calls of another protocol, or bodies that only the project's
    serializer understands; not if something is missing that should be there.
    """
    try:
        data, _ = parse_text(path, text_of(path, content_of(path) or b""))
    except CassetteUnreadableError:
        return False
    # Of a cassette that was cut, the head may be all that is left.
    if not isinstance(data, Mapping) or _HEAD.issuperset(data):
        return isinstance(data, list)
    items = data.get("interactions", [data])
    if not (items and isinstance(items, list) and all(isinstance(i, Mapping) for i in items)):
        return False
    # One half without the other is what is left of a cassette that was cut.
    if not any(_PARTS & item.keys() for item in items):
        return True
    halves = [item.get(half) for item in items for half in ("request", "response")]
    bodies = [half.get("body") for half in halves if isinstance(half, Mapping)]
    return any(isinstance(body, Mapping) and "string" not in body for body in bodies)


def _secret_lines(path: Path, is_accepted: Known) -> dict[Finding, str]:
    """Return credentials in the raw text, each with its kind, as a recorder would find them."""
    text = (content_of(path) or b"").decode("utf-8", "replace")
    findings = {}
    for secret in secrets_with_values(text):
        if not is_accepted("SECRET", secret.kind, secret.value):
            line = text.count("\n", 0, secret.start) + 1
            what = f"a credential ({secret.kind})"
            findings[Finding("SECRET", "error", path, line, what)] = secret.kind
    return findings


def _findings_inside(file: CassetteFile, is_accepted: Known) -> Iterator[Finding]:
    """Yield edits, and credentials in the raw text, in decoded bodies, and in headers."""
    lines = _secret_lines(file.path, is_accepted)
    yield from lines
    telling: defaultdict[str, list[int]] = defaultdict(list)
    for stored in file.interactions:
        try:
            interaction = stored.interaction
        except CassetteUnreadableError as error:
            yield _unreadable(file.path, error)
            continue
        secrets = (
            *secrets_in(unpack(interaction.request_body)),
            *secrets_in(interaction.response_body),
            *secrets_with_values(f"{interaction.uri} {interaction.reason}"),
        )
        # Beside the lines, because br, zstd and the members of JSON are not seen in them.
        hidden = [(s.kind, s.value, "a compressed or laid-out body") for s in secrets]
        if interaction.is_stream:
            text = interaction.response_body.decode("utf-8", "replace")
            where = "pieces, in several events of a stream"
            hidden += [(kind, text, where) for kind in credentials_across_events(text)]
        places = {
            kind: where for kind, value, where in hidden if not is_accepted("SECRET", kind, value)
        }
        for kind in sorted(places.keys() - lines.values()):
            what = f"a credential in {places[kind]} ({kind})"
            yield Finding("SECRET", "error", file.path, stored.line, what)
        for name in _telling_headers(interaction, is_accepted):
            telling[name].append(stored.line)
    # Once for each file, because every recording of a suite has the same headers.
    for name, at in sorted(telling.items()):
        is_account = identifies_account(name)
        what = "identifies an account" if is_account else "holds a credential"
        count = f" (in {len(at)} recordings)" if len(at) > 1 else ""
        message = f"the header {name!r}, which {what}{count}"
        severity: FindingSeverity = "warning" if is_account else "error"
        yield Finding("HEADER", severity, file.path, at[0], message)


def _telling_headers(interaction: Interaction, is_accepted: Known) -> list[str]:
    """Return the headers that hold a credential or tell an account, and are not accepted."""
    telling: defaultdict[str, list[str]] = defaultdict(list)
    for headers in (interaction.request_headers, interaction.response_headers):
        for name, values in headers.items():
            # After the first pair of Set-Cookie come its attributes.
            pairs = 1 if name == "set-cookie" else None
            cookies = (c.partition("=") for value in values for c in value.split(";")[:pairs])
            is_harmless = all(map(is_placeholder, values)) or (
                name in {"cookie", "set-cookie"}
                and all(
                    c.strip() in _PROXY_COOKIES or is_placeholder(v.strip()) for c, _, v in cookies
                )
            )
            if holds_credential(name, values) and not is_harmless:
                telling[name] += values
    return [name for name in telling if not is_accepted("HEADER", name, "\n".join(telling[name]))]


def _notes(
    file: CassetteFile, oldest: int | None, largest: int, drifted: Collection[str]
) -> Iterator[Finding]:
    """Return what is no damage, but should be looked at."""
    path, notes = file.path, dict[str, str]()
    if path.suffix == PARTIAL:
        # Nothing else, because a whole run will replace it.
        notes["PARTIAL"] = "left by a run that failed or was killed; rename it or delete it"
    else:
        if not file.interactions:
            notes["EMPTY"] = "it holds no recording; delete it, or record into it"
        if (kilobytes := path.stat().st_size // 1_000) > largest:
            notes["OVERSIZE"] = f"{kilobytes} kB, over {largest}"
        with suppress(ValueError):  # because not every file says when it was recorded
            recorded = date.fromisoformat(str(file.metadata.get("recorded_at")))
            age = (date.today() - recorded).days  # noqa: DTZ011 - days suffice
            if oldest is not None and age > oldest:
                notes["STALE"] = f"recorded {age} days ago, over {oldest}"
        if os.path.relpath(path) in drifted:
            notes["DRIFT"] = "a request of the last test run was not what is recorded here"
        if unused := unused_reason(path):
            notes["UNUSED"] = unused
    return (Finding(code, "warning", path, None, what) for code, what in notes.items())
