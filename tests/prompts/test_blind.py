"""A reader who sees the prompt and its correction alone can say what to change, for each fault.

The answers were written by a language model that was given the two messages of each case and
nothing else; they are no recordings from an API. ``tests/support/blind_cases.py`` makes the cases.
"""

import json
from typing import Any

import pytest
from blind_cases import ANSWERS, CASES, NOTE, sent, unsaid

from pytest_regen.text import quoted

KEPT: dict[str, Any] = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}
ANSWERED = {(one["case"], "\n".join(one["correction"])): one for one in KEPT.get("answers", ())}
unanswered = pytest.mark.skipif(not KEPT, reason="nobody has read the corrections of today yet")


def test_each_fault_is_corrected_by_name() -> None:
    """Every correction names the fields or values at fault, and quotes no line of the source."""
    unnamed = {}
    for case in CASES:
        block = sent(case).block
        fields = [field for field, _ in case.expected if field and quoted(field) not in block]
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


@unanswered
def test_the_answers_are_to_the_corrections_of_today() -> None:
    """A correction that reads otherwise is to be read by somebody again: see blind_cases.py."""
    assert KEPT["note"] == NOTE
    assert not [case.name for case in CASES if (case.name, sent(case).block) not in ANSWERED]


@unanswered
def test_a_reader_says_what_to_change() -> None:
    """For each fault, the answer names the field and the change; the verdict kept says so too."""
    for case in CASES:
        kept = ANSWERED[case.name, sent(case).block]

        assert not unsaid(case, "\n".join(kept["answer"])), case.name
        assert kept["verdict"] == "understood", case.name
