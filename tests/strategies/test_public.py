"""The strategies as users take them; docs/behaviour.md shows them in tests."""

from pathlib import Path

import pytest
from command_line import command
from hypothesis import given

from pytest_regen import strategies
from pytest_regen.errors import NoInstanceError, StoreMissingError

KITES = """
openapi: 3.0.3
info: {title: Kites, version: "1"}
paths:
  /kites/latest:
    get:
      responses:
        "200":
          description: A kite.
          content: {application/json: {schema: {$ref: "#/components/schemas/Kite"}}}
components:
  schemas:
    Kite:
      type: object
      required: [id, lines]
      properties:
        id: {type: string, pattern: "^k[0-9]{4}$"}
        lines: {type: integer, minimum: 1, maximum: 6}
        flown_at: {type: string, format: date-time, nullable: true}
        tail: {$ref: "#/components/schemas/Tail"}
        owner_token: {type: string, writeOnly: true}
    Tail:
      type: object
      properties:
        colours: {type: array, maxItems: 3, items: {type: string, enum: [red, blue]}}
        next: {$ref: "#/components/schemas/Tail"}
"""
STORE = "generated/GET_kites_latest"


@pytest.fixture
def kites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of two types in C#, and its description."""
    monkeypatch.chdir(tmp_path)
    Path("api.yaml").write_text(KITES, "utf-8")
    made = command("generate", "api.yaml", "GET /kites/latest", "--provider", "template")
    assert made.code == 0, made.err


@pytest.mark.usefixtures("kites")
def test_plain_values_go_through_every_field() -> None:
    """The least one comes first; what a limit forbids is among the wrong ones."""
    found = strategies.instances_of(STORE, "KiteDataObject")

    assert len(found.valid) == 100
    assert found.valid[0].keys() == {"id", "lines"}
    assert {"minimum", "maximum", "pattern"} <= {each.keyword for each in found.invalid}
    assert not found.skipped


def test_nothing_is_opened_before_a_value_is_drawn(tmp_path: Path) -> None:
    """A decorator costs nothing, and its mistake fails the test, not the collection."""
    strategy = strategies.valid(tmp_path / "nowhere")

    @given(strategy)
    def draws(value: object) -> None:
        raise AssertionError(value)

    with pytest.raises(StoreMissingError):
        draws()


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            "{type: object, required: [me], properties: {me: {$ref: '#/components/schemas/X'}}}",
            "nothing",
        ),
        ("{type: string, pattern: '[a'}", "pattern"),
        ("{type: integer, minimum: 3, maximum: 2}", "nothing"),
    ],
)
def test_what_nothing_satisfies_says_so(tmp_path: Path, schema: str, reason: str) -> None:
    """Instead of a health check, or no end."""
    document = tmp_path / "api.yaml"
    document.write_text(
        "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {}\n"
        f"components:\n  schemas:\n    X: {schema}\n",
        "utf-8",
    )

    @given(strategies.from_schema(document, "#/components/schemas/X"))
    def draws(value: object) -> None:
        raise AssertionError(value)

    with pytest.raises(NoInstanceError, match="X") as caught:
        draws()
    assert reason in caught.value.why

    with pytest.raises(NoInstanceError, match="Y"):
        strategies.from_schema(document, "#/components/schemas/Y").validate()
