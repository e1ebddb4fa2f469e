"""How vcrpy reads and writes cassettes here: bounded, by line, in one step, without credentials."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.request import Request
from vcr.serialize import deserialize, serialize
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes.files.building import wire_body, with_status
from pytest_regen.cassettes.files.decoding import UndecodableBodyError, decoded_body, unpacked
from pytest_regen.cassettes.files.parsing import (
    guarded_loader,
    is_of_ruby,
    lined_interactions,
    parsed_cassette,
    parsed_json,
    refuse_cut,
    text_of,
    unreadable,
)
from pytest_regen.cassettes.files.places import shown_path
from pytest_regen.cassettes.files.reading import content_of
from pytest_regen.cassettes.files.replacing import replace_cassette, unwritable
from pytest_regen.cassettes.files.writing import LARGE_BODY, checked_text
from pytest_regen.cassettes.headers import public_headers
from pytest_regen.cassettes.recording import clean_body
from pytest_regen.cassettes.scrubbing import hidden_in_stream, scrub_literal
from pytest_regen.cassettes.values import by_lower_name, text_of_header
from pytest_regen.errors import CassetteError, CassetteUnreadableError

__all__ = ["Persister", "Rewriting"]

Deserialize = Callable[[str], Any]


class Persister:
    """What vcrpy reads and writes cassettes with: it loads several, and writes one."""

    def __init__(self, extra: Iterable[Path], *, rewrites: bool) -> None:
        self._extra = tuple(extra)
        self._rewrites = rewrites

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:  # noqa: ANN401 - vcrpy's
        """Return the requests and answers of all files.

        Raises:
            CassetteNotFoundError: there is none, which vcrpy understands.
            CassetteUnreadableError: one is there, but is no cassette.
        """
        own = [] if self._rewrites else [Path(cassette_path)]
        found: list[Any] = []
        for path in dict.fromkeys([*own, *self._extra]):
            exact = _Exact(path, serializer)
            found.append(_loaded(path, partial(deserialize, serializer=exact)))
        found = [one for one in found if one is not None]
        if not found:
            raise CassetteNotFoundError
        requests = [request for one in found for request in one[0]]
        responses = [response for one in found for response in one[1]]
        return requests, responses, *found[0][2:]

    def save_cassette(self, cassette_path: str, cassette_dict: Any, serializer: Any) -> None:  # noqa: ANN401
        """Write the cassette without credentials."""

        def serialized() -> tuple[str, str]:
            clean = _scrubbed(cassette_dict)
            text, rest = str(serialize(clean, serializer)), _without_large(clean)
            return text, text if rest is clean else str(serialize(rest, serializer))

        _write(Path(cassette_path), serialized)


class Rewriting:
    """A suite's own persister, for which there is no old cassette."""

    def __init__(self, persister: Any) -> None:  # noqa: ANN401 - as vcrpy takes them
        self._persister = persister

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:  # noqa: ANN401, ARG002
        """Find nothing."""
        raise CassetteNotFoundError

    def save_cassette(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - vcrpy's
        """Write as the suite does."""
        self._persister.save_cassette(*args, **options)


class _Exact:
    """Reads in place of a serializer of vcrpy: with bounds, and with lines in its errors."""

    def __init__(self, path: Path, serializer: Any) -> None:  # noqa: ANN401 - vcrpy's
        build = Request._from_dict  # noqa: SLF001 - what vcrpy is about to call
        if serializer is yamlserializer:
            self.deserialize = _exact_yaml(path, _base_loader(), build)
        elif serializer is jsonserializer:
            self.deserialize = _exact_json(path, build)
        else:
            self.deserialize = serializer.deserialize


def _loaded(path: Path, build: Callable[[str], Any]) -> Any:  # noqa: ANN401 - vcrpy's
    """Return what ``build`` makes of the text of a cassette; ``None`` where there is no file.

    Raises:
        CassetteUnreadableError: there is one, but it is no cassette.
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


def _exact_yaml(path: Path, base: Any, build: Callable[[Any], Any]) -> Deserialize:  # noqa: ANN401
    """Return a deserializer as vcrpy's for YAML, but with bounds and with lines in its errors.

    Args:
        path: the cassette.
        base: the loader of vcrpy, which knows a few tags more, and constructs as little.
        build: makes a request of what is recorded; raises where it cannot.
    """

    def deserialize(text: str) -> Any:  # noqa: ANN401 - as vcrpy calls it
        data, lines = parsed_cassette(text, path, loader=guarded_loader(base))
        checked = _checked(path, data, lines, build)
        refuse_cut(checked, text, path)
        return checked

    return deserialize


@cache
def _base_loader() -> Any:  # noqa: ANN401 - a class of PyYAML's
    """Return vcrpy's loader of plain values; before 8.2.1 its own would run code, so ours.

    Both know the tags that vcrpy has written for text, tuples, and bodies that were files or
    iterators.
    """
    known = getattr(yamlserializer, "_CassetteLoader", None)
    return known or _loader_of_old_tags()


def _loader_of_old_tags() -> Any:  # noqa: ANN401 - as above
    import yaml  # noqa: PLC0415 - vcrpy has imported it

    class OldTags(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # known at run time
        """Safe: each tag means one thing, made of plain values."""

    def text(loader: Any, node: Any) -> object:  # noqa: ANN401 - as PyYAML calls it
        return loader.construct_scalar(node)

    def tuple_of(loader: Any, node: Any) -> object:  # noqa: ANN401 - as above
        return tuple(loader.construct_sequence(node, deep=True))

    def file_body(loader: Any, node: Any) -> object:  # noqa: ANN401 - as above
        state = loader.construct_mapping(node, deep=True).get("state") or [b""]
        content = state[0] or b""
        return BytesIO(content.encode() if isinstance(content, str) else content)

    def iterator_body(loader: Any, node: Any) -> object:  # noqa: ANN401 - as above
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


def _exact_json(path: Path, build: Callable[[Any], Any]) -> Deserialize:
    """Return a deserializer as vcrpy's for JSON; see ``_exact_yaml``."""
    return lambda text: _checked(path, *parsed_json(text, path), build)


def _checked(path: Path, data: Any, lines: list[int], build: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """Refuse what vcrpy would stumble over later, or not know what to do with."""
    if is_of_ruby(data):
        why = "it was written by VCR for Ruby, which vcrpy does not read"
        shown = shown_path(path)
        hint = f"pytest-regen cassettes convert {shown} --out {path.stem}.converted.yaml"
        raise unreadable(path, why, line=1, hint=hint)
    for line, item in lined_interactions(data, lines, path):
        try:
            build(item["request"])
            response = item["response"] = with_status(item["response"])
            _ = response["status"]["code"], response["headers"], response["body"]
            _as_it_came(item, response)
        except KeyError as error:
            why = f"this interaction is incomplete: {error.args[0]!r} is missing"
            raise unreadable(path, why, line=line) from None
        except (TypeError, ValueError, AttributeError) as error:
            raise unreadable(path, f"this interaction is broken: {error}", line=line) from None
    return data


def _as_it_came(item: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Give an answer that we laid out the bytes of the wire, and their length."""
    if item.get("layout") is None:
        return
    text = response["body"]["string"]
    body = wire_body(text.encode("utf-8", "surrogatepass"), item)
    response["body"]["string"] = body.decode("utf-8", "surrogatepass")
    if "content-length" in response["headers"]:
        response["headers"]["content-length"] = [str(len(body))]


def _without_large(cassette: dict[str, Any]) -> dict[str, Any]:
    """Return what vcrpy writes without large bodies, which were searched when scrubbed."""
    requests, responses = cassette["requests"], cassette["responses"]
    sizes = [_size(_body_of(request)) for request in requests]
    sizes += [_size((response.get("body") or {}).get("string")) for response in responses]
    if max(sizes, default=0) <= LARGE_BODY:
        return cassette
    return {
        **cassette,
        "requests": [
            type(one)(one.method, one.uri, b"", one.headers)
            if _size(_body_of(one)) > LARGE_BODY
            else one
            for one in requests
        ],
        "responses": [
            {**one, "body": {"string": b""}}
            if _size((one.get("body") or {}).get("string")) > LARGE_BODY
            else one
            for one in responses
        ],
    }


def _body_of(request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
    """Return the body of a request, in one piece where it can be."""
    body = request._body  # noqa: SLF001 - vcrpy before 8.2 has no body_bytes
    is_cut = isinstance(body, list) and all(isinstance(piece, bytes) for piece in body)
    return b"".join(body) if is_cut else body


def _size(body: object) -> int:
    return len(body) if isinstance(body, bytes | str) else 0


def _write(path: Path, serialized: Callable[[], tuple[str, str]]) -> None:
    """Write a cassette in one step; the old file stays until the new one is whole.

    Args:
        path: the cassette.
        serialized: gives its text, and what of it is searched once more.

    Raises:
        CassetteError: it cannot be made text, or written, or holds a credential.
    """
    try:
        text, searched = serialized()
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
    checked_text(path, searched)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_cassette(path, text)
    except OSError as error:
        raise unwritable(path, error) from None


def _scrubbed(cassette: Mapping[str, Any]) -> dict[str, Any]:
    """Return what vcrpy is about to write, without credentials."""
    return {
        **cassette,
        "requests": [_scrubbed_request(one) for one in cassette["requests"]],
        "responses": [_scrubbed_response(_of_status(one)) for one in cassette["responses"]],
    }


def _scrubbed_request(request: Any) -> Any:  # noqa: ANN401 - vcrpy's own type
    body = _body_of(request)
    if isinstance(body, bytes):
        plain = unpacked(body)
        clean = clean_body(plain)
        body = body if clean == plain else clean
    # Anew: of a body that was a file vcrpy would hand the file to the serializer.
    uri = scrub_literal(request.uri, ())
    return type(request)(request.method, uri, body, _public(request.headers))


def _of_status(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a response whose status says no credential."""
    status = response.get("status")
    if not isinstance(status, Mapping) or not isinstance(status.get("message"), str):
        return response
    said = scrub_literal(status["message"], ())
    return {**response, "status": {**status, "message": said}}


def _scrubbed_response(response: Mapping[str, Any]) -> dict[str, Any]:
    headers = _public(response.get("headers") or {})
    body = (response.get("body") or {}).get("string")
    if not isinstance(body, bytes):
        return {**response, "headers": headers}
    lower = by_lower_name(headers)
    plain, _ = decoded_body(body, lower)
    kinds = hidden_in_stream(plain.decode("utf-8", "replace")) if _is_stream(lower) else ()
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


def _public(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers that hold no credential, whatever the suite filters itself."""
    listed = {name: _listed(value) for name, value in headers.items()}
    texts = {name: tuple(map(text_of_header, values)) for name, values in listed.items()}
    return {
        name: list(values) if isinstance(headers[name], list | tuple) else values[0]
        for name, values in public_headers(texts).items()
    }


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)
