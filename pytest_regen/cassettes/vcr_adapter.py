"""The one place that knows vcrpy: it patches the HTTP clients, a ``CassetteRun`` decides.

vcrpy's own lookup, files and filters are not used. Its patches ask a cassette object whether it
can play a response, play it, or keep a new one; ours asks the run.
"""

import copy
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr import VCR
from vcr.cassette import Cassette
from vcr.persisters.filesystem import (
    CassetteDecodeError,
    CassetteNotFoundError,
    FilesystemPersister,
)
from vcr.record_mode import RecordMode as VcrRecordMode
from vcr.serialize import serialize
from yaml import YAMLError

from pytest_regen.cassettes.decoding import UndecodableBodyError, decoded_body
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import Asked
from pytest_regen.cassettes.reading import unreadable
from pytest_regen.cassettes.recording import Exchange, clean_body
from pytest_regen.cassettes.scrubbing import PRIVATE_HEADERS, scrub_literal
from pytest_regen.cassettes.transports import patched_transports
from pytest_regen.cassettes.values import Interaction, playable_headers
from pytest_regen.cassettes.vcr_compat import VcrOptions, VcrRun, body_bytes
from pytest_regen.cassettes.writing import checked_text, replace_file, unwritable

if TYPE_CHECKING:
    from pytest_regen.cassettes.running import CassetteRun

__all__ = ["patched_clients", "watched_cassette"]

_TAKEN = "_regen_taken"
"""Where an answer waits on vcrpy's request, between being found and being played."""

_OURS = ("httpx", "httpx2")
"""What ``transports`` patches: vcrpy would read streams to their end first."""

_IMPORTED_AS = {
    "requests": "requests",
    "boto3": "botocore",
    "urllib3": "urllib3",
    "httplib2": "httplib2",
    "tornado": "tornado",
    "aiohttp": "aiohttp",
}
"""vcrpy looks for each of them every time; where one is not installed that is time lost."""


@contextmanager
def patched_clients(run: "CassetteRun") -> Iterator[None]:
    """Let every HTTP client ask ``run`` first: by our transports, the others by vcrpy's patches."""
    mode = VcrRecordMode.ALL
    path = str(run.path)
    patches = _Cassette.use(path=path, record_mode=mode, run=run, skip_patchers=_skipped())
    with _stacked(patches), patched_transports(run):
        yield


_stack: list[Any] = []
_stack_lock = threading.RLock()


@contextmanager
def _stacked(patches: Any) -> Iterator[None]:  # noqa: ANN401 - vcrpy's own type
    """Keep the patches in place; undo them in the reverse order, whatever order blocks end in.

    Each patch remembers what it found. Undone too early, one would put back a class that an
    earlier, ended block had patched, and leave it there for good.
    """
    with _stack_lock:
        patches.__enter__()
        _stack.append(patches)
    try:
        yield
    finally:
        with _stack_lock:
            later = _stack[_stack.index(patches) + 1 :]
            for other in reversed(later):
                other.__exit__(None, None, None)
            patches.__exit__(None, None, None)
            _stack.remove(patches)
            for other in later:
                other.__enter__()


@cache
def _skipped() -> tuple[str, ...]:
    missing = [name for name, module in _IMPORTED_AS.items() if find_spec(module) is None]
    return (*_OURS, *missing)


