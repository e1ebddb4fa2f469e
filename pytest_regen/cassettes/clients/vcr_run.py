"""Cassettes of suites written for pytest-recording: vcrpy's own, watched while they are used.

vcrpy records, matches and plays as the suite says; what it gives to whom is noted, and its files
are read and written by ``persisting``.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import vcr.patch
from vcr import VCR
from vcr.cassette import Cassette
from vcr.errors import CannotOverwriteExistingCassetteException, UnhandledHTTPRequestError
from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrRecordMode
from vcr.request import Request

from pytest_regen.cassettes.clients.vcr_files import Persister, RewritePersister
from pytest_regen.cassettes.clients.vcr_patches import (
    comparable_bytes,
    keep_patches_while_sending,
    missing_clients,
)
from pytest_regen.cassettes.files.reader import StoredInteraction
from pytest_regen.cassettes.files.storage import note_folder
from pytest_regen.cassettes.interactions import Interaction, keys_of
from pytest_regen.cassettes.matching import Matching, RecordingIndex
from pytest_regen.cassettes.misses import DiffFiles, Drift, MissedRequest, drift_between, miss
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import CassetteMissError, UsageError
from pytest_regen.network import UnresolvedNames, check_hosts, closed_network, host_of, is_named
from pytest_regen.turns.interception import CassetteMiss
from pytest_regen.turns.wire import is_retried_status

__all__ = ["VcrOptions", "VcrRun", "is_expected", "use_vcr_cassette", "without_pauses"]


def is_expected(
    error: type[BaseException], *, test: Callable[..., object] | None, outside: tuple[str, ...]
) -> bool:
    """Return whether ``error`` is named by a function that is waiting, or by the test.

    Nothing about a client shows that it retries, but code that handles an exception has to
    name it: in ``except``, in ``pytest.raises``, as a parameter.

    Args:
        error: the exception.
        test: the test's function; its tasks and threads do not wait below it.
        outside: the packages that raise the exception; they name it too.
    """
    prefixes = tuple(f"{package}." for package in outside)
    function = unwrap(test) if test is not None else None
    code = getattr(function, "__code__", None)
    if code is not None and _names_error(code, getattr(function, "__globals__", {}), error):
        return True
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - what `inspect` calls, without reading source files
    while frame is not None:
        home = f"{frame.f_globals.get('__name__')}."
        if not home.startswith(prefixes):
            held = any(_is_error(value, error) for value in frame.f_locals.values())
            if held or _names_error(frame.f_code, frame.f_globals, error):
                return True
        frame = frame.f_back
    return False


def _names_error(code: CodeType, known: Mapping[str, Any], error: type[BaseException]) -> bool:
    """Return whether a function, or one inside it, names ``error`` by its name or an alias."""
    return any(
        name == error.__name__ or _is_error(known.get(name), error)
        for one in _inner_code(code)
        for name in one.co_names
    )


def _inner_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inner_code(constant)


def _is_error(value: object, error: type[BaseException]) -> bool:
    return value is error or (isinstance(value, tuple) and any(one is error for one in value))


_CALCULATES = "_calculate_retry_timeout"
"""How the clients that Stainless generates (anthropic, openai, groq and more) find a pause."""


@contextmanager
def without_pauses() -> Iterator[None]:
    """Let the clients that are waiting for an answer pause for nothing while the block runs.

    They take any exception for a broken line and ask again, after up to eight seconds; without a
    network the next attempt ends as this one did. Clients that find their pauses otherwise keep
    them.
    """
    waiting = [client for client in _clients_on_stack() if _CALCULATES not in vars(client)]
    for client in waiting:
        setattr(client, _CALCULATES, _no_pause)
    try:
        yield
    finally:
        for client in waiting:
            delattr(client, _CALCULATES)


def _no_pause(*_: object, **__: object) -> float:
    return 0.0


def _clients_on_stack() -> Iterator[object]:
    """Yield the clients whose methods are running in this thread, each once."""
    seen = set[int]()
    frame = inspect.currentframe()
    while frame is not None:
        client = frame.f_locals.get("self")
        if id(client) not in seen and hasattr(type(client), _CALCULATES):
            seen.add(id(client))
            yield client
        frame = frame.f_back


_AS_SENT = Matching()


@dataclass(frozen=True, slots=True)
class VcrOptions:
    """What a suite says about one cassette."""

    path: str
    """Name of the cassette, or a path, from ``folder``."""
    folder: Path
    mode: str
    config: Mapping[str, Any]
    """Arguments of ``vcr.VCR.use_cassette``."""
    extra: tuple[str, ...]
    """Further cassettes that are replayed, never written."""
    configure: Callable[[Any], object]
    """Called with the VCR object before it is used."""
    passing: Sequence[str] = ()
    """Hosts that pass the cassette by."""
    diff_folder: Path | None = None
    test: Callable[..., object] | None = None
    """The test's function; where it names vcrpy's own exception, it gets that for a miss."""


@dataclass(slots=True)
class VcrRun:
    """A cassette of vcrpy in use."""

    path: Path
    cassette: Any = None
    """vcrpy's own object."""
    replays: bool = True
    """Whether nothing is sent."""
    command: str = ""
    """What to run so that it is recorded anew."""
    theirs: type[BaseException] = CassetteMissError
    """What vcrpy raises for a miss."""
    test: Callable[..., object] | None = None
    files: DiffFiles = field(default_factory=lambda: DiffFiles(None))
    """Where long differences go."""
    exists: bool = True
    """Whether the file was there when the cassette was put to use."""
    drifts: list[Drift] = field(default_factory=list)
    expected: list[MissedRequest] = field(default_factory=list)
    """Misses that a waiting function, or the test, knows how to handle."""
    missed: dict[MissedRequest, CassetteMissError] = field(default_factory=dict)
    """The others that no failure has told yet."""
    refused: list[CassetteMissError] = field(default_factory=list)
    """Requests that vcrpy would let through."""
    unwritten: BaseException | None = None
    """What kept the cassette from being written."""
    signals_misses: bool = True
    """Whether a miss is vcrpy's own exception; at the end of fixtures it is ours, which is told."""
    _pauses: ExitStack = field(default_factory=ExitStack)

    @property
    def total(self) -> int:
        """How many recordings there are."""
        return len(self.cassette)

    @property
    def unplayed(self) -> int:
        """How many recordings nobody asked for, where nothing is sent."""
        return self.total - len(self.cassette.play_counts) if self.replays else 0

    def note_drift(self, asked: MissedRequest, number: int, recorded: bytes) -> None:
        """Note where a request differs from recording ``number`` (from 1), which answered it."""
        drift = drift_between(self.path, asked, number, recorded, self.files)
        if drift is not None:
            self.drifts.append(drift)

    def refuse(self, asked: MissedRequest) -> None:
        """Note a miss; vcrpy raises its own exception next.

        So a client does with it what it does there: one that has something to fall back to, or
        asks its maker for news, goes on without an answer. It asks again without pauses.
        """
        if is_expected(self.theirs, test=self.test, outside=("vcr", str(__package__))):
            self.expected.append(asked)
            return
        if asked not in self.missed:
            self.missed[asked] = self._miss(asked)
            self._pauses.enter_context(without_pauses())
        if not self.signals_misses:
            raise self.missed[asked]

    def end_pauses(self) -> None:
        """Let clients pause again."""
        self._pauses.close()

    def refuse_client(self, client: str, vcrpy: str, method: str, uri: str) -> None:
        """Raise a signal that no client retries, for a request that vcrpy would let through."""
        error = CassetteMissError(
            f"{self.path.name} has no answer to {method} {scrub_text(uri)}",
            why=f"{vcrpy} does not know {client}: it would be sent, and not recorded",
            hint="pip install 'vcrpy>=8.2', or use the fixture cassette, which knows it",
        )
        self.refused.append(error)
        raise CassetteMiss(error) if self.signals_misses else error

    def take_pending_miss(self, failure: BaseException | None) -> CassetteMissError | None:
        """Return the miss that is behind a failure, and take all of them as reported.

        A request that vcrpy would let through is one whatever became of it.

        Args:
            failure: what a test failed with; where vcrpy's exception is not behind it, no miss
                is, and those that were swallowed are told at the end of the run.
        """
        if self.refused:
            refused, self.refused = self.refused, []
            return refused[0]
        cause = next((one for one in _causes(failure) if isinstance(one, self.theirs)), None)
        if cause is None or not (self.missed or self.expected):
            return None
        request = getattr(cause, "failed_request", None)
        sent = (getattr(request, "method", None), getattr(request, "uri", None))
        known = [*self.missed, *self.expected]
        asked = next((one for one in known if (one.method, one.uri) == sent), known[0])
        error = self.missed.get(asked) or self._miss(asked)
        self.missed.clear()
        return error

    def take_swallowed_misses(self) -> list[CassetteMissError]:
        """Return the misses that nobody has told."""
        missed, self.missed = self.missed, {}
        return list(missed.values())

    def _miss(self, asked: MissedRequest) -> CassetteMissError:
        index = RecordingIndex(self._stored_interactions())
        for number, count in self.cassette.play_counts.items():
            if count:
                index.mark(number + 1)
        keys = list(keys_of(asked.method, asked.uri, asked.body))
        return miss(
            self.path,
            index,
            asked,
            key=next(filter(index.knows, keys), keys[-1]),
            exists=self.exists or self.total > 0,
            is_left=False,
            matching=_AS_SENT,
            files=self.files,
            command=self.command,
        )

    def _stored_interactions(self) -> Iterator[StoredInteraction]:
        for request in self.cassette.requests:
            found = Interaction(
                request.method, request.uri, comparable_bytes(request.body), 200, "", b""
            )
            # The cheap key: looking for credentials in each takes longer than all the rest.
            key = next(keys_of(found.method, found.uri, found.request_body))
            yield StoredInteraction.with_interaction(self.path, 0, found, key)


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that led to it, those in groups among them."""
    waiting, seen = [failure], set[int]()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()


@contextmanager
def use_vcr_cassette(options: VcrOptions) -> Iterator[VcrRun]:
    """Record or replay with vcrpy, as pytest-recording would, and watch.

    Yields:
        The run; its ``cassette`` is vcrpy's object.

    Raises:
        CassetteUnreadableError: a file is there, but it is empty or no cassette.
        CassetteError: what was recorded cannot be written.
    """
    note_folder()
    config = dict(options.config)
    config.setdefault("path_transformer", VCR.ensure_suffix(f".{config.get('serializer', 'yaml')}"))
    rewrites = options.mode == "rewrite"
    mode = "new_episodes" if rewrites else options.mode
    engine = VCR(record_mode=VcrRecordMode(mode), cassette_library_dir=str(options.folder))
    persister = Persister(_extra_paths(options, config["path_transformer"]), rewrites=rewrites)
    engine.register_persister(persister)
    options.configure(engine)
    merged = engine.get_merged_config(path=options.path, **config)
    path = Path(merged["path_transformer"](options.path))
    # The path is whole by now.
    merged.update(path=str(path), path_transformer=None)
    known = getattr(vcr.patch, "PATCHER_NAMES", ())  # since vcrpy 9.4
    skipped = [name for name in missing_clients() if name in known]
    if skipped:
        merged["skip_patchers"] = (*merged["skip_patchers"], *skipped)
    _check_stubs()
    if rewrites and merged["persister"] is not persister:
        merged["persister"] = RewritePersister(merged["persister"])
    passing = check_hosts(options.passing)
    merged["before_record_request"] = _pass_hosts(passing, merged["before_record_request"])
    run = VcrRun(
        path,
        theirs=CannotOverwriteExistingCassetteException,
        test=options.test,
        files=DiffFiles(options.diff_folder),
        exists=path.exists(),
    )
    merged["custom_patches"] = (*merged["custom_patches"], *_refusals(run))
    with (
        keep_patches_while_sending(),
        _raise_write_failure(run),
        _VcrCassette.use(run=run, **merged) as cassette,
    ):
        run.cassette = cassette
        run.replays = cassette.write_protected
        try:
            with closed_network(UnresolvedNames(passing)) if run.replays else nullcontext():
                yield run
        finally:
            run.end_pauses()
            run.files.write()


def _pass_hosts(passing: Sequence[str], filtered: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what vcrpy calls with each request, which leaves those to some hosts alone."""
    if not passing:
        return filtered
    return lambda request: None if is_named(host_of(request.uri), passing) else filtered(request)


