"""Cassettes of suites written for pytest-recording: vcrpy's own, observed while in use.

vcrpy records, matches and plays as the suite configures it; what answered which request is noted,
and ``vcr_files.py`` reads and writes its files.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from vcr import VCR
from vcr.cassette import Cassette
from vcr.errors import CannotOverwriteExistingCassetteException, UnhandledHTTPRequestError
from vcr.record_mode import RecordMode as VcrRecordMode

from pytest_regen.cassettes.clients import vcr_patches
from pytest_regen.cassettes.clients.vcr_files import Persister, scrub_request
from pytest_regen.cassettes.files.reader import CassetteFile, StoredInteraction
from pytest_regen.cassettes.files.storage import note_folder
from pytest_regen.cassettes.interactions import Interaction, keys_of
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import DiffFiles, Drift, MissedRequest, Player, drift_between
from pytest_regen.cassettes.recording import ChangedValue
from pytest_regen.errors import CassetteMissError
from pytest_regen.network import UnresolvedNames, check_hosts, closed_network, host_of, is_named
from pytest_regen.turns.wire import is_retried_status

_CLIENTS = "._base_client"
_CALCULATES = "_calculate_retry_timeout"
_AS_SENT = Matching()
_THEIRS = CannotOverwriteExistingCassetteException
"""What vcrpy raises for a miss."""


@dataclass(frozen=True, slots=True)
class VcrOptions:
    """A suite's settings for one cassette."""

    path: str
    """Name of the cassette, or a path, from ``folder``."""
    folder: Path
    mode: str
    config: Mapping[str, Any]
    """Arguments of ``vcr.VCR.use_cassette``."""
    extra: tuple[str, ...]
    """Further cassettes to replay, which are never written."""
    configure: Callable[[Any], object]
    """Called with the VCR object before it is used."""
    passing: Sequence[str] = ()
    """Hosts whose requests bypass the cassette."""
    ignore: Sequence[str] = ()
    """Paths in bodies of JSON whose values are neither compared nor stored."""
    diff_folder: Path | None = None


