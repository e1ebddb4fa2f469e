"""Laws of context reconstruction, for any context."""

from contextlib import suppress
from typing import Any

import pytest
from context_values import (
    contexts,
    leaves,
    wires,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled

from pytest_regen.context import (
    ConversationContext,
    InferredContext,
    least_confident_dimensions,
    meets_confidence_threshold,
    overall_confidence,
    parse_context,
    parse_request,
    render_context,
)
from pytest_regen.errors import InvalidContextError


@settings(max_examples=scaled(25))
@given(contexts())
def test_round_trip(context: ConversationContext) -> None:
    for again in (
        parse_context(context.model_dump(mode="json", by_alias=True)),
        parse_context(context.model_dump(mode="json")),
        ConversationContext.model_validate_json(context.model_dump_json(by_alias=True)),
    ):
        assert again == context
        assert render_context(again) == render_context(context)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(wires(), st.data())
def test_anything_in_any_place_is_read_or_refused(
    data: dict[str, Any], draw: st.DataObject
) -> None:
    """8: there is one error for what does not fit, and no other exception."""
    path = draw.draw(st.sampled_from(sorted(leaves(data)) or ["/answers"]))
    keys = path.split("/")[1:]
    mutated = _put(data, keys[: draw.draw(st.integers(1, len(keys)))], draw.draw(JSON))

    for read, whole in ((parse_context, mutated), (parse_request, {"message": "m", "conversationContext": mutated})):  # fmt: skip  # noqa: E501 - one line
        with suppress(InvalidContextError):
            read(whole)


def _put(value: Any, keys: list[str], new: object) -> Any:
    if not keys:
        return new
    if isinstance(value, list):
        return [_put(v, keys[1:], new) if str(n) == keys[0] else v for n, v in enumerate(value)]
    return {k: _put(v, keys[1:], new) if k == keys[0] else v for k, v in value.items()}


@pytest.mark.parametrize(
    ("sure", "mean", "least"),
    [
        ((0.7, 0.7, 0.7), 0.7, ()),
        ((0.69, 0.7, 0.8), 0.73, ("location",)),
        ((0.5, 0.5, 0.5), 0.5, ("location", "scope")),
        ((0.6, 0.1, 0.2), 0.3, ("scope", "target_type")),
    ],
)
def test_how_sure_inferences_are(
    sure: tuple[float, float, float], mean: float, least: tuple[str, ...]
) -> None:
    """12: exactly at the threshold is sure; of equals the first named comes first."""
    names = ("location_confidence", "scope_confidence", "target_type_confidence")

    inferred = InferredContext.model_validate(dict(zip(names, sure, strict=True)))

    assert least_confident_dimensions(inferred) == least
    assert overall_confidence(inferred) == pytest.approx(mean)
    assert meets_confidence_threshold(inferred) == (not least)
    assert meets_confidence_threshold(inferred, min(sure))
