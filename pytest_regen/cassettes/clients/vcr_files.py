"""vcrpy's reading and writing of cassettes: limits, line numbers, atomic, scrubbed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

from vcr import VCR
from vcr.cassette import Cassette
from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.record_mode import RecordMode as VcrRecordMode
from vcr.request import Request
from vcr.serialize import deserialize, serialize
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes.clients.vcr_patches import body_bytes, comparable_bytes, exchange_of
from pytest_regen.cassettes.files.bodies import UndecodableBodyError, decode_body, unpack
from pytest_regen.cassettes.files.format import wire_body, with_current_layout
from pytest_regen.cassettes.files.parser import (
    guarded_loader,
    interactions_with_lines,
    parse_cassette,
    parse_json,
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
from pytest_regen.strict_json import json_or_none

Deserialize = Callable[[str], Any]


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
        own = [] if self._rewrites else [Path(cassette_path)]
        files = [_read(path, serializer) for path in dict.fromkeys([*own, *self._extra])]
        found = [loaded for loaded in files if loaded is not None]
        if not found:
            raise CassetteNotFoundError
        requests = [request for loaded in found for request in loaded[0]]
        responses = [response for loaded in found for response in loaded[1]]
        return requests, responses, *found[0][2:]

    def save_cassette(self, cassette_path: str, cassette_dict: Any, serializer: Any) -> None:
        """Write the cassette without credentials."""

        def serialize_clean() -> tuple[str, str]:
            clean = _scrub_cassette(cassette_dict)
            text, rest = str(serialize(clean, serializer)), _without_large(clean)
            return text, text if rest is clean else str(serialize(rest, serializer))

        path = Path(cassette_path)
        _write_cassette(path, serialize_clean)
        # What a suite's own serializer or hooks make of an exchange may be none to us.
        with suppress(CassetteError, LookupError, TypeError, ValueError, AttributeError):
            live = _exchanges(cassette_dict["requests"], cassette_dict["responses"])
            kept = _exchanges(*_read(path, serializer)[:2])
            for one, other in zip(live, kept, strict=True):
                self.changed += changed_values(one, other)


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
    """Replaces a serializer of vcrpy for reading: with limits, and with lines in its errors."""

    def __init__(self, path: Path, serializer: Any) -> None:
        build = Request._from_dict
        if serializer is yamlserializer:
            self.deserialize = _strict_yaml(path, loader_of_tags(), build)
        elif serializer is jsonserializer:
            self.deserialize = _strict_json(path, build)
        else:
            self.deserialize = serializer.deserialize


def _read(path: Path, serializer: Any) -> Any:
    """Return the requests and answers of a cassette; ``None`` if there is no file."""
    exact = _StrictSerializer(path, serializer)
    return _load(path, partial(deserialize, serializer=exact))


def _exchanges(requests: Iterable[Any], responses: Iterable[Any]) -> Iterator[WireExchange]:
    for request, response in zip(requests, responses, strict=True):
        yield exchange_of(request, response, comparable_bytes(request.body))


def _load(path: Path, build: Callable[[str], Any]) -> Any:
    """Return what ``build`` returns for the text of a cassette; ``None`` if there is no file.

    Raises:
        CassetteUnreadableError: the file is not a cassette.
    """
    data, _ = content_of(path)
    if data is None:
        return None
    try:
        return build(text_of(path, data))
    except CassetteUnreadableError:
        raise
    except Exception as error:  # whatever a suite's own serializer raises
        raise unreadable(path, f"{type(error).__name__}: {error}") from error


def _strict_yaml(path: Path, base: Any, build: Callable[[Any], Any]) -> Deserialize:
    """Return a deserializer like vcrpy's for YAML, but with limits and with lines in its errors.

    Args:
        path: the cassette.
        base: vcrpy's loader, which knows a few more tags and constructs just as little.
        build: builds a request from what is recorded, or raises.
    """

    def deserialize(text: str) -> Any:
        data, lines = parse_cassette(text, path, loader=guarded_loader(base))
        checked = _check_interactions(path, data, lines, build)
        refuse_cut(checked, text, path)
        return checked

    return deserialize


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


def _strict_json(path: Path, build: Callable[[Any], Any]) -> Deserialize:
    """Return a deserializer like vcrpy's for JSON; see ``_strict_yaml``."""
    return lambda text: _check_interactions(path, *parse_json(text, path), build)