@dataclass(slots=True)
class VcrRun:
    """One of vcrpy's cassettes in use."""

    path: Path
    files: DiffFiles
    """The files for long differences."""
    cassette: Any = None
    """vcrpy's own object."""
    replays: bool = True
    """Whether nothing is sent."""
    command: str = ""
    """The command that records it again."""
    exists: bool = True
    """Whether the file existed when the cassette was put to use."""
    drifts: list[Drift] = field(default_factory=list)
    missed: dict[MissedRequest, CassetteMissError] = field(default_factory=dict)
    """Misses, until a failure reports them."""
    changed: list[ChangedValue] = field(default_factory=list)
    """What the file that was written holds otherwise than it was sent or answered."""
    unwritten: BaseException | None = None
    """What kept the cassette from being written."""
    signals_misses: bool = True
    """Whether a miss is vcrpy's own exception; in the teardown of fixtures it is ours, which pytest
    reports."""
    pauses: ExitStack = field(default_factory=ExitStack)
    """Lets clients pause again."""

    @property
    def total(self) -> int:
        """How many recordings there are."""
        return len(self.cassette)

    @property
    def unplayed(self) -> int:
        """How many recordings no request asked for, if nothing may be sent."""
        return self.total - len(self.cassette.play_counts) if self.replays else 0

    def refuse(self, lookup: MissedRequest) -> None:
        """Note a miss; vcrpy raises its own exception next.

        Clients handle that as they do with vcrpy: one with a fallback, or one that only looks for
        updates, continues without an answer.
        """
        if lookup not in self.missed:
            # Only now, because few tests miss and cassettes may be long.
            stored = []
            for request in self.cassette.requests:
                body = vcr_patches.comparable_bytes(request.body)
                recorded = Interaction(request.method, request.uri, {}, body, 200, "", {}, b"")
                # The cheap key, because to search each for credentials takes longer than the rest.
                key = next(keys_of(recorded.method, recorded.uri, body))
                stored.append(StoredInteraction(self.path, 0, key, recorded))
            file = CassetteFile(self.path, {}, tuple(stored)) if self.exists or stored else None
            player = Player(self.path, file, _AS_SENT, self.command)
            player.files = self.files
            for number, count in self.cassette.play_counts.items():
                if count:
                    player.index.mark(number + 1)
            matchers = {getattr(match, "__name__", "match_on") for match in self.cassette._match_on}
            self.missed[lookup] = player.miss(lookup, matchers)
            # Clients generated by Stainless take any exception for a broken connection; they need
            # not pause for up to eight seconds, because the next attempt ends the same way.
            for name, module in tuple(sys.modules.items()):
                client = getattr(module, "BaseClient", None) if name.endswith(_CLIENTS) else None
                if hasattr(client, _CALCULATES):
                    self.pauses.callback(setattr, client, _CALCULATES, getattr(client, _CALCULATES))
                    setattr(client, _CALCULATES, lambda *_, **__: 0.0)
        if not self.signals_misses:
            raise self.missed[lookup]

    def take_pending_miss(self, failure: BaseException) -> CassetteMissError | None:
        """Return the miss that caused a failure, and count all of them as reported.

        Args:
            failure: what the test failed with. If vcrpy's exception is not among its causes, no
                miss is, and swallowed ones are reported at the end of the run.
        """
        cause = _vcrpy_error(failure)
        if cause is None or not self.missed:
            return None
        request = getattr(cause, "failed_request", None)
        sent = (getattr(request, "method", None), getattr(request, "uri", None))
        missed, self.missed = self.missed, {}
        of_request = (
            error for lookup, error in missed.items() if (lookup.method, lookup.uri) == sent
        )
        return next(of_request, next(iter(missed.values())))

    def take_swallowed_misses(self) -> list[CassetteMissError]:
        """Return the misses that were not reported."""
        missed, self.missed = self.missed, {}
        return list(missed.values())


def _vcrpy_error(failure: BaseException) -> BaseException | None:
    """Return vcrpy's miss among an exception, its causes and contexts, and members of groups."""
    waiting, seen = list[BaseException | None]([failure]), set[int]()
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        if isinstance(error, _THEIRS):
            return cast("BaseException", error)
        waiting += [error.__cause__, error.__context__]
        waiting += error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return None


@contextmanager
def use_vcr_cassette(options: VcrOptions) -> Iterator[VcrRun]:
    """Record or replay with vcrpy, as pytest-recording would, and observe it.

    Yields:
        The run; its ``cassette`` is vcrpy's object.

    Raises:
        CassetteUnreadableError: a file is there, but it is empty or no cassette.
        CassetteError: what was recorded cannot be written.
    """
    note_folder()
    config = dict(options.config)
    config.setdefault("path_transformer", VCR.ensure_suffix(f".{config.get('serializer', 'yaml')}"))
    transform, rewrites = config["path_transformer"], options.mode == "rewrite"
    mode = "new_episodes" if rewrites else options.mode
    engine = VCR(record_mode=VcrRecordMode(mode), cassette_library_dir=str(options.folder))
    # Further cassettes, under the names they have.
    extra = [
        path if (path := options.folder / name).exists() else options.folder / transform(name)
        for name in options.extra
    ]
    persister = Persister(extra, rewrites=rewrites)
    engine.register_persister(persister)
    options.configure(engine)
    merged = engine.get_merged_config(path=options.path, **config)
    path = Path(merged["path_transformer"](options.path))
    # By now the path is complete.
    merged.update(path=str(path), path_transformer=None)
    if rewrites and merged["persister"] is not persister:
        # A suite's own finds no old cassette, either.
        merged["persister"] = SimpleNamespace(
            load_cassette=persister.load_cassette, save_cassette=merged["persister"].save_cassette
        )
    passing = check_hosts(options.passing)
    merged["before_record_request"] = _filter(
        merged["before_record_request"], passing, Matching(ignore=options.ignore)
    )
    files = DiffFiles(options.diff_folder, path)
    run = VcrRun(path, files, exists=path.exists(), changed=persister.changed)
    replaying = UnresolvedNames(passing)
    try:
        with (
            vcr_patches.keep_patches_while_sending(),
            vcr_patches.without_pauses_of_urllib3(),
            _VcrCassette.use(run=run, **merged) as cassette,
        ):
            run.cassette, run.replays = cassette, cassette.write_protected
            try:
                with closed_network(replaying) if run.replays else nullcontext():
                    yield run
            finally:
                run.pauses.close()
                run.files.write()
    except BaseException as failure:
        if run.unwritten is not None:
            failure.add_note(str(run.unwritten))
        raise
    if run.unwritten is not None:
        raise run.unwritten


