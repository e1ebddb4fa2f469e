"""Around every request: its id, who may be addressed from where, headers that keep a page safe."""

import re
import secrets
from collections.abc import Callable, Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_regen.server.logs import log_failure
from pytest_regen.server.page.layout import error_page
from pytest_regen.server.problems import Problem

__all__ = ["Guard", "request_id_of", "unexpected", "wants_page"]

_KEY = "regen.request_id"
_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_SAFETY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def request_id_of(request: Request) -> str:
    """Return the id under which a request is logged and answered."""
    return str(request.scope.get(_KEY, ""))


def unexpected() -> Problem:
    """Return what is answered when the server itself is at fault."""
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "INTERNAL", "Something went wrong on this side."
    )


def wants_page(scope: Scope) -> bool:
    """Return whether a person asks, with a browser, and not a program."""
    accepted = Headers(scope=scope).get("accept", "")
    return "text/html" in accepted.lower() and not scope["path"].startswith("/api/")


def _answer(scope: Scope, problem: Problem, request_id: str) -> Response:
    status, headers = problem.status.value, problem.headers
    if wants_page(scope):
        page = error_page(problem.status, problem.message, request_id=request_id)
        return HTMLResponse(page, status, headers=headers)
    return JSONResponse(problem.as_json(request_id), status, headers=headers)


class Guard:
    """Wraps an application.

    Args:
        app: what is wrapped.
        hosts: names by which it may be addressed, `*` for any. Others are refused, so that a
            foreign page cannot reach a server on loopback under a name of its own.
        new_id: makes the id of a request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        new_id: Callable[[], str] = lambda: f"req_{secrets.token_hex(8)}",
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = scope[_KEY] = given if _ID.fullmatch(given) else self._new_id()
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._add_headers(message, request_id)
            await send(message)

        try:
            self._check(scope, headers)
            await self._app(scope, receive, send_guarded)
        except Exception as error:
            if started:
                raise
            problem = error if isinstance(error, Problem) else unexpected()
            if problem is not error:
                log_failure(request_id, error)
            await _answer(scope, problem, request_id)(scope, receive, send_guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
        if "*" not in self._hosts and name not in self._hosts:
            raise Problem(
                HTTPStatus.FORBIDDEN, "FORBIDDEN_HOST", "This server is not reached by that name."
            )
        if scope["method"] not in {"GET", "HEAD"} and _is_foreign(headers, host):
            raise Problem(
                HTTPStatus.FORBIDDEN, "CROSS_SITE", "Another site may not post to this server."
            )

    def _add_headers(self, message: Message, request_id: str) -> None:
        headers = MutableHeaders(scope=message)
        headers["x-request-id"] = request_id
        headers.setdefault("cache-control", "no-store")
        for name, value in _SAFETY.items():
            headers[name] = value


def _is_foreign(headers: Headers, host: str) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != host
