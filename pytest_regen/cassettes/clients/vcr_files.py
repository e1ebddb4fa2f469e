"""vcrpy's reading and writing of cassettes: limits, line numbers, atomic, scrubbed."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.request import Request
from vcr.serialize import deserialize, serialize
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes.clients.vcr_patches import comparable_bytes, exchange_of
from pytest_regen.cassettes.files import parser
from pytest_regen.cassettes.files.bodies import decode_body, unpack
from pytest_regen.cassettes.files.format import wire_body, with_current_layout
from pytest_regen.cassettes.files.reader import content_of
from pytest_regen.cassettes.files.storage import replace_cassette, unwritable
from pytest_regen.cassettes.files.writer import LARGE_TEXT, check_text
from pytest_regen.cassettes.headers import public_headers
from pytest_regen.cassettes.interactions import Interaction, by_lower_name, text_of_header
from pytest_regen.cassettes.recording import ChangedValue, changed_values, refuse_hidden
from pytest_regen.cassettes.scrubbing import clean_body, scrub_literal
from pytest_regen.errors import CassetteError, CassetteUnreadableError


class Persister:
    """A persister for vcrpy that loads several cassettes and writes one."""

    def __init__(self, extra: Iterable[Path], *, rewrites: bool) -> None:
        self._extra = tuple(extra)
        self._rewrites = rewrites
        self.changed: list[ChangedValue] = []
        """What the file that was written holds otherwise than it was sent or answered."""

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:
        """Return the requests and answers of all files.

        Raises:
            CassetteNotFoundError: there is no cassette, which vcrpy handles.
            CassetteUnreadableError: there is a file, but it is not a cassette.
        """
        first = Path(cassette_path)
        # Further cassettes are read by every mode, because nothing ever writes them.
        files = [] if self._rewrites else [_read(first, serializer)]
        others = (path for path in dict.fromkeys(self._extra) if self._rewrites or path != first)
        files += [_read(path, serializer) for path in others]
        existing = [loaded for loaded in files if loaded is not None]
        if not existing:
            raise CassetteNotFoundError
        requests = [request for loaded in existing for request in loaded[0]]
        responses = [response for loaded in existing for response in loaded[1]]
        return requests, responses, *existing[0][2:]

    def save_cassette(self, cassette_path: str, cassette_dict: Any, serializer: Any) -> None:
        """Write the cassette without credentials, in one step.

        Raises:
            CassetteError: it cannot be serialized or written, or holds a credential.
        """
        path = Path(cassette_path)
        clean = {
            **cassette_dict,
            "requests": [scrub_request(request) for request in cassette_dict["requests"]],
            "responses": [_scrub_response(answer) for answer in cassette_dict["responses"]],
        }
        text = str(serialize(clean, serializer))
        # Scrubbing has searched every value; a second look at a large one would take too long.
        if len(text) <= LARGE_TEXT:
            check_text(path, text)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_cassette(path, text)
        except OSError as error:
            raise unwritable(path, error) from None
        # What a suite's own serializer or hooks make of an exchange may be none to us.
        with suppress(CassetteError, LookupError, TypeError, ValueError, AttributeError):
            live = _exchanges(cassette_dict["requests"], cassette_dict["responses"])
            written = _exchanges(*_read(path, serializer)[:2])
            for before, after in zip(live, written, strict=True):
                self.changed += changed_values(before, after)


def _read(path: Path, serializer: Any) -> Any:
    """Return the requests and answers of a cassette; ``None`` if there is no file.

    Raises:
        CassetteUnreadableError: the file is not a cassette.
    """
    data = content_of(path)
    if data is None:
        return None
    text = parser.text_of(path, data)
    del data  # because the parser needs several times as much
    try:
        strict = SimpleNamespace(deserialize=partial(_deserialize, path, serializer))
        return deserialize(text, serializer=strict)
    except CassetteUnreadableError:
        raise
    except Exception as error:  # whatever a suite's own serializer raises
        raise parser.unreadable(path, f"{type(error).__name__}: {error}") from error


def _exchanges(requests: Iterable[Any], responses: Iterable[Any]) -> Iterator[Interaction]:
    for request, response in zip(requests, responses, strict=True):
        yield exchange_of(request, response, comparable_bytes(request.body))


def _deserialize(path: Path, serializer: Any, text: str) -> Any:
    """Return the data of a cassette as a serializer does, and refuse what vcrpy would fail on."""
    if serializer not in (jsonserializer, yamlserializer):
        return serializer.deserialize(text)
    data, lines = parser.parse_text(path, text)
    for line, item in parser.interactions_with_lines(path, text, data, lines):
        try:
            Request._from_dict(item["request"])
            response = item["response"] = with_current_layout(item["response"])
            _ = response["status"]["code"], response["headers"], response["body"]
            if item.get("layout") is not None:
                # With the bytes and the length that the wire had before this package spread them.
                text = response["body"]["string"]
                body = wire_body(text.encode("utf-8", "surrogatepass"), item)
                response["body"]["string"] = body.decode("utf-8", "surrogatepass")
                if "content-length" in response["headers"]:
                    response["headers"]["content-length"] = [str(len(body))]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise parser.broken(path, error, line) from None
    return data


def scrub_request(request: Any) -> Any:
    """Return a request of vcrpy as a cassette holds it."""
    body = request._body
    if isinstance(body, list) and all(isinstance(piece, bytes) for piece in body):
        body = b"".join(body)
    if isinstance(body, bytes):
        plain = unpack(body)
        clean = clean_body(plain)
        body = body if clean == plain else clean
    # Without who asks, because with a placeholder there it is no address.
    user, at, _ = urlsplit(request.uri).netloc.rpartition("@")
    uri = scrub_literal(request.uri.replace(user + at, "", 1), ())
    # A new request, because vcrpy would hand the file behind a body to the serializer.
    return type(request)(request.method, uri, body, _keep_public(request.headers))


def _scrub_response(response: Mapping[str, Any]) -> dict[str, Any]:
    headers = _keep_public(response.get("headers") or {})
    body = (response.get("body") or {}).get("string")
    if not isinstance(body, bytes):
        return {**response, "headers": headers}
    lower = by_lower_name(headers)
    plain, _ = decode_body(body, lower)
    if "text/event-stream" in ",".join(lower.get("content-type", ())):
        refuse_hidden(plain)
    clean = clean_body(plain)
    if clean == plain:
        return {**response, "headers": headers, "body": {"string": body}}
    unpacked = {
        n: v for n, v in headers.items() if n.lower() not in {"content-encoding", "content-length"}
    }
    return {**response, "headers": unpacked, "body": {"string": clean}}


def _keep_public(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers without credentials, whatever the suite filters itself."""
    texts = {
        name: tuple(map(text_of_header, value if isinstance(value, list | tuple) else (value,)))
        for name, value in headers.items()
    }
    return {
        name: list(values) if isinstance(headers[name], list | tuple) else values[0]
        for name, values in public_headers(texts).items()
    }


def why_unreadable_for_vcrpy(text: str) -> str:
    """Return why vcrpy itself cannot read a cassette in YAML; empty if it can.

    In the wild: pydantic-ai's own serializer, whose files have ``parsed_body``.
    """
    try:
        _, responses, *_ = deserialize(text, yamlserializer)
        _ = [response["body"]["string"] for response in responses]
    except Exception as error:  # noqa: BLE001 - because vcrpy raises whatever a file makes it
        return f"{type(error).__name__}: {error}"
    return ""
