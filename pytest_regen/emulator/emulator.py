"""A Messages API on loopback that answers from a script or a callable."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_regen.emulator import values
from pytest_regen.emulator.api import MAX_BATCH_BYTES, MessagesApi, call_responder, key_of
from pytest_regen.emulator.limits import Clock, RateLimits
from pytest_regen.emulator.script import Script, load_script
from pytest_regen.emulator.server import HOST, LoopbackServer
from pytest_regen.emulator.shapes import require_sdk
from pytest_regen.emulator.values import ReceivedRequest, Responder
from pytest_regen.errors import UsageError
from pytest_regen.turns.wire import EMULATOR_NAME


class Emulator:
    """An emulated Messages API; a context manager, or ``start`` and ``stop``.

    No reply comes from a model, and every response says so in its ``server`` header. Message ids,
    signatures and token counts depend only on the request and the reply, so a recording does not
    depend on the order of tests.

    Args:
        responder: called as ``responder(body, headers=headers)`` for each valid request, from
            several threads at once.
        script: rules for replies, or a YAML file of them; consulted before ``responder``.
        clock: the API's clock; the system's by default.
        keys: accepted API keys; any non-empty one by default.
        port: 0 takes a free one.
        limits: requests and tokens per minute, enforced; unlimited by default.
        batch_seconds: how long a batch takes, by ``clock``.
    """

    def __init__(
        self,
        responder: Responder | None = None,
        *,
        script: Script | Path | None = None,
        clock: Clock | None = None,
        keys: Iterable[str] | None = None,
        port: int = 0,
        limits: RateLimits | None = None,
        batch_seconds: float = 60.0,
    ) -> None:
        self.responder = responder
        self.clock = clock or Clock()
        self.script = load_script(script) if isinstance(script, Path) else script
        self.requests: list[ReceivedRequest] = []
        """All requests that arrived, in order, without credentials."""
        self.answered: Callable[[ReceivedRequest, int], None] | None = None
        """Called with each request and its status, from several threads."""
        self.answering: Callable[[ReceivedRequest, int], None] | None = None
        """The same, but once the reply's delay is over and its first byte is about to be sent: a
        request is in flight from its ``at`` until then. Not called where the connection drops."""
        self._port = port
        self._server: LoopbackServer | None = None
        self._thread: threading.Thread | None = None
        self._api = MessagesApi(
            self._next_reply,
            clock=self.clock,
            keys=keys,
            limits=limits,
            batch_seconds=batch_seconds,
            next_batch=lambda: self.script.next_batch() if self.script else values.BatchStep(),
        )

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``; only while it runs."""
        if self._server is None:
            raise RuntimeError("the emulator is not running: call start() or enter it first")
        return f"http://{HOST}:{self._server.port}"

    @property
    def failures(self) -> list[BaseException]:
        """Exceptions of the responder, in order; each was answered with status 500."""
        return self._api.failures

    def start(self) -> Self:
        """Start listening; returns at once.

        Raises:
            UsageError: the port is in use, or not permitted.
            MissingExtraError: the SDK, whose types say what a request is, is not installed.
        """
        require_sdk()
        if self._server is None:
            try:
                self._server = LoopbackServer(
                    self._handle, self._api.refuse, port=self._port, max_bytes=MAX_BATCH_BYTES
                )
            except OSError as error:
                raise UsageError(
                    f"the emulator cannot listen on port {self._port} of {HOST}",
                    why=str(error.strerror or error),
                    hint="stop what listens there, or choose another --port (0 takes a free one)",
                ) from error
            serve_forever = partial(self._server.serve_forever, poll_interval=0.02)
            self._thread = threading.Thread(target=serve_forever, name=EMULATOR_NAME, daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and close every connection; may be called twice."""
        if self._server is not None and self._thread is not None:
            self._server.stop()
            self._thread.join()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _handle(self, request: values.HttpRequest) -> values.HttpResponse:
        text, key = request.body.decode("utf-8", "replace"), key_of(request.headers)
        try:
            body = json.loads(text.replace(key, "<key>") if key else text)
        except (ValueError, RecursionError):
            body = None
        # The same list as the request's, because notes on a batch come when it is processed.
        headers, notes = values.public_headers(request.headers), request.notes
        received = ReceivedRequest(request.method, request.path, headers, body, time.time(), notes)
        self.requests.append(received)
        response = self._api.handle(request)
        if self.answered is not None:
            self.answered(received, response.status)

        def begin() -> None:
            if response.on_start is not None:
                response.on_start()
            if self.answering is not None:
                self.answering(received, response.status)

        return replace(response, on_start=begin)

    def _next_reply(
        self, body: dict[str, Any], *, headers: Mapping[str, str]
    ) -> values.ResponderResult:
        answer = self.script.find(body) if self.script else None
        if answer is not None:
            return answer
        if self.responder is not None:
            return call_responder(self.responder, body, headers)
        if self.script and self.script.rules:
            return self.script(body, headers=headers)  # which says that no rule matches
        return values.EmulatedReply(
            "An emulated reply: this emulator has no responder and no script."
        )


def serve(
    port: int = 0,
    replies: Path | None = None,
    *,
    ready: Callable[[str], None] = print,
    answered: Callable[[str], None] | None = None,
    until: threading.Event | None = None,
) -> None:
    """Run an emulator and return when ``until`` is set or on Ctrl-C.

    Args:
        port: the port on 127.0.0.1; 0 takes a free one.
        replies: a script (docs/emulator.md); by default every request gets the same sentence.
        ready: called once with the base URL, as soon as requests are answered.
        answered: called with a line for each request, from several threads.
        until: set by another thread to stop the emulator.

    Raises:
        UsageError: the script is wrong, or the port is taken.
    """
    # Ctrl-C is the normal way to stop it once its address is printed, so it is no error.
    with Emulator(script=replies, port=port) as emulator, suppress(KeyboardInterrupt):
        if answered is not None:
            tell = answered

            def answered_with(request: ReceivedRequest, status: int) -> None:
                tell(f"{request.method} {request.path} {status}")
                for note in request.notes:
                    tell(f"warning: not checked: {note}")

            emulator.answered = answered_with
        ready(emulator.base_url)
        (until or threading.Event()).wait()
