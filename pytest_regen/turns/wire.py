"""The Messages API as plain JSON: request bodies, replies, streams, and failures by status.

Standard library only, and shared by the path through the SDK and the path that replays without
it, so that both read the same bytes in the same way.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any, Final

from pytest_regen.errors import ProviderError, RejectedRequestError, TransportError
from pytest_regen.strict_json import json_or_none
from pytest_regen.text import flatten
from pytest_regen.turns.values import CacheTtl, Message, Reply, TurnRequest, Usage, estimate_tokens

MESSAGES_PATH = "/v1/messages"

EMULATOR_NAME: Final = "pytest-regen-emulator"
"""Value of the ``server`` header where the emulator, not the real API, answered."""

STREAM_ABOVE = 21_333
"""Replies that may be longer than this are streamed: no proxy keeps an idle connection open for
the ten minutes that writing them can take, and the SDK refuses to wait that long."""

_LONGEST_WORDS: Final = 1_000
_BREAKPOINTS = 4
"""Cache breakpoints the API accepts in one request."""


def request_body(request: TurnRequest) -> dict[str, Any]:
    """Return the JSON body of ``request``: no temperature, at most four cache breakpoints."""
    # Empty text cannot be marked: the API refuses it.
    marked = {
        number: message.cache
        for number, message in enumerate(request.messages)
        if message.cache and (message.blocks or message.content.strip())
    }
    # The last marks of a conversation, because a breakpoint finds what an earlier request wrote
    # within 20 blocks.
    room = _BREAKPOINTS - (1 if request.cache and request.system else 0)
    for number in [*marked][:-room]:
        del marked[number]
    body: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        "messages": [
            {"role": message.role, "content": _content(message, marked.get(number))}
            for number, message in enumerate(request.messages)
        ],
        "model": request.model,
    }
    if request.response_schema is not None:
        schema = dict(request.response_schema)
        body["output_config"] = {"format": {"schema": schema, "type": "json_schema"}}
    if request.max_tokens > STREAM_ABOVE:
        body["stream"] = True
    if request.system:
        body["system"] = _content(Message("user", request.system), request.cache)
    return body


def _content(message: Message, ttl: CacheTtl | None) -> str | list[dict[str, Any]]:
    """Return what a message holds, with a breakpoint on its last block that can have one."""
    blocks = [dict(block) for block in message.blocks]
    if ttl is None:
        return blocks or message.content
    blocks = blocks or [{"type": "text", "text": message.content}]
    control: dict[str, str] = {"type": "ephemeral"}
    if ttl != "5m":  # the default of the API, which old servers know no name for
        control["ttl"] = ttl
    marked = [block for block in blocks if "thinking" not in str(block.get("type"))]
    if marked:
        marked[-1]["cache_control"] = control
    return blocks


def reply_from_body(body: object) -> Reply:
    """Return the reply in a message object: its text blocks joined, and all where there are others.

    Raises:
        TransportError: the body is no message, or one that was never finished.
    """
    if not isinstance(body, Mapping) or not isinstance(body.get("content"), list):
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
        raise TransportError(
            f"the answer is not a message of the Messages API: {in_brief(text, 80)!r}",
            why="a message has a list of content blocks",
            hint="check ANTHROPIC_BASE_URL: something else answers at that address",
        )
    stop_reason = body.get("stop_reason")
    if not isinstance(stop_reason, str) or not stop_reason:
        raise cut_stream("the message has no stop_reason")
    details = object_or_empty(body.get("stop_details"))
    whys = details.get("category"), details.get("explanation")
    blocks = tuple(block for block in body["content"] if isinstance(block, Mapping))
    texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
    return Reply(
        text="".join(texts),
        stop_reason=stop_reason,
        usage=usage_of(body.get("usage")),
        model=str(body.get("model") or ""),
        id=str(body.get("id") or ""),
        refusal=": ".join(str(why) for why in whys if why),
        blocks=blocks if len(texts) < len(blocks) else (),
    )


def cut_stream(why: str) -> TransportError:
    """Return the error for a reply that ended before the model had finished."""
    return TransportError(
        "the reply was cut off on its way",
        why=why,
        hint="run the command again; what was finished before is kept",
    )


def usage_of(usage: object) -> Usage:
    """Return the counts of a message's ``usage``; unknown counts without such an object."""
    if not isinstance(usage, Mapping):
        return Usage()
    written = usage.get("cache_creation")
    if isinstance(written, Mapping):
        short = count(written.get("ephemeral_5m_input_tokens"))
        long = count(written.get("ephemeral_1h_input_tokens"))
    else:
        short, long = count(usage.get("cache_creation_input_tokens")), None
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_tokens=count(usage.get("cache_read_input_tokens")),
        cache_write_5m_tokens=short,
        cache_write_1h_tokens=long,
    )


