"""A Messages API on loopback that answers from a script or a callable."""

import copy
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import SplitResult, parse_qsl

from pytest_regen.canonical import text_hash
from pytest_regen.emulator import api, faults, values
from pytest_regen.emulator.batches import Batches, model_info, model_list
from pytest_regen.emulator.limits import Clock, Limiter, RateLimits
from pytest_regen.emulator.messages import EmulatedTurn, derived_id, events_of, message_of
from pytest_regen.emulator.prompt import TRAILING, PromptCache
from pytest_regen.emulator.rules import check_request
from pytest_regen.emulator.script import Script
from pytest_regen.emulator.values import Responder
from pytest_regen.errors import UsageError
from pytest_regen.extras import needs
from pytest_regen.turns.wire import EMULATOR_NAME

if TYPE_CHECKING:
    from pytest_regen.emulator.server import LoopbackServer

# Only these two, because the API refuses any other.
_VERSIONS = ("2023-06-01", "2026-10-21")
_BATCHES = "/v1/messages/batches"
_LONG_KEY = 12
"""Characters of a key that is looked for in bodies; ``any`` stands in many and is no secret."""


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
        if isinstance(script, Path):
            from pytest_regen.emulator.script_files import load_script

            script = load_script(script)
        self.script = script
        self.requests: list[values.ReceivedRequest] = []
        """All requests that arrived, in order, without credentials."""
        self.failures: list[BaseException] = []
        """Exceptions of the responder, in order; each was answered with status 500."""
        self.answering: Callable[[values.ReceivedRequest, int], None] | None = None
        """Called with each request and its status, from several threads, once the reply's delay is
        over and its first byte, or none, is about to be sent: it is in flight from its ``at`` until
        then."""
        # As hashes, because no key is kept.
        self._keys = None if keys is None else set(map(text_hash, keys))
        self._port = port
        self._server: LoopbackServer | None = None
        self._limiter = Limiter(limits, self.clock)
        self._cache = PromptCache()
        self._batches = batches = Batches(self._answer_in_batch, self.clock, batch_seconds)
        single = f"{_BATCHES}/([^/]+)"
        self._routes: tuple[tuple[str, str, Callable[..., Any]], ...] = (
            ("POST", "/v1/messages", self._message),
            ("POST", "/v1/messages/count_tokens", self._count),
            ("POST", _BATCHES, self._create_batch),
            ("GET", _BATCHES, batches.page),
            ("GET", single, batches.get),
            ("DELETE", single, batches.delete),
            ("POST", f"{single}/cancel", batches.cancel),
            ("GET", f"{single}/results", batches.results),
            ("GET", "/v1/models", model_list),
            ("GET", "/v1/models/([^/]+)", model_info),
        )

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``; only while it runs."""
        if self._server is None:
            raise RuntimeError("the emulator is not running: call start() or enter it first")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Self:
        """Start listening; returns at once.

        Raises:
            UsageError: the port is in use, or not permitted.
            MissingExtraError: the SDK, whose types say what a request is, is not installed.
        """
        with needs("anthropic", "requests to the emulator"):
            # Only looked for, because its import takes a second.
            if find_spec("anthropic") is None:
                raise ModuleNotFoundError(name="anthropic")
            from pytest_regen.emulator.server import LoopbackServer
        if self._server is None:
            try:
                self._server = LoopbackServer(self.handle, port=self._port)
            except OSError as error:
                raise UsageError(
                    f"the emulator cannot listen on port {self._port} of 127.0.0.1",
                    why=str(error.strerror or error),
                    hint="stop what listens there, or choose another --port (0 takes a free one)",
                ) from error
        return self

    def stop(self) -> None:
        """Stop listening and close every connection; may be called twice."""
        if self._server is not None:
            self._server.stop()
        self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def handle(
        self, method: str, url: SplitResult, headers: Mapping[str, str], data: bytes
    ) -> values.HttpResponse:
        """Record one request, and return its response without a socket; never raises."""
        key = api.key_of(headers)
        if len(key) >= _LONG_KEY:
            # Before anything reads it, because errors, notes and replies may repeat what it says.
            data = data.replace(key.encode(), b"<key>")
        # The same request gets the same id, whichever worker sends it first; a retry gets another.
        retry = headers.get("x-stainless-retry-count", "0")
        id_ = derived_id("req_emu", method, url.path, retry, data.decode("utf-8", "replace"))
        public = {k: value for k, value in headers.items() if k not in api.SECRET_HEADERS}
        query = dict(parse_qsl(url.query))
        request = values.ReceivedRequest(method, url.path, public, query=query, id=id_)
        self.requests.append(request)
        try:
            request.body = api.json_body(data)
            response = self._route(request, key)
        except Exception as error:  # noqa: BLE001 - a thread that dies would look like a fault
            refusal = error if isinstance(error, values.ApiError) else self._failure(error)
            response = faults.error_response(refusal.fault, id_)

        def begin() -> None:
            if response.on_start is not None:
                response.on_start()
            if self.answering is not None:
                self.answering(request, response.status)

        accepted = headers.get("accept-encoding", "")
        return replace(api.labelled(response, id_, accepted), on_start=begin)

    def _failure(self, error: BaseException, what: str = "") -> values.ApiError:
        """Note an error that is not the client's; the client is told not to retry."""
        self.failures.append(error)
        message = f"{EMULATOR_NAME}: {what}{type(error).__name__}: {error}"
        return values.ApiError(message, 500, should_retry=False)

    def _route(self, request: values.ReceivedRequest, key: str) -> values.HttpResponse:
        if not key or (self._keys is not None and text_hash(key) not in self._keys):
            raise values.ApiError("invalid x-api-key", 401)
        version = request.headers.get("anthropic-version")
        if version not in _VERSIONS:
            wrong = f'"{version}" is not a valid version' if version else "header is required"
            raise values.ApiError(f"anthropic-version: {wrong}")
        for method, pattern, answer in self._routes:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                is_batch = pattern.startswith(_BATCHES)
                if is_batch:
                    self._limiter.admit(None)
                # One at a time, because any of these calls may be the one that ends a batch.
                with self._batches.lock if is_batch else nullcontext():
                    response = answer(request, *match.groups())
                is_whole = isinstance(response, values.HttpResponse)
                return response if is_whole else api.json_response(response)
        raise values.ApiError(f"Not found: {request.method} {request.path}", 404)

    def _message(self, request: values.ReceivedRequest) -> values.HttpResponse:
        # An invalid request does not count against the limits, so its answer reports none.
        turn = self._turn(request.body or {}, request)
        # Only a stream can fail after its status was sent, because a body is sent with it.
        streamed = bool(turn.body.get("stream"))
        begins = ("cut", "unfinished", "error_event") if streamed else ("cut", "unfinished")
        try:
            # Reads are free, because the limit is one of input that is not cached.
            uncached = turn.use.plain + turn.use.write_5m + turn.use.write_1h
            self._limiter.admit(turn.model, uncached)
            message, reply, fault = self._ask(turn, request.headers, *begins)
        except values.ApiError as error:
            response = faults.error_response(error.fault, request.id)
        else:
            # Only now, because nobody knows before it is written how long an answer is.
            self._limiter.spend(turn.model, message["usage"]["output_tokens"])
            delay = (fault or reply).delay
            response = replace(api.json_response(message), delay=delay, on_start=turn.use.commit)
            # Only a stream can end politely before its message does.
            if fault and (fault.kind == "cut" or not streamed):
                response = replace(response, end="cut")
            if streamed:
                parts = tuple(events_of(message, reply))
                headers = {
                    "content-type": "text/event-stream; charset=utf-8",
                    "cache-control": "no-cache",
                }
                if fault:
                    parts = faults.stop_early(parts, fault, request.id)
                    headers |= faults.fault_headers(fault)
                response = replace(response, headers=headers, body=b"", parts=parts)
        return replace(response, headers={**self._limiter.headers(turn.model), **response.headers})

    def _count(self, request: values.ReceivedRequest) -> dict[str, Any]:
        # A count takes what a message takes, but for this one field that a message must have.
        turn = check_request({"max_tokens": 1, **(request.body or {})}, request)
        return {"input_tokens": turn.prompt[-1].tokens + TRAILING}

    def _create_batch(self, request: values.ReceivedRequest) -> values.HttpResponse:
        step = self.script.next_batch() if self.script else values.BatchStep()
        if step.fault and step.fault.kind == "status":
            raise values.ApiError(step.fault)
        response = api.json_response(self._batches.create(request, step))
        if step.fault is None:
            return response
        # The batch exists all the same, because a client that lost the answer has to find it.
        is_dropped = step.fault.kind == "drop"
        return replace(response, delay=step.fault.delay, end="drop" if is_dropped else "cut")

    def _answer_in_batch(
        self, body: Mapping[str, Any], creation: values.ReceivedRequest
    ) -> dict[str, Any]:
        turn = self._turn(body, creation, "batch")
        message, *_ = self._ask(turn, creation.headers)
        turn.use.commit()  # at once, because a batch has no first byte to wait for
        return message

    def _turn(
        self, body: Mapping[str, Any], request: values.ReceivedRequest, tier: str = "standard"
    ) -> EmulatedTurn:
        turn = check_request(body, request, tier)
        tokens, limit = turn.prompt[-1].tokens + TRAILING, turn.model.max_input
        if tokens > limit:
            raise values.ApiError(f"prompt is too long: {tokens} tokens > {limit} maximum")
        minimum = turn.model.min_cacheable
        turn.use = self._cache.look_up(turn.prompt, now=self.clock.now(), minimum=minimum)
        return turn

    def _ask(
        self, turn: EmulatedTurn, headers: Mapping[str, str], *begins: str
    ) -> tuple[dict[str, Any], values.EmulatedReply, values.Fault | None]:
        """Return the message that the script gives, or else the responder, and what it is made of.

        Args:
            turn: the request.
            headers: of the request.
            begins: the kinds of faults for which the message begins all the same.
        """
        body = copy.deepcopy(dict(turn.body))
        is_last = self.responder is None
        answer = self.script.find(body, is_last=is_last) if self.script else None
        if answer is None and self.responder is not None:
            try:
                answer = api.call_responder(self.responder, body, headers)
            except BaseException as error:  # pytest.fail() in a responder raises no Exception
                raise self._failure(error, "the responder raised ") from error
        elif answer is None:
            answer = "An emulated reply: this emulator has no responder and no script."
        fault = answer if isinstance(answer, values.Fault) else None
        if fault and fault.kind not in begins:
            raise values.ApiError(fault)
        reply = answer.reply if isinstance(answer, values.Fault) else answer
        reply = values.EmulatedReply(reply) if isinstance(reply, str) else reply
        return message_of(turn, reply), reply, fault


def serve(
    port: int = 0,
    replies: Path | None = None,
    *,
    ready: Callable[[str], None] = print,
    answered: Callable[[str], None] = lambda _line: None,
) -> None:
    """Run an emulator and return on Ctrl-C.

    Args:
        port: the port on 127.0.0.1; 0 takes a free one.
        replies: a script (docs/emulator.md); by default every request gets the same sentence.
        ready: called once with the base URL, as soon as requests are answered.
        answered: called with a line for each request, from several threads.

    Raises:
        UsageError: the script is wrong, or the port is taken.
    """
    # Ctrl-C is the normal way to stop it once its address is printed, so it is no error.
    with Emulator(script=replies, port=port) as emulator, suppress(KeyboardInterrupt):

        def tell(request: values.ReceivedRequest, status: int) -> None:
            answered(f"{request.method} {request.path} {status}")
            for note in request.notes:
                answered(f"warning: not checked: {note}")

        emulator.answering = tell
        ready(emulator.base_url)
        threading.Event().wait()