def _check_interactions(
    path: Path, data: Any, lines: list[int], build: Callable[[Any], Any]
) -> Any:
    """Refuse what vcrpy would fail on later."""
    for line, item in interactions_with_lines(data, lines, path):
        try:
            build(item["request"])
            response = item["response"] = with_current_layout(item["response"])
            _ = response["status"]["code"], response["headers"], response["body"]
            _restore_wire_body(item, response)
        except KeyError as error:
            why = f"this interaction is incomplete: {error.args[0]!r} is missing"
            raise unreadable(path, why, line=line) from None
        except (TypeError, ValueError, AttributeError) as error:
            raise unreadable(path, f"this interaction is broken: {error}", line=line) from None
    return data


def _restore_wire_body(item: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Restore the bytes and the length that the wire had, if this package spread the JSON."""
    if item.get("layout") is None:
        return
    text = response["body"]["string"]
    body = wire_body(text.encode("utf-8", "surrogatepass"), item)
    response["body"]["string"] = body.decode("utf-8", "surrogatepass")
    if "content-length" in response["headers"]:
        response["headers"]["content-length"] = [str(len(body))]


def _without_large(cassette: dict[str, Any]) -> dict[str, Any]:
    """Return what vcrpy writes without exchanges with large bodies: scrubbing searched them."""
    pairs = list(zip(cassette["requests"], cassette["responses"], strict=True))
    small = [
        (request, response)
        for request, response in pairs
        if max(map(_size, (_request_body(request), (response.get("body") or {}).get("string"))))
        <= LARGE_BODY
    ]
    if len(small) == len(pairs):
        return cassette
    requests, responses = zip(*small, strict=True) if small else ((), ())
    return {**cassette, "requests": requests, "responses": responses}


def _request_body(request: Any) -> Any:
    """Return the body of a request, in one piece where it can be."""
    body = request._body
    is_cut = isinstance(body, list) and all(isinstance(piece, bytes) for piece in body)
    return b"".join(body) if is_cut else body


def _size(body: object) -> int:
    return len(body) if isinstance(body, bytes | str) else 0


def _write_cassette(path: Path, serialize: Callable[[], tuple[str, str]]) -> None:
    """Write a cassette in one step; the old file stays until the new one is whole.

    Args:
        path: the cassette.
        serialize: returns its text, and the part that is searched once more.

    Raises:
        CassetteError: it cannot be serialized or written, or holds a credential.
    """
    try:
        text, searched = serialize()
    except UndecodableBodyError as error:
        raise CassetteError(
            f"{path.name}: the cassette is not written: one of its bodies cannot be searched for "
            "credentials, or cleaned of one",
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


def _scrub_cassette(cassette: Mapping[str, Any]) -> dict[str, Any]:
    """Return what vcrpy is about to write, without credentials."""
    return {
        **cassette,
        "requests": [scrub_request(request) for request in cassette["requests"]],
        "responses": [
            _scrub_response(_scrub_status(response)) for response in cassette["responses"]
        ],
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


def _scrub_status(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a response whose status message holds no credential."""
    status = response.get("status")
    if not isinstance(status, Mapping) or not isinstance(status.get("message"), str):
        return response
    said = scrub_literal(status["message"], ())
    return {**response, "status": {**status, "message": said}}


def _scrub_response(response: Mapping[str, Any]) -> dict[str, Any]:
    headers = _keep_public(response.get("headers") or {})
    body = (response.get("body") or {}).get("string")
    if not isinstance(body, bytes):
        return {**response, "headers": headers}
    lower = by_lower_name(headers)
    plain, _ = decode_body(body, lower)
    kinds = credentials_across_events(plain.decode("utf-8", "replace")) if _is_stream(lower) else ()
    if kinds:
        raise UndecodableBodyError(
            f"a stream holds a credential in pieces of several events ({', '.join(kinds)})"
        )
    clean = clean_body(plain)
    if clean == plain:
        return {**response, "headers": headers, "body": {"string": body}}
    kept = {
        n: v for n, v in headers.items() if n.lower() not in {"content-encoding", "content-length"}
    }
    return {**response, "headers": kept, "body": {"string": clean}}


def _is_stream(headers: Mapping[str, tuple[str, ...]]) -> bool:
    return "text/event-stream" in ",".join(headers.get("content-type", ()))


def _keep_public(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers without credentials, whatever the suite filters itself."""
    listed = {name: _as_list(value) for name, value in headers.items()}
    texts = {name: tuple(map(text_of_header, values)) for name, values in listed.items()}
    return {
        name: list(values) if isinstance(headers[name], list | tuple) else values[0]
        for name, values in public_headers(texts).items()
    }


def _as_list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)


class VcrpyCannotReadError(Exception):
    """vcrpy itself cannot read a file, so its suite must have a serializer of its own."""


def first_loss_for_vcrpy(
    old: str, new: str, answers: Sequence[bytes], *, is_json: bool, as_json: bool
) -> str:
    """Return the first request of a cassette that another one answers less well; empty if none.

    Compared with vcrpy's own serializer, matching and persister, as in a suite without settings.

    Args:
        old: the text of the first cassette.
        new: the text of the other, in YAML.
        answers: the decoded bodies that the other should play, in order.
        is_json: whether the first is JSON.
        as_json: whether equal JSON counts, or only equal bytes.

    Raises:
        VcrpyCannotReadError: vcrpy cannot read the first cassette.
    """
    try:
        requests, responses, *_ = deserialize(old, jsonserializer if is_json else yamlserializer)
        _ = [response["body"]["string"] for response in responses]
    except Exception as error:
        raise VcrpyCannotReadError(f"{type(error).__name__}: {error}") from error
    options = VCR(record_mode=VcrRecordMode.NONE).get_merged_config(path="x")
    cassette = Cassette.load(**_cassette_options(options), persister=_TextPersister(new))
    for number, (request, response, wanted) in enumerate(
        zip(requests, responses, answers, strict=True), 1
    ):
        place = f"recording {number} ({request.method} {request.path})"
        if not cassette.can_play_response_for(request):
            return f"{place} would not be found any more by a test that is marked vcr"
        played = cassette.play_response(request)
        if played["status"]["code"] != response["status"]["code"]:
            return f"{place} would have another status"
        if not _is_same(_played_body(played), wanted, as_json=as_json):
            return f"{place} would have another body for a test that is marked vcr"
    return ""


class _TextPersister:
    """Gives vcrpy a text instead of a file."""

    def __init__(self, text: str) -> None:
        self._text = text

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:
        """Return the requests and answers."""
        return deserialize(self._text, yamlserializer)


def _cassette_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return those of VCR's options that a cassette takes."""
    not_its = {"path_transformer", "func_path_generator", "record_on_exception", "persister"}
    return {name: value for name, value in options.items() if name not in not_its}


def _played_body(played: Any) -> bytes:
    body = body_bytes((played.get("body") or {}).get("string"))
    headers = {str(n): v for n, v in (played.get("headers") or {}).items()}
    try:
        return decode_body(body, by_lower_name(headers))[0]
    except UndecodableBodyError:
        return body


def _is_same(played: bytes, wanted: bytes, *, as_json: bool) -> bool:
    if played == wanted:
        return True
    if not as_json or json_or_none(wanted) is None:
        return False
    return bool(json.loads(played) == json.loads(wanted))
