"""A reader who sees the prompt and its correction alone can say what to change, for each fault.

The answers were written by a language model that was given the two messages of each case and
nothing else; they are no recordings from an API. ``tests/support/blind_cases.py`` makes the cases.
"""

import json
from typing import Any

import pytest
from blind_cases import ANSWERS, CASES, NOTE, sent, unsaid

from pytest_regen.quoting import quote

ANSWERED: dict[str, Any] = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}


def test_each_fault_is_corrected_by_name() -> None:
    """Every correction names the fields or values at fault, and quotes no line of the source."""
    unnamed = {}
    for case in CASES:
        block = sent(case).block
        fields = [field for field, _ in case.expected if field and quote(field) not in block]
        if fields or not block:
            unnamed[case.name] = fields, block

    assert len({case.name for case in CASES}) == len(CASES) >= 60
    assert not unnamed


def test_a_correction_speaks_of_nothing_that_the_prompt_lacks() -> None:
    """The sections it names are there, and its orders stand right before the prompt."""
    for case in CASES:
        message = sent(case)
        block, _, prompt = message.user.partition("section.\n\n")
        for section in ("FIELDS", "ENUM VALUES", "NESTED TYPES", "TYPE REFERENCE"):
            if section in block.rpartition("\n\n")[2]:
                assert f"\n{section}:" in prompt, case.name


@pytest.mark.skipif(not ANSWERED, reason="no reader has answered the corrections of today yet")
def test_the_answers_are_to_the_corrections_of_today() -> None:
    """A correction that reads otherwise is to be read by somebody again: see blind_cases.py."""
    assert ANSWERED["note"] == NOTE
    changed = [
        case.name
        for case in CASES
        if ANSWERED["cases"].get(case.name, {}).get("correction") != sent(case).block.split("\n")
    ]

    assert not changed


@pytest.mark.skipif(not ANSWERED, reason="no reader has answered the corrections of today yet")
def test_a_reader_says_what_to_change() -> None:
    """For each fault, the answer names the field and the change; the verdict kept says so too."""
    unclear = {
        case.name: missing
        for case in CASES
        if (missing := unsaid(case, "\n".join(ANSWERED["cases"][case.name]["answer"])))
    }

    assert not unclear
    assert {kept["verdict"] for kept in ANSWERED["cases"].values()} == {"understood"}
