"""Reading what a client sends: media type, size and time are bounded before anything is parsed."""

import asyncio
import json
import re
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from pytest_regen.server.problems import Problem

__all__ = ["FORM", "JSON", "read_body", "read_form", "read_json", "require_media_type"]

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 200
_LONGEST_LENGTH = 20
"""Digits of an announced length that are looked at."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


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
    """Return the body; gives up as soon as it is too long, whatever its length was said to be.

    Raises:
        Problem: 413 if it is longer than ``limit`` bytes; 408 if it takes longer than ``seconds``.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:_LONGEST_LENGTH]) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _bounded(request, limit)
    except TimeoutError:
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT, "BODY_TIMEOUT", "The body did not arrive in time."
        ) from None


async def _bounded(request: Request, limit: int) -> bytes:
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
        found = json.loads(
            body.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        raise _no_json("The body is not valid JSON.") from None
    if not isinstance(found, dict):
        raise _no_json("The body is JSON, but no object.")
    if _SURROGATE.search(body) and not _is_text(found):
        raise _no_json("The body holds half of a surrogate pair, which is no text.")
    return found


def _no_json(message: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, "INVALID_JSON", message)


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is repeated")
    return members


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


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
