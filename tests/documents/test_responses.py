"""Which response of an operation is generated."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_documents import PlainNames, build_file, document_of

from pytest_regen.documents import build_ir, read_document
from pytest_regen.errors import DocumentDefectError, NothingToGenerateError, UsageError


def schema(name: str) -> dict[str, Any]:
    """Return an object whose only field is called ``name``."""
    return {"schema": {"properties": {name: {"type": "string"}}}}


def responses(folder: Path, declared: dict[str, Any], version: str = "3.0.3") -> Path:
    """Write a document whose operation GET /things has these responses."""
    document = document_of({}, version=version)
    document["paths"]["/things"]["get"]["responses"] = declared
    path = folder / "api.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def body(name: str, media_type: str = "application/json") -> dict[str, Any]:
    """Return a response whose body is an object with the field ``name``."""
    return {"content": {media_type: schema(name)}}


def chosen(path: Path, status: str | None = None) -> tuple[str, str]:
    """Return the status that was chosen and the first field of its root."""
    made = build_file(path, status=status)
    return made.ir.endpoint.status, made.ir.types[0].fields[0].json_name


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (("201", "200", "default"), "200"),
        (("202", "201"), "201"),
        (("2XX", "206"), "206"),
        (("404", "2xx"), "2xx"),
    ],
)
def test_the_default_is_200_then_the_lowest_success(
    tmp_path: Path, declared: tuple[str, ...], expected: str
) -> None:
    """Errors and ``default`` are never taken unasked."""
    path = responses(tmp_path, {status: body(f"f{status}") for status in declared})
    assert chosen(path) == (expected, f"f{expected}")


def test_a_success_without_json_is_passed_over(tmp_path: Path) -> None:
    """A 200 that is a picture leaves the 203 to be generated."""
    path = responses(tmp_path, {"200": body("a", "image/png"), "203": body("b")})
    assert chosen(path) == ("203", "b")


def test_a_status_asked_for_is_exact(tmp_path: Path) -> None:
    """It is taken even if it is an error, and nothing else is taken in its stead."""
    path = responses(tmp_path, {"200": body("a"), "404": body("b"), "204": {}, "4XX": body("c")})
    assert chosen(path, "404") == ("404", "b")
    assert chosen(path, "4xx") == ("4XX", "c")
    with pytest.raises(UsageError, match="200, 404, 204, 4XX"):
        chosen(path, "409")
    with pytest.raises(DocumentDefectError, match="no JSON schema"):
        chosen(path, "204")


@pytest.mark.parametrize("success", ["204", "302"])
def test_no_success_with_json_leaves_nothing_to_generate(tmp_path: Path, success: str) -> None:
    """``default`` beside a success describes errors; the message lists the responses there are."""
    path = responses(tmp_path, {success: {}, "default": body("a")})
    assert not read_document(path).operations[0].is_answered_in_json
    with pytest.raises(NothingToGenerateError, match=f"its responses are: {success}, default"):
        chosen(path)


def test_default_is_the_success_where_none_is_declared(tmp_path: Path) -> None:
    """Many descriptions declare errors and ``default`` alone."""
    path = responses(tmp_path, {"404": body("e"), "default": body("a")})
    assert read_document(path).operations[0].is_answered_in_json
    assert chosen(path) == ("default", "a")


def test_a_broken_success_is_refused(tmp_path: Path) -> None:
    """No other success is read in its place, unless it is asked for."""
    broken = {"$ref": "#/components/responses/Gone"}
    path = responses(tmp_path, {"200": broken, "201": body("b"), "404": broken})
    assert read_document(path).operations[0].is_answered_in_json
    for status in (None, "200"):
        with pytest.raises(DocumentDefectError, match="cannot be read") as caught:
            chosen(path, status)
        assert "points at nothing" in caught.value.why
    assert chosen(path, "201") == ("201", "b")


@pytest.mark.parametrize(
    "media_type",
    [
        "Application/JSON",
        "application/vnd.ships.v2+json",
        "*/*",
    ],
)
def test_json_media_types(tmp_path: Path, media_type: str) -> None:
    """JSON by name, by suffix, with parameters, and where any type is allowed."""
    assert chosen(responses(tmp_path, {"200": body("a", media_type)})) == ("200", "a")


def test_plain_json_is_preferred(tmp_path: Path) -> None:
    """Among several JSON bodies the order in the file does not matter."""
    content = {
        "*/*": schema("any"),
        "application/hal+json": schema("hal"),
        "application/json": schema("json"),
    }
    assert chosen(responses(tmp_path, {"200": {"content": content}})) == ("200", "json")


@pytest.mark.parametrize(
    ("produces", "statuses"), [(["text/csv", "application/json"], ("200",)), (["text/csv"], ())]
)
def test_swagger_produces_tells_whether_it_is_json(
    tmp_path: Path, produces: list[str], statuses: tuple[str, ...]
) -> None:
    """In Swagger 2.0 the media type stands beside the responses."""
    document = document_of({"properties": {"a": {}}}, version="2.0")
    document["paths"]["/things"]["get"]["produces"] = produces
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document), "utf-8")
    assert read_document(path).operations[0].is_answered_in_json is bool(statuses)


@pytest.mark.parametrize(
    ("path", "field", "extension", "expected"),
    [
        ("/ships/{shipId}", {"shipId": "!"}, None, "shipId"),
        ("/ships/{id}", {"shipId": "!"}, None, None),
        ("/ships/{shipId}", {"shipId": "!?"}, None, None),
        ("/ships/{shipId}.json", {"shipId": "!"}, None, None),
        ("/ships", {"number": ""}, "number", "number"),
        ("/ships", {"number": ""}, "other", None),
    ],
)
def test_the_primary_key_is_never_guessed(
    tmp_path: Path, path: str, field: dict[str, str], extension: str | None, expected: str | None
) -> None:
    """The document says it, or the path ends in exactly a required field of the root."""
    name, flags = next(iter(field.items()))
    root: dict[str, Any] = {
        "properties": {name: {"type": ["string", "null"] if "?" in flags else "string"}},
        "required": [name] if "!" in flags else [],
    }
    if extension:
        root["x-primary-key"] = extension
    document = document_of(root)
    document["paths"] = {path: document["paths"]["/things"]}
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document), "utf-8")
    read = read_document(file)
    made = build_ir(read, read.operations[0], language=PlainNames())
    assert made.ir.types[0].primary_key == expected
    assert bool(made.defects) == (extension == "other")
