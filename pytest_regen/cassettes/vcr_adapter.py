"""The one place that knows vcrpy: it patches the HTTP clients, a ``CassetteRun`` decides.

vcrpy's own lookup, files and filters are not used. Its patches ask a cassette object whether it
can play a response, play it, or keep a new one; ours asks the run.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from vcr.cassette import Cassette
from vcr.record_mode import RecordMode as VcrRecordMode

from pytest_regen.cassettes.recording import Exchange
from pytest_regen.cassettes.values import Interaction, playable_headers

if TYPE_CHECKING:
    from pytest_regen.cassettes.running import CassetteRun

__all__ = ["patched_clients"]

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
    """Let every HTTP client that vcrpy can patch ask ``run`` first."""
    with _Cassette.use(
        path=str(run.path), record_mode=VcrRecordMode.ALL, run=run, skip_patchers=_skipped()
    ):
        yield


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