def _filter(
    theirs: Callable[[Any], Any], passing: Sequence[str], matching: Matching
) -> Callable[[Any], Any]:
    """Return vcrpy's filter for requests, extended by the hosts and values that do not matter."""

    def filtered(request: Any) -> Any:
        kept: Any = None if is_named(host_of(request.uri), passing) else theirs(request)
        if kept and not matching.is_plain:
            body = vcr_patches.comparable_bytes(kept.body)
            normalized = matching.normalize_body(body)
            if normalized != body:
                kept = copy(kept)
                kept.body = normalized
        return kept

    return filtered


class _VcrCassette(Cassette):  # type: ignore[misc]  # vcrpy ships no types
    """vcrpy's cassette, which reports what answered which request."""

    def __init__(self, path: str, *, run: VcrRun, **options: Any) -> None:
        super().__init__(path, **options)
        self._run = run
        self._watch = threading.RLock()
        self._index = -1

    def _save(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - vcrpy's signature
        """Write the cassette; an error is raised when the block ends.

        Raised here, it would keep vcrpy from removing its patches, for all following tests.
        """
        try:
            super()._save(force)
        except BaseException as error:  # noqa: BLE001 - raised again by the block
            self._run.unwritten = error

    def _responses(self, request: Any) -> Iterator[Any]:
        # In recordings of ours, something else stands for a credential.
        stored = scrub_request(request)
        is_same = (stored.uri, stored.body) == (request.uri, request.body)
        for asked in (request,) if is_same else (request, stored):
            for index, response in super()._responses(asked):
                self._index = index
                yield index, response

    def play_response(self, request: Any) -> Any:
        """Play, and note what was asked and what answered."""
        with self._watch:
            try:
                response = super().play_response(request)
            except UnhandledHTTPRequestError:
                # Another thread took it after vcrpy checked.
                if self.write_protected:
                    self._run.refuse(_missed_request(request))
                raise
            stored, _ = self.data[self._index]
            # Filtered as it would have been recorded: what a suite filters out is not drift.
            sent = self._before_record_request(request) or request
            run, number, recorded = (
                self._run,
                self._index + 1,
                vcr_patches.comparable_bytes(stored.body),
            )
            drift = drift_between(_missed_request(sent), number, recorded, run.files)
            run.drifts += [drift] if drift is not None else []
            headers = response.get("headers") or {}
            if not is_retried_status(int(response["status"]["code"])):
                return response
            # The recorded ``retry-after`` stays for suites that look at it; clients prefer this
            # header, and pause no longer.
            public = {n: value for n, value in headers.items() if n.lower() != "retry-after-ms"}
            return {**response, "headers": {**public, "retry-after-ms": ["1"]}}

    def filter_request(self, request: Any) -> Any:
        """Return the filtered request; vcrpy calls this if it has no answer and may not send."""
        filtered = super().filter_request(request)
        if filtered and self.write_protected:
            self._run.refuse(_missed_request(filtered))
        return filtered


def _missed_request(request: Any) -> MissedRequest:
    return MissedRequest(request.method, request.uri, vcr_patches.comparable_bytes(request.body))
