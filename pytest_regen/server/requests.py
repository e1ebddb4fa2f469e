"""Reading what a client sends: media type, size and time are bounded before anything is parsed."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_regen.server.page.layout import error_page
from pytest_regen.server.problems import Problem, log_failure
from pytest_regen.strict_json import HalfCharacterError, strict_loads

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 200
_LONGEST_LENGTH = 20
"""Digits of an announced length that are looked at."""


def require_media_type(request: Request, wanted: str) -> None:
    """Refuse a body of another type, in another character set, or compressed.

    Raises:
        Problem: 415.
    """
    media_type, *parameters = request.headers.get("content-type", "").split(";")
    charsets = [p.partition("=")[2] for p in parameters if p.strip().lower().startswith("charset")]
    plain = request.headers.get("content-encoding", "identity").strip().lower() == "identity"
    utf8 = all(charset.strip(" \"'").lower() in {"utf-8", "utf8"} for charset in charsets)
    if media_type.strip().lower() != wanted or not utf8 or not plain:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            f"Send the body as {wanted}, in UTF-8, not compressed.",
        )


async def read_body(request: Request, *, limit: int, seconds: float) -> bytes:
    """Return the body; gives up as soon as it is too long, whatever length was announced.

    Raises:
        Problem: 413 if it is longer than ``limit`` bytes; 408 if it takes longer than ``seconds``.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:_LONGEST_LENGTH]) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read_limited(request, limit)
    except TimeoutError:
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT, "BODY_TIMEOUT", "The body did not arrive in time."
        ) from None


async def _read_limited(request: Request, limit: int) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
    except ClientDisconnect:
        raise Problem(HTTPStatus.BAD_REQUEST, "BODY_INCOMPLETE", "The body broke off.") from None
    return bytes(body)


def _too_large(limit: int) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "BODY_TOO_LARGE",
        f"The body is longer than {limit:,} bytes.",
        details={"limit": limit},
    )


def read_json(body: bytes) -> dict[str, object]:
    """Return the JSON object that a body holds.

    Raises:
        Problem: 400 if it is no JSON object, repeats a name, or holds half a character.
    """
    try:
        found = strict_loads(body.decode("utf-8"), half_characters=False)
    except HalfCharacterError:
        raise _no_json("The body holds half of a surrogate pair, which is no text.") from None
    except ValueError:
        raise _no_json("The body is not valid JSON.") from None
    if not isinstance(found, dict):
        raise _no_json("The body is JSON, but no object.")
    return found


def _no_json(message: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, "INVALID_JSON", message)


def read_form(body: bytes) -> dict[str, list[str]]:
    """Return the fields of a form, each with its values in order.

    Raises:
        Problem: 400 if it is no form.
    """
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise Problem(
            HTTPStatus.BAD_REQUEST, "INVALID_FORM", "The form could not be read."
        ) from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        # A browser sends line ends as CRLF; the text that was typed had LF.
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return fields


HEADERS = {
    "cache-control": "no-cache, no-store",
    "x-accel-buffering": "no",  # or a proxy would hold events back until its buffer is full
}
_HEARTBEAT = b": waiting for the model\n\n"


def frame(event: str, data: object) -> bytes:
    """Return one event. JSON escapes line ends, so that its data is always one line."""
    return f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


async def with_heartbeats(
    opening: bytes, ending: Awaitable[bytes], *, every: float
) -> AsyncIterator[bytes]:
    """Yield the opening, a comment every so many seconds while waiting, and the ending.

    A client that leaves ends the waiting: the awaited work is cancelled.
    """
    yield opening
    task = asyncio.ensure_future(ending)
    try:
        while not (await asyncio.wait({task}, timeout=every))[0]:
            yield _HEARTBEAT
        yield task.result()
    finally:
        task.cancel()


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


class RequestGuard:
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
