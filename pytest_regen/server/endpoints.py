"""The endpoints for programs: a turn as JSON or as events, and the search for places."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pytest_regen.server import streaming
from pytest_regen.server.bodies import (
    FORM,
    JSON,
    read_body,
    read_form,
    read_json,
    require_media_type,
)
from pytest_regen.server.calling import CLIENT_GONE, ClientGoneError, unless_gone
from pytest_regen.server.flow import Answered, Flow, Taken
from pytest_regen.server.gazetteer import Gazetteer, Level
from pytest_regen.server.guarding import request_id_of, unexpected
from pytest_regen.server.logs import log_failure
from pytest_regen.server.problems import Problem

__all__ = ["Endpoints", "problem_response"]

_LEVELS: Mapping[str, Level | None] = {"any": None, **{name: name for name in get_args(Level)}}
_SHORTEST_QUERY, _LONGEST_QUERY, _MOST_PLACES = 2, 100, 10
_LONGEST_SEARCH = 4_096
"""Bytes of a search that is posted."""

Endpoint = Callable[[Request], Awaitable[Response]]


def problem_response(request: Request, problem: Problem) -> Response:
    """Return a problem as JSON."""
    return JSONResponse(
        problem.as_json(request_id_of(request)), problem.status.value, headers=problem.headers
    )


class Endpoints:
    """Answers programs.

    Args:
        flow: takes the turns.
        client_of: says who asks.
        gazetteer: the places that can be found.
    """

    def __init__(
        self, flow: Flow, *, client_of: Callable[[Request], str], gazetteer: Gazetteer
    ) -> None:
        self._flow = flow
        self._client_of = client_of
        self._gazetteer = gazetteer

    async def generate(self, request: Request) -> Response:
        """Take a turn; answers JSON, or events to whom accepts only these."""
        if _wants_events(request):
            return await self.stream(request)
        try:
            taken = await self._take(request)
            answered = await unless_gone(request, self._flow.answer(taken))
        except Problem as problem:
            return problem_response(request, problem)
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)
        return JSONResponse(answered.as_json(), headers=_headers(taken))

    async def stream(self, request: Request) -> Response:
        """Take a turn; answers events. What is wrong with a request is told before, as JSON."""
        try:
            taken = await self._take(request)
        except Problem as problem:
            return problem_response(request, problem)
        request_id = request_id_of(request)
        opening = streaming.frame(
            "started", {"interactionId": taken.conversation, "request_id": request_id}
        )
        ending = self._ending(taken, request_id)

        def release_unasked() -> None:
            if inspect.getcoroutinestate(ending) == inspect.CORO_CREATED:
                ending.close()
                self._flow.release(taken)

        return _Told(
            streaming.told_with_heartbeats(
                opening, ending, every=self._flow.settings.heartbeat_seconds
            ),
            headers=streaming.HEADERS | _headers(taken),
            at_end=release_unasked,
        )

    async def places(self, request: Request) -> Response:
        """Search the gazetteer: by GET, or by POST, which keeps the text out of addresses."""
        try:
            given = await self._search(request)
            query = given.get("q", "").strip()
            level = given.get("level", given.get("scope", "city"))
            limit = given.get("limit", "8")
            _check_search(query, level, limit)
        except Problem as problem:
            return problem_response(request, problem)
        found = self._gazetteer.search(query, level=_LEVELS[level], limit=int(limit))
        return JSONResponse(
            {"places": [place.as_json() for place in found]},
            headers={"cache-control": "private, max-age=3600"},
        )

    async def _search(self, request: Request) -> Mapping[str, str]:
        if request.method != "POST":
            return request.query_params
        require_media_type(request, FORM)
        settings = self._flow.settings
        body = await read_body(request, limit=_LONGEST_SEARCH, seconds=settings.body_seconds)
        return {name: values[-1] for name, values in read_form(body).items()}

    async def _take(self, request: Request) -> Taken:
        require_media_type(request, JSON)
        settings = self._flow.settings
        body = await read_body(
            request, limit=settings.max_body_bytes, seconds=settings.body_seconds
        )
        return await self._flow.take(
            read_json(body), self._client_of(request), request_id=request_id_of(request)
        )

    async def _ending(self, taken: Taken, request_id: str) -> bytes:
        try:
            answered: Answered = await self._flow.answer(taken)
        except Problem as problem:
            return streaming.frame(
                "error", problem.as_json(request_id) | {"status": problem.status.value}
            )
        except Exception as error:  # noqa: BLE001 - told as an answer, without its words
            log_failure(request_id, error)
            return streaming.frame("error", unexpected().as_json(request_id) | {"status": 500})
        return streaming.frame(answered.event, {"data": answered.as_json()})


class _Told(StreamingResponse):
    """A stream of events that has an end, also where nobody stayed to hear its beginning."""

    def __init__(
        self,
        told: AsyncIterator[bytes],
        *,
        headers: Mapping[str, str],
        at_end: Callable[[], None],
    ) -> None:
        super().__init__(told, media_type="text/event-stream", headers=headers)
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._at_end()


def _wants_events(request: Request) -> bool:
    accepted = request.headers.get("accept", "*/*").lower()
    return "text/event-stream" in accepted and "json" not in accepted and "*/*" not in accepted


def _headers(taken: Taken) -> dict[str, str]:
    standing = taken.standing.headers if taken.standing else {}
    return standing | ({"deprecation": "true"} if taken.is_legacy else {})


def _check_search(query: str, level: str, limit: str) -> None:
    wrong = None
    if not _SHORTEST_QUERY <= len(query) <= _LONGEST_QUERY:
        wrong = "q", f"q takes {_SHORTEST_QUERY} to {_LONGEST_QUERY} characters."
    elif level not in _LEVELS:
        wrong = "level", f"level is one of {', '.join(_LEVELS)}."
    elif not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:4]) <= _MOST_PLACES):
        wrong = "limit", f"limit is a number from 1 to {_MOST_PLACES}."
    if wrong:
        raise Problem(HTTPStatus.BAD_REQUEST, "INVALID_SEARCH", wrong[1], where=wrong[0])
