"""The application: which path leads where."""

import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files
from typing import get_args

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pytest_regen.context.sealing import Sealer, SealPolicy
from pytest_regen.errors import UsageError
from pytest_regen.server import requests
from pytest_regen.server.flow import (
    CLIENT_GONE,
    AcceptedRequest,
    ClientGoneError,
    Flow,
    TurnOutcome,
    unless_gone,
)
from pytest_regen.server.gazetteer import Gazetteer, Level, well_known
from pytest_regen.server.page.layout import error_page
from pytest_regen.server.page.routes import PageRoutes
from pytest_regen.server.problems import Problem, log_failure, logger
from pytest_regen.server.requests import (
    FORM,
    JSON,
    RequestGuard,
    read_body,
    read_form,
    read_json,
    request_id_of,
    require_media_type,
    unexpected,
    wants_page,
)
from pytest_regen.server.settings import Agent, Screen, ServerSettings, peer_of

_LEVELS: Mapping[str, Level | None] = {"any": None, **{name: name for name in get_args(Level)}}
_SHORTEST_QUERY, _LONGEST_QUERY, _MOST_PLACES = 2, 100, 10
_LONGEST_SEARCH = 4_096
"""Bytes of a search that is posted."""

RouteFunction = Callable[[Request], Awaitable[Response]]


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
            accepted = await self._accept(request)
            outcome = await unless_gone(request, self._flow.answer(accepted))
        except Problem as problem:
            return problem_response(request, problem)
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)
        return JSONResponse(outcome.as_json(), headers=_headers(accepted))

    async def stream(self, request: Request) -> Response:
        """Take a turn and answer with events; a wrong request gets its problem as JSON first."""
        try:
            accepted = await self._accept(request)
        except Problem as problem:
            return problem_response(request, problem)
        request_id = request_id_of(request)
        opening = requests.frame(
            "started", {"interactionId": accepted.conversation, "request_id": request_id}
        )
        ending = self._ending(accepted, request_id)

        def close_unasked() -> None:
            if inspect.getcoroutinestate(ending) == inspect.CORO_CREATED:
                ending.close()

        return _EventStream(
            requests.with_heartbeats(opening, ending, every=self._flow.settings.heartbeat_seconds),
            headers=requests.HEADERS | _headers(accepted),
            at_end=close_unasked,
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

    async def _accept(self, request: Request) -> AcceptedRequest:
        require_media_type(request, JSON)
        settings = self._flow.settings
        body = await read_body(
            request, limit=settings.max_body_bytes, seconds=settings.body_seconds
        )
        return await self._flow.accept(
            read_json(body), self._client_of(request), request_id=request_id_of(request)
        )

    async def _ending(self, accepted: AcceptedRequest, request_id: str) -> bytes:
        try:
            outcome: TurnOutcome = await self._flow.answer(accepted)
        except Problem as problem:
            return requests.frame(
                "error", problem.as_json(request_id) | {"status": problem.status.value}
            )
        except Exception as error:  # noqa: BLE001 - the answer does not repeat it
            log_failure(request_id, error)
            return requests.frame("error", unexpected().as_json(request_id) | {"status": 500})
        return requests.frame(outcome.event, {"data": outcome.as_json()})


class _EventStream(StreamingResponse):
    """A stream of events that is closed properly even if the client left before it began."""

    def __init__(
        self,
        events: AsyncIterator[bytes],
        *,
        headers: Mapping[str, str],
        at_end: Callable[[], None],
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
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


def _headers(accepted: AcceptedRequest) -> dict[str, str]:
    quota = accepted.quota.headers if accepted.quota else {}
    return quota | ({"deprecation": "true"} if accepted.is_legacy else {})


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


_ASSETS = {
    "icon.svg": "image/svg+xml",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "picker.js": "text/javascript",
}
_SETTINGS = ServerSettings()


def create_app(
    agent: Agent,
    *,
    seal: SealPolicy | None = None,
    settings: ServerSettings = _SETTINGS,
    screen: Screen | None = None,
    client_of: Callable[[Request], str] = peer_of,
    gazetteer: Gazetteer | None = None,
    clock: Callable[[], float] = time.time,
) -> Starlette:
    """Return an ASGI application: the endpoint of a clarifying agent, and a page that uses it.

    Args:
        agent: who answers; a ``ClarifyingAgent``, or whatever has its ``turn``.
        seal: a ``Sealer``, so that no client can send back questions and inferences that the agent
            never had. Without one every context is believed, and the log warns of it; ``"off"``
            goes without and without a warning.
        settings: sizes, times, quotas, and the names under which the server is reached.
        screen: decides whether a model may see the texts of a request; where it fails, none may.
        client_of: returns whom a quota counts; by default the address of the peer.
        gazetteer: the places that can be found; by default the one of this package.
        clock: for quotas; returns seconds since the epoch.

    Raises:
        UsageError: ``seal`` is not one of these values.
    """
    if seal is None:
        logger.warning(
            "unsealed: there is no key, so that questions and inferences that come back are "
            'believed, whoever wrote them; pass seal=Sealer(...), or seal="off" to say so'
        )
    elif not isinstance(seal, Sealer) and seal != "off":
        raise UsageError(
            f"{seal!r} is no seal policy",
            why="without a key, questions and inferences could be anybody's",
            hint='pass Sealer({"2026-11": secrets.token_bytes(32)}), or "off" to go without seals',
        )
    places = gazetteer or well_known()
    flow = Flow(agent, seal=seal or "off", settings=settings, screen=screen, clock=clock)
    api = Endpoints(flow, client_of=client_of, gazetteer=places)
    page = PageRoutes(flow, client_of=client_of, gazetteer=places)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await flow.close()

    return Starlette(
        routes=[*_routes(api, page), *map(_asset, _ASSETS, _ASSETS.values())],
        middleware=[Middleware(RequestGuard, hosts=settings.hosts)],
        exception_handlers={HTTPException: _no_route},
        lifespan=lifespan,
    )


def _routes(api: Endpoints, page: PageRoutes) -> list[Route]:
    return [
        Route("/api/agents/generate-subject", api.generate, methods=["POST"]),
        Route("/api/agents/stream-subject", api.stream, methods=["POST"]),
        Route("/api/location/search", api.places, methods=["GET", "POST"]),
        Route("/", page.start, methods=["GET"]),
        Route("/subject", page.describe, methods=["POST"]),
        Route("/subject/answers", page.answer, methods=["POST"]),
        Route("/subject/again", page.again, methods=["POST"]),
        Route("/subject/again", page.back, methods=["GET"]),
        Route("/subject", page.back, methods=["GET"]),
        Route("/subject/answers", page.back, methods=["GET"]),
    ]


def _asset(name: str, media_type: str) -> Route:
    content = files("pytest_regen.server").joinpath("static", name).read_bytes()

    async def send(request: Request) -> Response:  # noqa: ARG001 - the signature of a route
        return Response(
            content, media_type=media_type, headers={"cache-control": "public, max-age=300"}
        )

    return Route(f"/static/{name}", send, methods=["GET"])


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # it is registered for these
    status = HTTPStatus(error.status_code)
    problem = Problem(status, status.name, f"{status.phrase}.", headers=error.headers)
    if wants_page(request.scope):
        return HTMLResponse(
            error_page(problem.status, ""), problem.status.value, headers=problem.headers
        )
    return problem_response(request, problem)
