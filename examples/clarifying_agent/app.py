"""The agent over HTTP, and a page that uses it: ``uvicorn app:app`` in this folder.

The server keeps nothing between the turns. The caller holds the context, and a seal shows that
questions and inferences came back as they were sent.
"""

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from places import LEVELS, Gazetteer
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pytest_regen import CallableProvider, ClarifyingAgent, ConversationContext
from pytest_regen.context import Ask, ClarificationRequest, Sealer, parse_request, require_seal
from pytest_regen.errors import (
    InvalidContextError,
    MissingKeyError,
    RefusedError,
    RegenError,
    ReplyFormatError,
    SealError,
    SealExpiredError,
    TransportError,
)
from pytest_regen.turns import Provider

HERE = Path(__file__).parent
MODEL = os.environ.get("MODEL", "claude-sonnet-5-5")
LARGEST_BODY = 131_072
"""Bytes; a context with every text as long as it may be has about 60,000."""
HEARTBEAT = 15.0
"""Seconds between signs of life in a stream, because proxies close one that is silent."""
SAFETY = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
OUT_OF_REACH = "The model could not be reached. Try again in a moment."
TURN_PROBLEMS: tuple[tuple[type[RegenError], tuple[int, str, str]], ...] = (
    (MissingKeyError, (503, "MODEL_NOT_CONFIGURED", "No model is configured here.")),
    (TransportError, (503, "MODEL_UNAVAILABLE", OUT_OF_REACH)),
    (RefusedError, (502, "MODEL_REFUSED", "The model declined to answer this.")),
    (ReplyFormatError, (502, "UNUSABLE_REPLY", "The model's reply could not be used.")),
    (RegenError, (502, "MODEL_FAILED", "The model gave no answer.")),
)
"""The first that fits is the answer to a turn that failed."""


ARRIVED: ContextVar[asyncio.Queue[str] | None] = ContextVar("arrived", default=None)
"""Where the text of the reply goes while it arrives, for a caller who reads events."""


@cache
def client() -> AsyncAnthropic:
    """Return the client whose connections all turns share."""
    return AsyncAnthropic()


async def stream_reply(messages: list[dict[str, str]]) -> str:
    """Return the model's reply, and tell what has arrived of it meanwhile."""
    if not {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} & set(os.environ):
        raise MissingKeyError("no key is set", hint="export ANTHROPIC_API_KEY=...")
    system, *turns = messages
    text, arrived = "", ARRIVED.get()
    turn: Any = {"system": system["content"], "messages": turns}
    async with client().messages.stream(model=MODEL, max_tokens=4_096, **turn) as stream:
        async for piece in stream.text_stream:
            text += piece
            if arrived is not None:
                arrived.put_nowait(text)
    return text


class Problem(Exception):  # noqa: N818 - an answer to be sent, no defect of the program
    """Ends a request with an answer that says why, in words of ours alone."""

    def __init__(self, status: int, code: str, message: str, **details: object) -> None:
        super().__init__(code)
        self.status = status
        self.members = {"error": message, "code": code, **details}


