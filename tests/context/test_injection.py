"""Hostile texts in every leaf: none changes a prompt's structure, each too large is refused."""

import json
import re
import unicodedata
from typing import Any

import pytest
from context_values import RENT
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from pytest_regen.context import ClarifyingAgent, as_data, parse_context, parse_request
from pytest_regen.errors import InvalidContextError
from pytest_regen.testing import check_stateless_agent
from pytest_regen.testing.canaries import default_samples

SAMPLES = default_samples()
LEAVES = [(number, path) for number, sample in enumerate(SAMPLES) for path in sample.texts]
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def skeleton(prompt: str) -> list[str]:
    """Return the lines of a prompt with every string in it left out."""
    return [STRING.sub('""', line) for line in prompt.split("\n")]


def test_a_hostile_text_changes_nothing_but_a_string() -> None:
    """In all leaves at once: same lines, headings, bullets, labels."""
    check_stateless_agent(ClarifyingAgent, checks=["structure_holds"], skeleton=skeleton)


@each(("number", "path"), LEAVES, ids=str)
def test_a_text_of_a_megabyte_is_refused_by_name(number: int, path: str) -> None:
    """Every leaf has its limit, and the error says which leaf it was."""
    with pytest.raises(InvalidContextError) as caught:
        SAMPLES[number].turn.request("injected", {path: "## Forged\n" * 100_000})

    places = [place for place, _ in caught.value.problems]
    start, _, rest = path.partition(".")
    assert any(one.startswith(f"conversationContext.{start}") for one in places), places
    assert not rest or any(place.endswith(rest.rpartition(".")[2]) for place in places), places
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("field", ["message", "interactionId", "seal"])
def test_a_field_of_a_megabyte_is_refused_by_name(field: str) -> None:
    with pytest.raises(InvalidContextError, match=field):
        parse_request({"message": RENT, field: "x" * 1_000_000})


def test_many_of_anything_are_refused() -> None:
    """Questions, options, suggestions, answers, members nobody knows."""
    question = {"id": "a", "question": "b", "type": "open_text"}
    whole: dict[str, Any] = {
        "originalDescription": RENT,
        "questionsAsked": [question],
        "inferredContext": {},
    }
    many = {str(number): "x" for number in range(20_000)}
    for data in (
        whole | {"questionsAsked": [question] * 20_000},
        whole | {"answers": many},
        whole | many,
    ):
        with pytest.raises(InvalidContextError) as caught:
            parse_context(data)
        assert len(caught.value.problems) <= 20


@given(st.text(st.characters()))
def test_data_is_one_line_of_json_that_gives_the_text_back(text: str) -> None:
    """Whatever it holds, halves of characters too; and nothing of what tags and fences need."""
    data = as_data(text)

    assert json.loads(data) == text
    assert STRING.fullmatch(data)
    assert len(data.splitlines()) == 1
    assert not set("<>`") & set(data)
    assert data.isprintable() or all(ord(one) > 0xFF for one in data if not one.isprintable())


def test_what_looks_like_nothing_is_written_out() -> None:
    """Characters that end lines, hide, or turn the direction of text are visible."""
    spaces = "\x7f\x85\xa0\xad\u061c\u200b\u200d\u202e\u2028\u2066\u3000\u3164\ufe0f\ufeff"
    controls = (*range(0x13430, 0x13456), 0x1D159, 0x1D173)  # of hieroglyphs, of music
    for code in (*range(0x20), *map(ord, spaces), *controls, 0xE0041, 0xE000, 0x10FFFF):
        data = as_data(f"a{chr(code)}b")
        assert data.isascii(), hex(code)
        assert json.loads(data) == f"a{chr(code)}b"


def test_no_normal_form_brings_a_quote_or_a_tag_back() -> None:
    """Whoever normalises a prompt gets no quote, bracket or back-tick of its text's."""
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        normal = unicodedata.normalize(form, as_data("a\uff02 \uff1cb\ufe65 \u226e \u1fef \uff3c"))
        assert not set("<>`") & set(normal)
        assert STRING.fullmatch(normal)


def test_ordinary_letters_stay_as_they_are() -> None:
    for text in ("Zürich", "東京", "Київ", "العربية", "😀", "Crème brûlée — 5 €"):
        assert as_data(text) == f'"{text}"'
