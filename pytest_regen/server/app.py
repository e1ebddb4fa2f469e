"""The application: which path leads where."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pytest_regen.context.sealing import Sealer, SealPolicy
from pytest_regen.errors import UsageError
from pytest_regen.server.endpoints import Endpoints, problem_response
from pytest_regen.server.flow import Flow
from pytest_regen.server.gazetteer import Gazetteer, well_known
from pytest_regen.server.guarding import Guard, wants_page
from pytest_regen.server.logs import logger
from pytest_regen.server.page.layout import error_page
from pytest_regen.server.page.routes import Page
from pytest_regen.server.problems import Problem
from pytest_regen.server.settings import Agent, Screen, ServerSettings, peer_of

__all__ = ["create_app"]

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
        seal: a ``Sealer``, so that nobody can send back questions and inferences that the agent
            never had. Without one every context is believed, and the log warns of it; ``"off"``
            goes without and without a warning.
        settings: sizes, times, quotas, and the names under which the server is reached.
        screen: decides whether a model may see the texts of a request; where it fails, none may.
        client_of: returns whom a quota counts; by default the address of the peer.
        gazetteer: the places that can be found; by default the one of this package.
        clock: for quotas; returns seconds since the epoch.

    Raises:
        UsageError: ``seal`` is none of these.
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
    page = Page(flow, client_of=client_of, gazetteer=places)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await flow.close()

    return Starlette(
        routes=[*_routes(api, page), *map(_asset, _ASSETS, _ASSETS.values())],
        middleware=[Middleware(Guard, hosts=settings.hosts)],
        exception_handlers={HTTPException: _no_route},
        lifespan=lifespan,
    )


def _routes(api: Endpoints, page: Page) -> list[Route]:
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
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these
    status = HTTPStatus(error.status_code)
    problem = Problem(status, status.name, f"{status.phrase}.", headers=error.headers)
    if wants_page(request.scope):
        return HTMLResponse(
            error_page(problem.status, ""), problem.status.value, headers=problem.headers
        )
    return problem_response(request, problem)