def count(value: object) -> int | None:
    """Return a number of tokens, as APIs tell it."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_or_empty(value: object) -> dict[str, Any]:
    """Return an object of JSON; what is something else is as good as none."""
    return dict(value) if isinstance(value, Mapping) else {}


class StreamedMessage:
    """A message put together from the events of its stream."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._ended = False
        self._counted = False
        self._written: list[str] = []
        self.is_open = False
        """Whether the answer has begun, so that it costs something."""

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take the next event; kinds that carry no text or counts are passed over."""
        # What the API would not send is ignored: recordings are edited by hand.
        index = count(event.get("index")) or 0
        match event.get("type"):
            case "message_start":
                self._message = object_or_empty(event.get("message"))
                self._message["usage"] = object_or_empty(self._message.get("usage"))
            case "content_block_start":
                self._blocks[index] = object_or_empty(event.get("content_block"))
            case "content_block_delta":
                self._extend(index, object_or_empty(event.get("delta")))
            case "message_delta":
                delta = object_or_empty(event.get("delta"))
                self._message |= {key: delta.get(key) for key in ("stop_reason", "stop_details")}
                # Cumulative counts; the breakdown of cache writes stands in message_start only.
                usage = object_or_empty(event.get("usage"))
                counts = {name: number for name, number in usage.items() if number is not None}
                self._message.setdefault("usage", {}).update(counts)
                self._counted = self._counted or "output_tokens" in counts
            case "message_stop":
                self._ended = True
            case _:
                pass

    @property
    def usage(self) -> Usage:
        """Tokens of the message, as far as it has arrived."""
        # Until its end counts the output, that is estimated from what was written; nothing is known
        # before its beginning.
        usage = usage_of(self._message.get("usage"))
        if self._counted or not self._message:
            return usage
        written = estimate_tokens("".join(self._written))
        return replace(usage, output_tokens=max(written, usage.output_tokens or 0))

    def _extend(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {"type": "text"})
        for name in ("text", "thinking", "signature", "partial_json"):
            if isinstance(part := delta.get(name), str):
                block[name] = str(block.get(name) or "") + part
                self._written += [] if name == "signature" else [part]
        if "citation" in delta:
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

    def as_json(self) -> dict[str, Any]:
        """Return what has arrived of the message, as the API answers it without a stream."""
        blocks = [dict(self._blocks[index]) for index in sorted(self._blocks)]
        for block in blocks:
            # The arguments of a call come as text; empty where it has none.
            arguments = json_or_none(block.pop("partial_json", ""))
            if arguments is not None:
                block["input"] = arguments
        return {**self._message, "content": blocks}

    def reply(self) -> Reply:
        """Return the finished reply.

        Raises:
            TransportError: the stream ended before the message did.
        """
        if not self._ended:
            raise cut_stream("the stream ended without message_stop")
        return reply_from_body(self.as_json())


def sse_events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON data of each server-sent event in ``text``."""
    # An event cut in the middle ends the iteration: what follows is not a message any more.
    for data in sse_data(text):
        value = json_or_none(data)
        if value is None:
            return
        if isinstance(value, dict):
            yield value


