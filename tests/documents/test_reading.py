"""Files: what is read, and how what cannot be read is told."""

from pathlib import Path

import pytest
from tables import each

from pytest_regen.documents import read_document
from pytest_regen.documents.reading import load_file
from pytest_regen.errors import DocumentUnreadableError, UnknownOperationError


def load(folder: Path, text: str | bytes, name: str = "api.yaml") -> object:
    """Return the value of a file that holds ``text``."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_file(path)[0]


def refusal(folder: Path, text: str | bytes, name: str = "api.yaml") -> str:
    """Return the message with which a document is refused."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DocumentUnreadableError) as caught:
        read_document(path)
    assert name in caught.value.what
    assert caught.value.hint
    return str(caught.value)


@each(
    ("text", "value"),
    [
        ("no", "no"),
        ("true", True),
        ("~", None),
        ("", None),
        ("2024-01-31", "2024-01-31"),
        ("1_000", "1_000"),
        ("0x1F", 31),
        ("!!str 12", "12"),
        ("!!timestamp 2024-01-31", "2024-01-31"),
        ("!!python/object/apply:os.getcwd []", []),
    ],
)
def test_yaml_scalars_follow_version_1_2(tmp_path: Path, text: str, value: object) -> None:
    """Only YAML 1.2's own words are booleans, dates stay text, and tags execute nothing."""
    assert load(tmp_path, f"key: {text}\n") == {"key": value}


def test_an_anchor_may_be_given_twice(tmp_path: Path) -> None:
    """YAML 1.2 lets an anchor be redefined; an alias means the last one before it."""
    text = "a: &x {v: 1}\nb: *x\nc: &x {v: 2}\nd: *x\n"
    assert load(tmp_path, text) == {"a": {"v": 1}, "b": {"v": 1}, "c": {"v": 2}, "d": {"v": 2}}


def test_merge_keys_fill_what_is_not_given(tmp_path: Path) -> None:
    """``<<`` adds what the mapping lacks; of several, the first counts."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\nd:\n  '<<': 1\n"
    value = load(tmp_path, text)
    assert isinstance(value, dict)
    assert value["c"] == {"x": 3, "y": 1, "z": 2}
    assert value["d"] == {"<<": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"paths": {"/a": {"get": {"x": 1, "x": 2}}}}'),
        ("a.yaml", "paths:\n  /a:\n    get:\n      x: 1\n      x: 2\n"),
    ],
)
def test_a_doubled_key_is_a_defect_and_the_last_counts(
    tmp_path: Path, name: str, text: str
) -> None:
    """Both formats tell where the key stands."""
    path = tmp_path / name
    path.write_text(text, "utf-8")
    value, defects = load_file(path)
    assert value["paths"]["/a"]["get"] == {"x": 2}
    assert [(defect.where, defect.severity) for defect in defects] == [
        ("#/paths/~1a/get/x", "error")
    ]


def test_huge_integers_are_kept(tmp_path: Path) -> None:
    """Limits beyond 64 bits keep every digit; an absurd length is refused."""
    assert load(tmp_path, f"a: {2**70}\n") == {"a": 2**70}
    assert load(tmp_path, f'{{"a": {2**70}}}', "a.json") == {"a": 2**70}
    assert "4300 digits" in refusal(tmp_path, '{"a": ' + "9" * 5000 + "}", "a.json")


@each(
    ("text", "name", "reason"),
    [
        ("", "a.yaml", "empty"),
        ("a: [1\nb: 2\n", "a.yaml", "line 2"),
        ('{"a": 1,\n "b": }', "a.json", "line 2"),
        ("openapi: 3.0.0\n".encode("utf-16"), "a.yaml", "'utf-8' codec can't decode"),
        ("#%RAML 1.0\ntitle: x\n", "a.yaml", "neither the key 'openapi'"),
        ("openapi: 4.0.0\n", "a.yaml", "4.0.0"),
        ("a: 1\n---\nb: 2\n", "a.yaml", "second YAML document"),
        ("a: *nowhere\n", "a.yaml", "&nowhere"),
        ("a: &a [*a]\n", "a.yaml", "inside its own anchor"),
        ("[" * 300 + "]" * 300, "a.yaml", "nested too deeply"),
        ('{"a": "\\ud800"}', "a.json", "surrogates not allowed"),
        ("[" * 100_000, "a.json", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, text: str | bytes, name: str, reason: str
) -> None:
    """One error that names the file, the reason and what to do."""
    assert reason in refusal(tmp_path, text, name)


def test_an_alias_bomb_is_stopped(tmp_path: Path) -> None:
    """Ten levels of ten aliases stand for ten thousand million values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]
    assert "aliases stand for" in refusal(tmp_path, "\n".join(lines))


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    """What the system says is passed on."""
    with pytest.raises(DocumentUnreadableError, match="No such file"):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(DocumentUnreadableError, match="directory"):
        read_document(tmp_path)


def test_operations_and_near_matches(tmp_path: Path) -> None:
    """Operations are found by method and path; a miss lists what comes near."""
    path = tmp_path / "api.yaml"
    path.write_text(
        """
openapi: 3.0.0
paths:
  /v1/ships: {get: {tags: [fleet, 7], responses: {200: {description: x}}}, parameters: []}
  /v1/ports/: {put: {responses: {}}, x-note: {}}
  x-extension: {get: {}}
""",
        "utf-8",
    )
    document = read_document(path)
    assert [str(each) for each in document.operations] == ["GET /v1/ships", "PUT /v1/ports/"]
    ships = document.find("get /v1/ships/")
    assert (ships.tags, ships.statuses) == (("fleet", "7"), ("200",))
    assert document.find("PUT /v1/ports").path == "/v1/ports/"
    with pytest.raises(UnknownOperationError, match="'GET /v1/ships'"):
        document.find("GET /v1/ship")
    with pytest.raises(UnknownOperationError) as caught:
        document.find("/v1/ports")
    assert (
        caught.value.why
        == "an operation is named by its method and its path; the document has 2 operations"
    )
    assert caught.value.hint.startswith("near matches: 'PUT /v1/ports/'")