class _Cassette(Cassette):  # type: ignore[misc]  # vcrpy ships no types
    """What vcrpy's patches talk to."""

    def __init__(self, path: str, *, run: "CassetteRun", **options: Any) -> None:  # noqa: ANN401
        super().__init__(path, **options)
        self._run = run

    def _load(self) -> None:
        """The run has read the file."""

    def _save(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - vcrpy's signature
        """The run writes the file."""

    @property
    def write_protected(self) -> bool:
        """Never: what may not be sent has raised by the time vcrpy asks."""
        return False

    def can_play_response_for(self, request: Any) -> bool:  # noqa: ANN401 - vcrpy's own type
        """Take the answer now: another thread may ask for the same one before it is played."""
        if getattr(request, _TAKEN, None) is None:
            taken = self._run.take(request.method, request.uri, _bytes(request.body))
            setattr(request, _TAKEN, taken)
        return getattr(request, _TAKEN) is not None

    def play_response(self, request: Any) -> dict[str, Any]:  # noqa: ANN401 - vcrpy's own type
        """Return the answer that was taken."""
        taken = getattr(request, _TAKEN)
        setattr(request, _TAKEN, None)
        return _response(taken)

    def append(self, request: Any, response: Mapping[str, Any]) -> None:  # noqa: ANN401 - vcrpy's
        """Record an answer that came over the network."""
        self._run.record(
            Exchange(
                method=request.method,
                uri=request.uri,
                request_headers=_headers(request.headers),
                request_body=_bytes(request.body),
                status=int(response["status"]["code"]),
                reason=str(response["status"].get("message") or ""),
                response_headers=_headers(response["headers"]),
                response_body=_bytes((response.get("body") or {}).get("string")),
            )
        )

    def __contains__(self, request: Any) -> bool:  # noqa: ANN401 - vcrpy's own type
        return self.can_play_response_for(request)


def _response(taken: Interaction) -> dict[str, Any]:
    headers = {name: list(values) for name, values in playable_headers(taken).items()}
    headers["content-length"] = [str(len(taken.response_body))]
    return {
        "status": {"code": taken.status, "message": taken.reason},
        "headers": headers,
        "body": {"string": taken.response_body},
    }


def _headers(headers: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        str(name): tuple(_text(value) for value in _listed(values))
        for name, values in headers.items()
    }


def _listed(values: object) -> Iterable[object]:
    return values if isinstance(values, list | tuple) else (values,)


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(body: Any) -> bytes:  # noqa: ANN401 - as the patched client gave it
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray):
        return bytes(body)
    if hasattr(body, "read"):
        return _bytes(body.read())
    return b"".join(_bytes(part) for part in body)


# Cassettes of suites that were written for pytest-recording


@contextmanager
def watched_cassette(options: VcrOptions) -> Iterator[VcrRun]:
    """Use a cassette as vcrpy means it; see ``vcr_compat``."""
    config = dict(options.config)
    serializer = str(config.get("serializer", "yaml"))
    config.setdefault("path_transformer", VCR.ensure_suffix(f".{serializer}"))
    path = Path(config["path_transformer"](str(options.folder / options.path)))
    rewrites = options.mode == "rewrite"
    mode = "new_episodes" if rewrites else options.mode
    engine = VCR(record_mode=VcrRecordMode(mode), cassette_library_dir=str(options.folder))
    extra = [options.folder / config["path_transformer"](name) for name in options.extra]
    engine.register_persister(_Persister(path, extra, rewrites=rewrites))
    options.configure(engine)
    run = VcrRun(path, matching=Matching(diff_folder=options.diff_folder))
    merged = engine.get_merged_config(path=str(path), **config)
    # The path is whole by now.
    merged["path_transformer"] = None
    with _Watched.use(run=run, **merged) as cassette:
        run.cassette = cassette
        run.replays = cassette.write_protected
        yield run