def sse_data(text: str) -> Iterator[str]:
    """Yield the data of each server-sent event in ``text``, its lines joined by LF."""
    # An event that was cut gives what there is of it. One space behind the colon is not part of the
    # data: https://html.spec.whatwg.org/multipage/server-sent-events.html.
    for event in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in event.split("\n") if line[:5] == "data:"]
        if lines:
            yield "\n".join(lines)


_NEXT: Final[Mapping[int, str]] = {
    400: "correct what the reason names; on the command line, --dry-run shows the request",
    401: "check the key: set ANTHROPIC_API_KEY to one that is valid for this address",
    402: "check the billing of the account the key belongs to",
    403: "use a key whose workspace may do this",
    404: "check the model's name (--model, in pytest --regen-model, or [tool.pytest-regen])",
    413: "send less at once: lower --fields-per-page",
    429: "wait, then run the command again; what was finished before is kept",
    529: "wait a moment, then run the command again; what was finished before is kept",
}
_NEXT_REJECTED = "correct the request; on the command line, --dry-run shows it"
_NEXT_AGAIN = "run the command again; what was finished before is kept"

_WORDS: Final[Mapping[int, str]] = {
    400: "refused the request as malformed",
    401: "did not accept the key",
    402: "refused for a billing reason",
    403: "does not allow this with the key at hand",
    404: "does not know what was asked for",
    413: "refused the request as too large",
    429: "limits the rate of requests",
    500: "failed inside",
    529: "is overloaded",
}

_BILLING: Final = "check the plan and the billing of the account the key belongs to"
_MONEY: Final[Mapping[str, tuple[str, str]]] = {
    "spend_limit_reached": (
        "a spend limit is reached",
        "raise the limit in the console, or wait until the limit's period ends",
    ),
    "credit balance is too low": ("the account has no credit left", _BILLING),
    "insufficient_quota": ("the account has no quota left", _BILLING),
}
"""What is used up and what to do, by what the APIs say: Anthropic under 429 and 400, OpenAI under
429."""

RATE_LIMITED: Final = 429
"""Too many requests: the status under which the API says that a spend limit is reached."""

_BAD_REQUEST: Final = 400
_PAYMENT_REQUIRED: Final = 402
_NOT_FOUND: Final = 404
_TRANSIENT = frozenset({408, 409, 425, RATE_LIMITED, 499})
_RETRIED = frozenset({408, 409, RATE_LIMITED})
_SERVER_ERROR = 500
_TYPE_STATUS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 504,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}


def status_failure(
    status: int,
    body: object,
    *,
    model: str,
    address: str,
    hints: Mapping[int, str] | None = None,
    address_variable: str = "ANTHROPIC_BASE_URL",
) -> ProviderError:
    """Return the error for an answer with an error status, or an error inside a stream.

    Args:
        status: HTTP status; 200 where the error came inside a stream.
        body: decoded JSON of the answer, or its text.
        model: model asked.
        address: host the request went to.
        hints: what to do next, by status, where that is not what the Messages API needs.
        address_variable: the environment variable that changes the address.
    """
    error = _error_in(body)
    kind, message = str(error.get("type") or ""), str(error.get("message") or "")
    # An error inside a stream arrives under the status 200 of the response it interrupts.
    status = _TYPE_STATUS.get(kind, _SERVER_ERROR) if status < _BAD_REQUEST else status
    words = _WORDS.get(status, "answered with an error")
    what = f"{address} {words} (HTTP {status}, model {model!r})"
    why = in_brief(f"{kind}: {message}" if kind else " ".join(message.split())[:200])
    if used_up := _used_up(error):
        return RejectedRequestError(
            f"{address} refuses further requests: {used_up[0]} (HTTP {status})",
            # Not what is wrong with this request: no other one is answered either.
            status=_PAYMENT_REQUIRED if status == _BAD_REQUEST else status,
            why=why,
            hint=used_up[1],
        )
    hint = {**_NEXT, **(hints or {})}.get(status)
    if status in _TRANSIENT or status >= _SERVER_ERROR:
        return TransportError(what, why=why, hint=hint or _NEXT_AGAIN)
    hint = hint or _NEXT_REJECTED
    if status == _NOT_FOUND and "model" not in message.lower() and address_variable:
        # An API that lacks a model says so; where no API is, something else answers.
        hint = f"check the address, {address_variable}; then {hint}"
    return RejectedRequestError(what, status=status, why=why, hint=hint)


