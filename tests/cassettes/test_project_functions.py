"""Functions a project hands in (``normalize=``, ``scrub=``): what they return, how they fail."""

from pathlib import Path
from typing import Any

import anthropic
import pytest
from recorded import KEY, echo
from turn_values import MODEL

from pytest_regen.cassettes import Matching, use_cassette
from pytest_regen.emulator import Emulator
from pytest_regen.errors import CassetteError


def forgets_to_return(body: Any) -> None:
    body.pop("metadata", None)


def fails(_value: Any) -> Any:
    raise KeyError("metadata")


def returns_a_set(body: Any) -> Any:
    return set(body)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"normalize": forgets_to_return}, "normalize=forgets_to_return returned NoneType"),
        ({"normalize": returns_a_set}, "normalize=returns_a_set failed"),
        ({"normalize": fails}, "normalize=fails failed"),
        ({"scrub": fails}, "scrub=fails failed"),
        ({"scrub": lambda _text: None}, r"scrub=.*<lambda> returned NoneType"),
    ],
)
@pytest.mark.parametrize("mode", ["once", "none"])
def test_a_function_that_does_not_do_its_work_is_named(
    tmp_path: Path, options: dict[str, Any], what: str, mode: Any
) -> None:
    """It does not make all requests equal; the client neither hides the error nor retries."""
    path = tmp_path / "c.yaml"
    with Emulator(echo) as emulator:
        client = anthropic.Anthropic(api_key=KEY, base_url=emulator.base_url, max_retries=2)

        def ask() -> None:
            said: Any = [{"role": "user", "content": "x"}]
            client.messages.create(model=MODEL, max_tokens=20, messages=said)

        if mode == "none":
            with use_cassette(path, mode="once"):
                ask()
        with pytest.raises(CassetteError, match=what), use_cassette(path, mode=mode, **options):
            ask()

        assert len(emulator.requests) <= 1


def test_a_function_may_return_any_json() -> None:
    """An empty list, a number, false: what is compared is what it says."""
    values: list[Any] = [[], 0, False, "", {}]
    said = iter(values)
    matching = Matching(normalize=lambda _: next(said))

    assert [matching.normalize_json({"a": 1}) for _ in values] == values
