"""vcrpy's reading and writing of cassettes: limits, line numbers, atomic, scrubbed."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.request import Request
from vcr.serialize import deserialize, serialize
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes.clients.vcr_patches import comparable_bytes, exchange_of
from pytest_regen.cassettes.files.bodies import UndecodableBodyError, decode_body, unpack
from pytest_regen.cassettes.files.format import wire_body, with_current_layout
from pytest_regen.cassettes.files.parser import (
    guarded_loader,
    interactions_with_lines,
    parse_json,
    parse_yaml,
    refuse_cut,
    text_of,
    unreadable,
)
from pytest_regen.cassettes.files.reader import content_of
from pytest_regen.cassettes.files.storage import replace_cassette, unwritable
from pytest_regen.cassettes.files.writer import LARGE_BODY, check_text
from pytest_regen.cassettes.headers import public_headers
from pytest_regen.cassettes.interactions import by_lower_name, text_of_header
from pytest_regen.cassettes.recording import ChangedValue, WireExchange, changed_values, clean_body
from pytest_regen.cassettes.scrubbing import credentials_across_events, scrub_literal
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
        try:
            clean = _scrub_cassette(cassette_dict)
            pairs = list(zip(clean["requests"], clean["responses"], strict=True))
            # Scrubbing has searched every value; the second look is for bodies of ordinary size.
            small = [pair for pair in pairs if _largest_body(*pair) <= LARGE_BODY]
            requests, responses = zip(*small, strict=True) if small else ((), ())
            text = searched = str(serialize(clean, serializer))
            if len(small) < len(pairs):
                reduced = {**clean, "requests": requests, "responses": responses}
                searched = str(serialize(reduced, serializer))
        except UndecodableBodyError as error:
            raise CassetteError(
                f"{path.name}: the cassette is not written: one of its bodies cannot be searched "
                "for credentials, or cleaned of one",
                why=str(error),
                hint="keep the credential out of the conversation, or install the decoder",
            ) from error
        except Exception as error:
            raise CassetteError(
                f"{path}: the cassette cannot be written",
                why=f"its serializer failed: {error}",
                hint="choose another serializer, or keep such bodies out (before_record_response)",
            ) from error
        check_text(path, searched)
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


class RewritePersister:
    """A suite's own persister that finds no old cassette, for the mode that rewrites."""

    def __init__(self, persister: Any) -> None:
        self._persister = persister

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:
        """Report that there is no cassette."""
        raise CassetteNotFoundError

    def save_cassette(self, *args: Any, **options: Any) -> None:
        """Write as the suite does."""
        self._persister.save_cassette(*args, **options)


class _StrictSerializer:
    """Reads as a serializer of vcrpy does, but with limits, and with lines in its errors."""

    __slots__ = ("_path", "_serializer")

    def __init__(self, path: Path, serializer: Any) -> None:
        self._path = path
        self._serializer = serializer

    def deserialize(self, text: str) -> Any:
        """Return the data of a cassette, if vcrpy will not fail on it later."""
        if self._serializer is jsonserializer:
            return _check_interactions(self._path, *parse_json(text, self._path))
        if self._serializer is not yamlserializer:
            return self._serializer.deserialize(text)
        data, lines = parse_yaml(text, self._path, loader=guarded_loader(loader_of_tags()))
        checked = _check_interactions(self._path, data, lines)
        refuse_cut(checked, text, self._path)
        return checked


def _read(path: Path, serializer: Any) -> Any:
    """Return the requests and answers of a cassette; ``None`` if there is no file.

    Raises:
        CassetteUnreadableError: the file is not a cassette.
    """
    data = content_of(path)[0]
    if data is None:
        return None
    text = text_of(path, data)
    del data  # because the parser needs several times as much
    try:
        return deserialize(text, serializer=_StrictSerializer(path, serializer))
    except CassetteUnreadableError:
        raise
    except Exception as error:  # whatever a suite's own serializer raises
        raise unreadable(path, f"{type(error).__name__}: {error}") from error