def connection_failure(
    reason: str,
    *,
    model: str,
    address: str,
    hint: str = "check the network and ANTHROPIC_BASE_URL, then run the command again",
) -> ProviderError:
    """Return the error for a connection that was never made, or dropped."""
    failure = TransportError(
        f"{address} could not be reached (model {model!r})",
        why=in_brief(reason) or "the connection was dropped",
        hint=hint,
    )
    failure.usage = usage_after(reason)
    return failure


def in_brief(words: str, length: int = _LONGEST_WORDS) -> str:
    """Return what a server, an SDK or a user's code says, on one line and without credentials."""
    from pytest_regen.credentials.search import scrub_text

    # A log or a terminal might obey what a line of others begins with, or its control characters.
    line = flatten(" ".join(scrub_text(words).split()))
    return line if len(line) <= length else f"{line[:length]} …"


def usage_after(reason: str) -> Usage | None:
    """Return what a request took whose connection broke, or was given up.

    Args:
        reason: what the HTTP client says, its kind of error first.
    """
    # That is unknown, not nothing, while the answer was awaited or on its way.
    is_underway = reason.startswith(("ReadError", "ReadTimeout", "RemoteProtocolError"))
    return Usage() if is_underway and "without sending a response" not in reason else None


def is_spend_limit(body: object) -> bool:
    """Whether the answer says that money, not speed, is the limit; waiting cannot help."""
    return _used_up(_error_in(body)) is not None


def _used_up(error: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what an error says is used up, and what to do."""
    words = " ".join(str(error.get(name)) for name in ("code", "type", "message", "details"))
    return next((money for cause, money in _MONEY.items() if cause in words), None)


def _error_in(body: object) -> Mapping[str, Any]:
    """Return the error in an answer; its text is the message where it has none."""
    error = body.get("error") if isinstance(body, Mapping) else None
    return error if isinstance(error, Mapping) else {"message": body if type(body) is str else ""}


def limit_pause(status: int, headers: Mapping[str, str], body: object) -> float | None:
    """Return the seconds to wait after a refusal by a rate limit; ``None`` for any other answer.

    Args:
        status: HTTP status.
        headers: response headers, names in lower case.
        body: decoded JSON of the answer, or its text.
    """
    # A refusal that does not say when to come back, in retry-after, is one like any other. So is
    # one that says not to.
    if status != RATE_LIMITED or is_spend_limit(body) or headers.get("x-should-retry") == "false":
        return None
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]*)?", text):
        return max(0.0, float(text))
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def is_retried(status: int, headers: Mapping[str, str], body: object) -> bool:
    """Whether the SDK sends the request again after this answer.

    Args:
        status: HTTP status.
        headers: response headers, names in lower case.
        body: decoded JSON of the answer, or its text.
    """
    if status == RATE_LIMITED and is_spend_limit(body):
        return False
    advice = headers.get("x-should-retry")
    return advice == "true" if advice in {"true", "false"} else is_retried_status(status)


def is_retried_status(status: int) -> bool:
    """Whether the SDK asks again after an answer of this status, unless the answer says not to."""
    return status in _RETRIED or status >= _SERVER_ERROR