@contextmanager
def _raise_write_failure(run: VcrRun) -> Iterator[None]:
    try:
        yield
    except BaseException as failure:
        if run.unwritten is not None:
            failure.add_note(str(run.unwritten))
        raise
    if run.unwritten is not None:
        raise run.unwritten


@cache
def _check_stubs() -> None:
    """Refuse a vcrpy that cannot patch a client that is installed.

    Raises:
        UsageError: aiohttp is newer than vcrpy knows.
    """
    if find_spec("aiohttp") is None:
        return
    try:
        import_module("vcr.stubs.aiohttp_stubs")
    except (AttributeError, ImportError) as error:
        raise UsageError(
            f"vcrpy {version('vcrpy')} cannot patch aiohttp {version('aiohttp')}",
            why=str(error),
            hint="pip install --upgrade vcrpy, or take an older aiohttp",
        ) from None


def _refusals(run: VcrRun) -> Iterator[tuple[Any, str, Any]]:
    """Yield patches of the client that vcrpy before 8.2 does not know.

    Its requests would be sent, and neither recorded nor replayed.
    """
    if hasattr(CassettePatcherBuilder, "_httpx2") or find_spec("httpx2") is None:
        return
    httpx2 = import_module("httpx2")
    send, asend = (
        httpx2.HTTPTransport.handle_request,
        httpx2.AsyncHTTPTransport.handle_async_request,
    )

    def check(request: Any) -> None:
        asked = Request(request.method, str(request.url), b"", dict(request.headers))
        if Cassette.filter_request(run.cassette, asked):
            run.refuse_client("httpx2", f"vcrpy {version('vcrpy')}", asked.method, asked.uri)

    def handle_request(self: Any, request: Any) -> Any:
        check(request)
        return send(self, request)

    async def handle_async_request(self: Any, request: Any) -> Any:
        check(request)
        return await asend(self, request)

    yield httpx2.HTTPTransport, "handle_request", handle_request
    yield httpx2.AsyncHTTPTransport, "handle_async_request", handle_async_request


