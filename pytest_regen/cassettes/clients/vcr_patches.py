"""Patches for HTTP clients, most of them vcrpy's; the innermost cassette answers.

vcrpy's own lookup, files and filters are not used: its patches ask a cassette object whether it can
play a response, to play it, or to keep a new one, and the object given to them asks ours.
"""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import vcr.patch
from vcr.cassette import Cassette
from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrRecordMode
from vcr.stubs import VCRHTTPSConnection

from pytest_regen.cassettes import interactions
from pytest_regen.cassettes.clients import traffic
from pytest_regen.cassettes.clients.aiohttp import patch_connections
from pytest_regen.cassettes.clients.httpx import patch_transports
from pytest_regen.cassettes.interactions import Interaction


def comparable_bytes(body: Any) -> bytes:
    """Return a body as ``body_bytes`` does, or nothing if it cannot be read."""
    try:
        return interactions.body_bytes(body)
    except TypeError:
        return b""


_TAKEN = "_regen_taken"
"""The attribute of vcrpy's request that holds an answer between lookup and playing."""

_RUN = "_regen_run"
"""The attribute that holds the cassette that was asked."""

_OURS = ("_httpx", "_httpx2", "_httpcore", "_aiohttp")
"""Clients that ``httpx.py`` and ``aiohttp.py`` patch: vcrpy would read streams to their end first,
and would not see the redirects of aiohttp.

vcrpy up to 7 and from 8.2 on patches httpx, 8.0 and 8.1 patch httpcore below it.
"""

_patching = threading.Lock()
_in_use: list[traffic.ActiveCassette] = []
_patches = ExitStack()


@contextmanager
def patch_clients(run: traffic.ActiveCassette) -> Iterator[None]:
    """Let every HTTP client ask cassettes first: by our transports, or by vcrpy's patches.

    The first block patches the clients and the last takes the patches back, in whatever order
    blocks end: taken back one by one, those of two threads would put back what the other had
    already taken away.

    Args:
        run: the cassette, which is in use by then; its open streams end with the block.
    """
    with _patching:
        if not _in_use:
            with ExitStack() as patches:
                patches.enter_context(keep_patches_while_sending())
                patches.enter_context(without_pauses_of_urllib3())
                for patcher in _builder().build():
                    patches.enter_context(patcher)
                for name in ("httpx2", "httpx"):
                    if find_spec(name) is not None:
                        patch_transports(import_module(name), patches)
                if find_spec("aiohttp") is not None:
                    patch_connections(patches)
                _patches.push(patches.pop_all())
        _in_use.append(run)
    try:
        yield
    finally:
        with _patching:
            _in_use.remove(run)
            if not _in_use:
                _patches.close()
        traffic.end_streams(run)


@contextmanager
def keep_patches_while_sending() -> Iterator[None]:
    """Keep vcrpy from taking its patches back while it makes a connection and sends a request.

    It takes them back for all threads, so what another thread sends meanwhile vanishes from the
    recording (``test_threads_are_all_recorded``). Only few classes look up patched names while they
    are made: https of ``http.client``, which is given its own names here, and those of httplib2 and
    of urllib3 before version 2 (which pyobis pins), for which nothing changes.
    """
    before, base = vcr.patch.force_reset, VCRHTTPSConnection._baseclass
    if before.__module__ == __name__:
        # A cassette inside another one.
        yield
        return
    is_old = find_spec("urllib3") and import_module("urllib3").__version__.startswith("1.")
    looking_up = ("httplib2", "urllib3") if is_old else ("httplib2",)

    def reset() -> AbstractContextManager[None]:
        # Because vcrpy does not say for which connection it resets.
        kind = getattr(sys._getframe(1).f_locals.get("self"), "_baseclass", base)
        return before() if kind.__module__.startswith(looking_up) else nullcontext()

    vcr.patch.force_reset, VCRHTTPSConnection._baseclass = reset, _bind_to_itself(base)
    try:
        yield
    finally:
        vcr.patch.force_reset, VCRHTTPSConnection._baseclass = before, base