def _exchanges(requests: Iterable[Any], responses: Iterable[Any]) -> Iterator[WireExchange]:
    for request, response in zip(requests, responses, strict=True):
        yield exchange_of(request, response, comparable_bytes(request.body))


@cache
def loader_of_tags() -> Any:
    """Return a loader of plain values that knows the tags that vcrpy wrote, and runs no code.

    For text, tuples, and bodies from files or iterators. Before 8.2.1 vcrpy's own would run code.
    """
    import yaml

    class OldTags(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # known at run time
        """Safe: each tag stands for one thing, made of plain values."""

    def text(loader: Any, node: Any) -> object:
        return loader.construct_scalar(node)

    def tuple_of(loader: Any, node: Any) -> object:
        return tuple(loader.construct_sequence(node, deep=True))

    def file_body(loader: Any, node: Any) -> object:
        state = loader.construct_mapping(node, deep=True).get("state") or [b""]
        content = state[0] or b""
        return BytesIO(content.encode() if isinstance(content, str) else content)

    def iterator_body(loader: Any, node: Any) -> object:
        return iter((loader.construct_mapping(node, deep=True).get("args") or [[]])[0])

    for tag, construct in {
        "str": text,
        "unicode": text,
        "tuple": tuple_of,
        "object/new:_io.BytesIO": file_body,
        "object/apply:builtins.iter": iterator_body,
    }.items():
        OldTags.add_constructor(f"tag:yaml.org,2002:python/{tag}", construct)
    return OldTags


def _check_interactions(path: Path, data: Any, lines: list[int]) -> Any:
    """Refuse what vcrpy would fail on later."""
    for line, item in interactions_with_lines(data, lines, path):
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
        except KeyError as error:
            why = f"this interaction is incomplete: {error.args[0]!r} is missing"
            raise unreadable(path, why, line=line) from None
        except (TypeError, ValueError, AttributeError) as error:
            raise unreadable(path, f"this interaction is broken: {error}", line=line) from None
    return data


def _largest_body(request: Any, response: Any) -> int:
    bodies = (_request_body(request), (response.get("body") or {}).get("string"))
    return max(len(body) if isinstance(body, bytes | str) else 0 for body in bodies)


def _request_body(request: Any) -> Any:
    """Return the body of a request, in one piece where it can be."""
    body = request._body
    is_cut = isinstance(body, list) and all(isinstance(piece, bytes) for piece in body)
    return b"".join(body) if is_cut else body


def _scrub_cassette(cassette: Mapping[str, Any]) -> dict[str, Any]:
    """Return what vcrpy is about to write, without credentials."""
    return {
        **cassette,
        "requests": [scrub_request(request) for request in cassette["requests"]],
        "responses": [_scrub_response(response) for response in cassette["responses"]],
    }


def scrub_request(request: Any) -> Any:
    """Return a request of vcrpy as a cassette holds it."""
    body = _request_body(request)
    if isinstance(body, bytes):
        plain = unpack(body)
        clean = clean_body(plain)
        body = body if clean == plain else clean
    # A new request, because vcrpy would hand the file behind a body to the serializer.
    uri = scrub_literal(request.uri, ())
    return type(request)(request.method, uri, body, _keep_public(request.headers))


def _scrub_response(response: Mapping[str, Any]) -> dict[str, Any]:
    headers, status = _keep_public(response.get("headers") or {}), response.get("status")
    if isinstance(status, Mapping) and isinstance(status.get("message"), str):
        message = scrub_literal(status["message"], ())
        response = {**response, "status": {**status, "message": message}}
    body = (response.get("body") or {}).get("string")
    if not isinstance(body, bytes):
        return {**response, "headers": headers}
    lower = by_lower_name(headers)
    plain, _ = decode_body(body, lower)
    if "text/event-stream" in ",".join(lower.get("content-type", ())):
        kinds = credentials_across_events(plain.decode("utf-8", "replace"))
        if kinds:
            raise UndecodableBodyError(
                f"a stream holds a credential in pieces of several events ({', '.join(kinds)})"
            )
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