class _Watched(Cassette):  # type: ignore[misc]  # vcrpy ships no types
    """vcrpy's cassette, which says what it gave to whom."""

    def __init__(self, path: str, *, run: VcrRun, **options: Any) -> None:  # noqa: ANN401
        super().__init__(path, **options)
        self._run = run
        self._watch = threading.RLock()
        self._index = -1

    def _responses(self, request: Any) -> Iterator[Any]:  # noqa: ANN401 - vcrpy's own type
        for index, response in super()._responses(request):
            self._index = index
            yield index, response

    def play_response(self, request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
        """Play, and note what was asked and what answered."""
        with self._watch:
            response = super().play_response(request)
            stored, _ = self.data[self._index]
            # As it would have been recorded: what a suite filters is no drift.
            sent = self._before_record_request(request) or request
            asked = Asked(sent.method, sent.uri, body_bytes(sent.body))
            self._run.played(asked, self._index + 1, body_bytes(stored.body))
            return response

    @property
    def write_protected(self) -> bool:
        """Whether nothing may be recorded."""
        return bool(super().write_protected)

    def filter_request(self, request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
        """Return the filtered request; where nothing may be recorded vcrpy then raises."""
        found = super().filter_request(request)
        if found and self.write_protected:
            asked = Asked(found.method, found.uri, body_bytes(found.body))
            if not self.can_play_response_for(request):
                self._run.missed.append(asked)
        return found


class _Persister:
    """Loads several cassettes, writes one: scrubbed, in one step."""

    def __init__(self, path: Path, extra: list[Path], *, rewrites: bool) -> None:
        self._path = path
        self._extra = extra
        self._rewrites = rewrites

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:  # noqa: ANN401 - vcrpy's
        """Return the requests and answers of all files.

        Raises:
            CassetteNotFoundError: there is none, which vcrpy understands.
        """
        own = [] if self._rewrites else [Path(cassette_path)]
        found: list[Any] = []
        for path in [*own, *self._extra]:
            if not path.is_file():
                continue
            if not path.read_bytes().strip():
                raise unreadable(path, "the file is empty", line=1)
            try:
                found.append(FilesystemPersister.load_cassette(path, serializer))
            except (CassetteDecodeError, YAMLError, ValueError, KeyError, TypeError) as error:
                raise unreadable(path, str(error)) from error
        if not found:
            raise CassetteNotFoundError
        requests = [request for one in found for request in one[0]]
        responses = [response for one in found for response in one[1]]
        return requests, responses, *found[0][2:]

    def save_cassette(self, cassette_path: str, cassette_dict: Any, serializer: Any) -> None:  # noqa: ANN401
        """Write the cassette without credentials; the old file stays until the new one is whole."""
        path = Path(cassette_path)
        clean = {
            **cassette_dict,
            "requests": [_scrubbed_request(one) for one in cassette_dict["requests"]],
            "responses": [_scrubbed_response(one) for one in cassette_dict["responses"]],
        }
        text = checked_text(path, serialize(clean, serializer))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text)
        except OSError as error:
            raise unwritable(path, error) from error


def _scrubbed_request(request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
    clean = copy.copy(request)
    clean.headers = _public(request.headers)
    clean.uri = scrub_literal(request.uri, ())
    if isinstance(request.body, bytes):
        clean.body = clean_body(request.body)
    return clean


def _scrubbed_response(response: Mapping[str, Any]) -> dict[str, Any]:
    headers = _public(response.get("headers") or {})
    body = (response.get("body") or {}).get("string")
    if not isinstance(body, bytes):
        return {**response, "headers": headers}
    lower = {name.lower(): tuple(_listed(value)) for name, value in headers.items()}
    try:
        plain, _ = decoded_body(body, lower)  # type: ignore[arg-type]  # headers are text by now
    except UndecodableBodyError:
        return {**response, "headers": headers}
    clean = clean_body(plain)
    if clean == plain:
        return {**response, "headers": headers, "body": {"string": body}}
    kept = {
        n: v for n, v in headers.items() if n.lower() not in {"content-encoding", "content-length"}
    }
    return {**response, "headers": kept, "body": {"string": clean}}


def _public(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers that hold no credential, whatever the suite filters itself."""
    return {
        name: [scrub_literal(_text(one), ()) for one in value]
        if isinstance(value, list | tuple)
        else scrub_literal(_text(value), ())
        for name, value in headers.items()
        if name.lower() not in PRIVATE_HEADERS
    }
