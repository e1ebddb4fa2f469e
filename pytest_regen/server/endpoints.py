"""The endpoints for programs: a turn as JSON or as events, and the search for places."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from pytest_regen.server import streaming
from pytest_regen.server.bodies import JSON, read_body, read_json, require_media_type
from pytest_regen.server.flow import Answered, Flow, Taken
from pytest_regen.server.gazetteer import Gazetteer, Level
from pytest_regen.server.guarding import request_id_of, unexpected
from pytest_regen.server.logs import log_failure
from pytest_regen.server.problems import Problem

__all__ = ["Endpoints", "problem_response"]

_LEVELS: Mapping[str, Level | None] = {"any": None, **{name: name for name in get_args(Level)}}
_SHORTEST_QUERY, _LONGEST_QUERY, _MOST_PLACES = 2, 100, 10

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
            answered = await self._flow.answer(taken)
        except Problem as problem:
            return problem_response(request, problem)
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
        told = streaming.told_with_heartbeats(
            opening,
            self._ending(taken, request_id),
            every=self._flow.settings.heartbeat_seconds,
        )
        return StreamingResponse(
            told,
            media_type="text/event-stream",
            headers=streaming.HEADERS | _headers(taken),
        )

    async def places(self, request: Request) -> Response:
        """Search the gazetteer."""
        query = request.query_params.get("q", "").strip()
        level = request.query_params.get("level", request.query_params.get("scope", "city"))
        limit = request.query_params.get("limit", "8")
        try:
            _check_search(query, level, limit)
        except Problem as problem:
            return problem_response(request, problem)
        found = self._gazetteer.search(query, level=_LEVELS[level], limit=int(limit))
        return JSONResponse(
            {"places": [place.as_json() for place in found]},
            headers={"cache-control": "public, max-age=3600"},
        )

    async def _take(self, request: Request) -> Taken:
        require_media_type(request, JSON)
        settings = self._flow.settings
        body = await read_body(
            request, limit=settings.max_body_bytes, seconds=settings.body_seconds
        )
        return await self._flow.take(read_json(body), self._client_of(request))

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
