"""What surrounds a message: keys, JSON, labels, responders, and the schema it has to keep."""

import gzip
import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_regen.emulator import values
from pytest_regen.emulator.faults import error_response
from pytest_regen.emulator.messages import derived_id
from pytest_regen.strict_json import strict_loads
from pytest_regen.turns.wire import EMULATOR_NAME

SECRET_HEADERS = {"authorization", "x-api-key", "cookie", "proxy-authorization"}


def key_of(headers: Mapping[str, str]) -> str:
    """Return the credential of a request; empty if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def json_body(data: bytes) -> dict[str, Any] | None:
    """Return the body of a request; ``None`` where it has none.

    Raises:
        ApiError: it is not a JSON object.
    """
    if not data:
        return None
    try:
        # The real API accepts duplicate keys.
        body = strict_loads(data.decode(), unique_keys=False)
    except ValueError as error:
        raise values.ApiError(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise values.ApiError("Input should be a valid dictionary")
    return body


def json_response(value: object) -> values.HttpResponse:
    """Return a response whose body is ``value`` as JSON."""
    return values.HttpResponse(200, {"content-type": "application/json"}, values.dump(value))


def labelled(
    response: values.HttpResponse, request_id: str, accepted: str = ""
) -> values.HttpResponse:
    """Return a response that says who speaks, packed where ``accept-encoding`` takes that."""
    headers = {"server": EMULATOR_NAME, "request-id": request_id, **response.headers}
    body = response.body
    if response.parts is None:
        headers["vary"] = "Accept-Encoding"
    if body and "gzip" in accepted.lower():
        headers["content-encoding"] = "gzip"
        # Without the time, because recordings of the same answer are the same bytes.
        body = gzip.compress(body, mtime=0)
    return replace(response, headers=headers, body=body)


def refusal(error: Exception) -> values.HttpResponse:
    """Return the response to bytes that are no request."""
    if isinstance(error, TimeoutError):
        error = values.ApiError("the request was not complete in time", 408)
    elif not isinstance(error, values.ApiError):
        # Of h11, because it tells what is too long from what is wrong.
        status = getattr(error, "error_status_hint", 400)
        error = values.ApiError(f"the request is not HTTP/1.1: {error}", status)
    request_id = derived_id("req_emu", str(error))
    return labelled(error_response(error.fault, request_id), request_id)


def call_responder(
    responder: values.Responder, body: dict[str, Any], headers: Mapping[str, str]
) -> values.ResponderResult:
    """Call ``responder`` with the headers if it takes them, without if it does not."""
    # By its signature, because a TypeError of a call could come out of the responder itself.
    parameters = inspect.signature(responder).parameters.values()
    takes_headers = any(
        p.name == "headers" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters
    )
    answer: object = responder(body, headers=headers) if takes_headers else responder(body)
    if not isinstance(answer, str | values.EmulatedReply | values.Fault):
        kind = type(answer).__name__
        raise TypeError(f"a responder returns str, EmulatedReply or Fault, not {kind}")
    return answer
