"""The strategies as users take them, and the page of the docs that shows them."""

from pathlib import Path

import pytest
import yaml  # noqa: F401 - its C classes are made once in a process, and pytester forgets
from command_line import command
from hypothesis import given, settings
from pages import blocks

from pytest_regen import strategies
from pytest_regen.errors import NoInstanceError, StoreMissingError
from pytest_regen.strategies import instances, violations  # noqa: F401 - forgotten alike

PAGE = "docs/strategies.md"
QUICKLY = """
from hypothesis import Phase, settings

phases = [phase for phase in Phase if phase is not Phase.explain]
settings.register_profile(
    "quickly", max_examples=60, phases=phases, database=None, deadline=None, derandomize=True
)
settings.load_profile("quickly")
"""


@pytest.fixture
def kites(pytester: pytest.Pytester) -> Path:
    """The project of the page."""
    (document,) = blocks(PAGE, "yaml")
    (pytester.path / "api.yaml").write_text(document, "utf-8")
    made = command("generate", "api.yaml", "GET /kites/latest", "--provider", "template")
    assert made.code == 0, made.err
    return pytester.path


@pytest.mark.usefixtures("kites")
def test_the_page_works_as_it_stands(pytester: pytest.Pytester) -> None:
    """Its first test finds the forgotten null, shown as the page shows it; the others pass."""
    *tests, plain = blocks(PAGE, "python")
    pytester.makepyfile(test_kites="\n\n".join(tests))
    pytester.makeconftest(QUICKLY)

    try:
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    finally:
        settings.load_profile("default")

    result.assert_outcomes(passed=3, failed=1)
    lines = [*map(str.strip, blocks(PAGE, "console")[1].splitlines())]
    shown = [line.removeprefix("E").strip() for line in lines if line.startswith("E")]
    printed = " ".join(result.outlines)
    assert shown[0] in printed
    assert not [line for line in shown[3:6] if line.rstrip(",") not in printed]
    exec(plain, {"strategies": strategies})


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


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ("{type: object, additionalProperties: {type: integer}}", [{}]),
        ("{type: string, nullable: true}", [None, "a"]),
        ("{type: array, items: {type: boolean}}", [[], [True]]),
    ],
)
def test_what_is_no_object_with_names_is_drawn_as_well(
    tmp_path: Path, schema: str, wanted: list[object]
) -> None:
    """Maps, plain values and arrays."""
    document = tmp_path / "api.yaml"
    document.write_text(
        "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {}\n"
        f"components:\n  schemas:\n    X: {schema}\n",
        "utf-8",
    )
    drawn: list[object] = []

    @settings(max_examples=200, database=None, deadline=None)
    @given(strategies.from_schema(document, "#/components/schemas/X"))
    def draws(value: object) -> None:
        drawn.append(value)

    draws()
    assert [each for each in wanted if each not in drawn] == []
    assert any(drawn)