def create_app(provider: Provider | None = None, *, key: str = "") -> Starlette:
    """Return the application.

    Args:
        provider: who answers; the Anthropic API by default, whose reply is shown as it arrives.
        key: of the seals, at least 32 bytes; without one every context is believed, as it is in
            requirement 3.
    """
    api = Endpoints(
        ClarifyingAgent(provider or CallableProvider(stream_reply)),
        Sealer({"1": key}) if key else None,
    )
    hosts = os.environ.get("ALLOWED_HOSTS", "127.0.0.1,localhost").split(",")
    return Starlette(
        routes=[
            Route("/", send_page),
            Route("/api/agents/generate-subject", api.generate_subject, methods=["POST"]),
            Route("/api/location/search", api.search_places, methods=["POST"]),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        # Or a foreign page could reach this server under a name of its own.
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
        exception_handlers={Problem: _send_problem, HTTPException: _send_http_error},
    )


async def send_page(_: Request) -> Response:
    """Send the page, which does all else by the endpoints."""
    return FileResponse(HERE / "static" / "index.html", headers=SAFETY)


class Endpoints:
    """Answers programs and the page.

    Args:
        agent: who takes the turns; it keeps nothing.
        sealer: vouches for contexts; without one all are believed.
    """

    def __init__(self, agent: ClarifyingAgent, sealer: Sealer | None) -> None:
        self._agent = agent
        self._sealer = sealer
        self._places = Gazetteer((HERE / "places.txt").read_text("utf-8"))

    async def generate_subject(self, request: Request) -> Response:
        """Take a turn; as events where the caller accepts these alone."""
        turn = _read_turn(await _read_json(request))
        self._check_seal(turn)
        headers = dict(SAFETY)
        if turn.is_second_turn and turn.conversation_context is None:
            headers["deprecation"] = "true"  # answers without what was asked
        if request.headers.get("accept") != "text/event-stream":
            return JSONResponse(await self._answer(turn), headers=headers)
        return StreamingResponse(
            self._events(turn), media_type="text/event-stream", headers=headers
        )

    async def search_places(self, request: Request) -> Response:
        """Search places by level; posted, so that no address holds what somebody looks for."""
        search = await _read_json(request)
        query, level = search.get("q"), search.get("level", "city")
        if not isinstance(query, str) or level not in LEVELS:
            raise Problem(400, "INVALID_SEARCH", f"Send q, and as level one of {', '.join(LEVELS)}")
        places = self._places.search(query[:100], level)
        return JSONResponse({"places": [place.as_json() for place in places]}, headers=SAFETY)

    def _check_seal(self, turn: ClarificationRequest) -> None:
        if turn.conversation_context is None or self._sealer is None:
            return
        try:
            require_seal(
                self._sealer,
                turn.seal,
                turn.conversation_context,
                conversation=turn.interaction_id or "",
            )
        except SealExpiredError as error:
            message = "The questions are too old to be answered. Describe the issue again."
            raise Problem(403, error.code, message) from None
        except SealError as error:
            message = "These are not the questions that were asked. Describe the issue again."
            raise Problem(403, error.code, message) from None

    async def _answer(self, turn: ClarificationRequest) -> dict[str, Any]:
        try:
            result = await self._agent.aturn(turn)
        except RegenError as error:
            answers = (answer for kind, answer in TURN_PROBLEMS if isinstance(error, kind))
            raise Problem(*next(answers)) from None
        conversation = turn.interaction_id or f"conv_{secrets.token_hex(12)}"
        answer = result.model_dump(mode="json", by_alias=True)
        answer.setdefault("clarification_questions", [])
        answer["interactionId"] = conversation
        if isinstance(result, Ask) and self._sealer is not None:
            context = ConversationContext(
                original_description=turn.message,
                questions_asked=result.questions,
                inferred_context=result.inferred_context,
            )
            answer["seal"] = self._sealer.seal(context, conversation=conversation)
        return answer

    async def _events(self, turn: ClarificationRequest) -> AsyncIterator[bytes]:
        """Yield that the turn began, what has arrived of the reply, and how it ended."""
        yield _event("started", {})
        arrived: asyncio.Queue[str] = asyncio.Queue()
        ARRIVED.set(arrived)
        answering = asyncio.ensure_future(self._answer(turn))
        try:
            while not (answering.done() and arrived.empty()):
                reading = asyncio.ensure_future(arrived.get())
                waiting = {answering, reading}
                await asyncio.wait(waiting, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    yield _event("part", _texts_so_far(reading.result()))
                elif not answering.done():
                    yield b": waiting for the model\n\n"
                reading.cancel()
            answer = answering.result()
            yield _event("clarification" if answer["needs_clarification"] else "complete", answer)
        except Problem as problem:
            yield _event("error", problem.members)
        finally:
            answering.cancel()  # A caller that leaves pays for nothing more.


def _texts_so_far(reply: str) -> dict[str, str]:
    """Return the texts of a result that have arrived, the last one perhaps in part."""
    try:
        result = from_json(reply[max(reply.find("{"), 0) :], allow_partial="trailing-strings")
    except ValueError:
        return {}
    names = ("subject_line", "core_message") if isinstance(result, dict) else ()
    return {name: result[name] for name in names if isinstance(result.get(name), str)}


def _read_turn(data: Mapping[str, object]) -> ClarificationRequest:
    try:
        return parse_request(data)
    except InvalidContextError as error:
        issues = [{"where": where, "why": why} for where, why in error.problems]
        where = str(issues[0]["where"]) if issues else ""
        if where in {"message", "description"}:
            message = "Say what should change, in at most 4,000 characters."
            raise Problem(422, "MESSAGE_REQUIRED", message, where=where) from None
        message = f"{where}: {issues[0]['why']}" if issues else "This is no request."
        raise Problem(422, error.code, message, where=where, problems=issues) from None


async def _read_json(request: Request) -> dict[str, object]:
    # A form of a foreign page cannot send this type, so no foreign page can post here.
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")
    body = bytearray()
    try:
        async with asyncio.timeout(10):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST_BODY:
                    message = f"This is longer than {LARGEST_BODY:,} bytes. Shorten it."
                    raise Problem(413, "BODY_TOO_LARGE", message)
    except TimeoutError:
        raise Problem(408, "BODY_TIMEOUT", "The text did not arrive in time.") from None
    except ClientDisconnect:
        raise Problem(400, "BODY_INCOMPLETE", "The body broke off.") from None
    try:
        data = json.loads(body)
    except ValueError:
        raise Problem(400, "INVALID_JSON", "The body is not valid JSON.") from None
    if not isinstance(data, dict):
        raise Problem(400, "INVALID_JSON", "The body is JSON, but no object.")
    return data


def _event(name: str, data: object) -> bytes:
    # JSON escapes line ends, so that the data of an event is one line.
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def _send_problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)  # it is registered for these
    return JSONResponse(problem.members, problem.status, headers=SAFETY)


async def _send_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # it is registered for these
    phrase = HTTPStatus(error.status_code).phrase
    members = {"error": f"{phrase}.", "code": phrase.upper().replace(" ", "_")}
    return JSONResponse(members, error.status_code, headers={**SAFETY, **(error.headers or {})})


app = create_app(key=os.environ.get("SEAL_KEY", ""))