def _extra_paths(options: VcrOptions, transformed: Callable[[str], str]) -> Iterator[Path]:
    """Yield the further cassettes, under the names they have."""
    for name in options.extra:
        path = options.folder / name
        yield path if path.exists() else options.folder / transformed(name)


class _VcrCassette(Cassette):  # type: ignore[misc]  # vcrpy ships no types
    """vcrpy's cassette, which says what it gave to whom."""

    def __init__(self, path: str, *, run: VcrRun, **options: Any) -> None:
        super().__init__(path, **options)
        self._run = run
        self._watch = threading.RLock()
        self._index = -1

    def _save(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - vcrpy's signature
        """Write the cassette; what keeps it from being written is raised when the block ends.

        Raised here, it would keep vcrpy from taking back its patches, for every test that follows.
        """
        try:
            super()._save(force)
        except BaseException as error:  # noqa: BLE001 - raised again by the block
            self._run.unwritten = error

    def _responses(self, request: Any) -> Iterator[Any]:
        for index, response in super()._responses(request):
            self._index = index
            yield index, response

    def play_response(self, request: Any) -> Any:
        """Play, and note what was asked and what answered."""
        with self._watch:
            try:
                response = super().play_response(request)
            except UnhandledHTTPRequestError:
                # Another thread was given it since vcrpy asked whether there is one.
                if self.write_protected:
                    self._run.refuse(_missed_request(request))
                raise
            stored, _ = self.data[self._index]
            # As it would have been recorded: what a suite filters is no drift.
            sent = self._before_record_request(request) or request
            self._run.note_drift(
                _missed_request(sent), self._index + 1, comparable_bytes(stored.body)
            )
            return _hurry_retry(response)

    def filter_request(self, request: Any) -> Any:
        """Return the filtered request; vcrpy asks where it has no answer and may send nothing."""
        found = super().filter_request(request)
        if found and self.write_protected:
            self._run.refuse(_missed_request(found))
        return found


def _hurry_retry(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer that makes no client wait before it asks again."""
    headers = response.get("headers") or {}
    if not is_retried_status(int(response["status"]["code"])):
        return response
    # What was recorded stays: a suite may look at it, and clients take this one first.
    kept = {name: value for name, value in headers.items() if name.lower() != "retry-after-ms"}
    return {**response, "headers": {**kept, "retry-after-ms": ["1"]}}


def _missed_request(request: Any) -> MissedRequest:
    return MissedRequest(request.method, request.uri, comparable_bytes(request.body))
