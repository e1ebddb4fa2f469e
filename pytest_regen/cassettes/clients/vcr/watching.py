"""Cassettes of suites written for pytest-recording: vcrpy's own, watched while they are used.

vcrpy records, matches and plays as the suite says; what it gives to whom is noted, and its files
are read and written by ``persisting``.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import vcr.patch
from vcr import VCR
from vcr.cassette import Cassette
from vcr.errors import CannotOverwriteExistingCassetteException, UnhandledHTTPRequestError
from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrRecordMode
from vcr.request import Request

from pytest_regen.cassettes.clients.blocking import unresolved_names
from pytest_regen.cassettes.clients.vcr.bodies import comparable_bytes
from pytest_regen.cassettes.clients.vcr.patching import kept_while_sending, uninstalled_clients
from pytest_regen.cassettes.clients.vcr.persisting import Persister, Rewriting
from pytest_regen.cassettes.clients.vcr.run import VcrOptions, VcrRun
from pytest_regen.cassettes.diff_files import DiffFiles
from pytest_regen.cassettes.files.places import note_folder
from pytest_regen.cassettes.hosts import checked_hosts, host_of, is_named
from pytest_regen.cassettes.misses import Asked
from pytest_regen.errors import UsageError
from pytest_regen.turns.failures import is_retried_status

__all__ = ["watched_cassette"]


@contextmanager
def watched_cassette(options: VcrOptions) -> Iterator[VcrRun]:
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
    persister = Persister(_extra(options, config["path_transformer"]), rewrites=rewrites)
    engine.register_persister(persister)
    options.configure(engine)
    merged = engine.get_merged_config(path=options.path, **config)
    path = Path(merged["path_transformer"](options.path))
    # The path is whole by now.
    merged.update(path=str(path), path_transformer=None)
    known = getattr(vcr.patch, "PATCHER_NAMES", ())  # since vcrpy 9.4
    skipped = [name for name in uninstalled_clients() if name in known]
    if skipped:
        merged["skip_patchers"] = (*merged["skip_patchers"], *skipped)
    _check_stubs()
    if rewrites and merged["persister"] is not persister:
        merged["persister"] = Rewriting(merged["persister"])
    passing = checked_hosts(options.passing)
    merged["before_record_request"] = _without(passing, merged["before_record_request"])
    run = VcrRun(
        path,
        theirs=CannotOverwriteExistingCassetteException,
        test=options.test,
        files=DiffFiles(options.diff_folder),
        exists=path.exists(),
    )
    merged["custom_patches"] = (*merged["custom_patches"], *_refusals(run))
    with (
        kept_while_sending(),
        _raising_what_is_not_written(run),
        _WatchedCassette.use(run=run, **merged) as cassette,
    ):
        run.cassette = cassette
        run.replays = cassette.write_protected
        try:
            with unresolved_names(passing if run.replays else ()):
                yield run
        finally:
            run.end_pauses()
            run.files.write()


def _without(passing: Sequence[str], filtered: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what vcrpy calls with each request, which leaves those to some hosts alone."""
    if not passing:
        return filtered
    return lambda request: None if is_named(host_of(request.uri), passing) else filtered(request)


@contextmanager
def _raising_what_is_not_written(run: VcrRun) -> Iterator[None]:
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

    def check(request: Any) -> None:  # noqa: ANN401 - the client's own type
        asked = Request(request.method, str(request.url), b"", dict(request.headers))
        if Cassette.filter_request(run.cassette, asked):
            run.refuse_client("httpx2", f"vcrpy {version('vcrpy')}", asked.method, asked.uri)

    def handle_request(self: Any, request: Any) -> Any:  # noqa: ANN401 - as above
        check(request)
        return send(self, request)

    async def handle_async_request(self: Any, request: Any) -> Any:  # noqa: ANN401 - as above
        check(request)
        return await asend(self, request)

    yield httpx2.HTTPTransport, "handle_request", handle_request
    yield httpx2.AsyncHTTPTransport, "handle_async_request", handle_async_request


def _extra(options: VcrOptions, transformed: Callable[[str], str]) -> Iterator[Path]:
    """Yield the further cassettes, under the names they have."""
    for name in options.extra:
        path = options.folder / name
        yield path if path.exists() else options.folder / transformed(name)


class _WatchedCassette(Cassette):  # type: ignore[misc]  # vcrpy ships no types
    """vcrpy's cassette, which says what it gave to whom."""

    def __init__(self, path: str, *, run: VcrRun, **options: Any) -> None:  # noqa: ANN401
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

    def _responses(self, request: Any) -> Iterator[Any]:  # noqa: ANN401 - vcrpy's own type
        for index, response in super()._responses(request):
            self._index = index
            yield index, response

    def play_response(self, request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
        """Play, and note what was asked and what answered."""
        with self._watch:
            try:
                response = super().play_response(request)
            except UnhandledHTTPRequestError:
                # Another thread was given it since vcrpy asked whether there is one.
                if self.write_protected:
                    self._run.refuse(_asked(request))
                raise
            stored, _ = self.data[self._index]
            # As it would have been recorded: what a suite filters is no drift.
            sent = self._before_record_request(request) or request
            self._run.note_drift(_asked(sent), self._index + 1, comparable_bytes(stored.body))
            return _without_waiting(response)

    def filter_request(self, request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
        """Return the filtered request; vcrpy asks where it has no answer and may send nothing."""
        found = super().filter_request(request)
        if found and self.write_protected:
            self._run.refuse(_asked(found))
        return found


def _without_waiting(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer that makes no client wait before it asks again."""
    headers = response.get("headers") or {}
    if not is_retried_status(int(response["status"]["code"])):
        return response
    # What was recorded stays: a suite may look at it, and clients take this one first.
    kept = {name: value for name, value in headers.items() if name.lower() != "retry-after-ms"}
    return {**response, "headers": {**kept, "retry-after-ms": ["1"]}}


def _asked(request: Any) -> Asked:  # noqa: ANN401 - vcrpy's own type
    return Asked(request.method, request.uri, comparable_bytes(request.body))