@cache
def _bind_to_itself(base: Any) -> Any:
    """Return a copy of a class of ``http.client`` that finds itself under its own name.

    Because it calls ``super(HTTPSConnection, self)``, and a patch has replaced that global name;
    reset for it, 4 of 24 requests of urllib in threads over https were recorded.
    """
    init = base.__init__
    names = {**init.__globals__, base.__name__: base}
    bound = FunctionType(init.__code__, names, init.__name__, init.__defaults__, init.__closure__)
    bound.__kwdefaults__ = init.__kwdefaults__
    return type(base.__name__, (base,), {"__init__": bound, "__module__": __name__})


@contextmanager
def without_pauses_of_urllib3() -> Iterator[None]:
    """Let urllib3, which knows only ``retry-after``, heed the pause that replay adds beside it."""
    if find_spec("urllib3") is None:
        yield
        return
    retry = import_module("urllib3.util.retry").Retry
    before = retry.get_retry_after

    def get_retry_after(self: Any, response: Any) -> Any:
        is_replayed = response.headers.get("retry-after-ms") == "1"
        return 0.001 if is_replayed else before(self, response)

    retry.get_retry_after = get_retry_after
    try:
        yield
    finally:
        retry.get_retry_after = before


@cache
def _builder() -> Any:
    """Return vcrpy's builder of patches without those for the clients that we patch.

    vcrpy has the option ``skip_patchers`` only since 9.4, and the methods' names differ between
    versions. Cached, because building makes a class for every kind of connection, which is slower
    than patching.
    """
    skipped = dict.fromkeys(_OURS, lambda _builder: ())
    make = type("_Builder", (CassettePatcherBuilder,), skipped)
    return make(_PatchTarget("pytest-regen", record_mode=VcrRecordMode.ALL))


class _PatchTarget(Cassette):  # type: ignore[misc]  # vcrpy ships no types
    """The cassette that vcrpy's patches ask; it asks the innermost run."""

    @property
    def write_protected(self) -> bool:
        """Always false: a request that may not be sent has raised before vcrpy asks."""
        return False

    def can_play_response_for(self, request: Any) -> bool:
        """Claim the answer now: another thread may ask for the same one before it is played."""
        if getattr(request, _TAKEN, None) is None:
            run = traffic.innermost(request.uri)
            # ``None`` if a connection made while a cassette was in use is used after its end.
            body = interactions.body_bytes(request.body)
            taken = run and run.take(request.method, request.uri, body)
            setattr(request, _RUN, run)
            setattr(request, _TAKEN, taken)
        return getattr(request, _TAKEN) is not None

    def play_response(self, request: Any) -> dict[str, Any]:
        """Return the answer that was taken."""
        taken = getattr(request, _TAKEN)
        setattr(request, _TAKEN, None)
        headers = {
            name: list(values) for name, values in interactions.playable_headers(taken).items()
        }
        if interactions.has_body(taken.method, taken.status):
            headers["content-length"] = [str(len(taken.response_body))]
        return {
            "status": {"code": taken.status, "message": taken.reason},
            "headers": headers,
            "body": {"string": taken.response_body},
        }

    def append(self, request: Any, response: Mapping[str, Any]) -> None:
        """Record an answer that came over the network.

        Raises:
            CassetteMiss: it cannot be stored.
        """
        run: traffic.ActiveCassette | None = getattr(request, _RUN, None)
        if run is not None:
            body = interactions.body_bytes(request.body)
            run.record(exchange_of(request, response, body))


def exchange_of(request: Any, response: Mapping[str, Any], body: bytes) -> Interaction:
    """Return what vcrpy knows of a request, whose body is ``body``, and of its answer."""
    return Interaction(
        method=request.method,
        uri=request.uri,
        request_headers=interactions.by_lower_name(request.headers),
        request_body=body,
        status=int(response["status"]["code"]),
        reason=str(response["status"].get("message") or ""),
        response_headers=interactions.by_lower_name(response["headers"]),
        response_body=interactions.body_bytes((response.get("body") or {}).get("string")),
    )
