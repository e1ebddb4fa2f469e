"""Corrections in place, and replacements merged."""

import pytest
from scenario_doubles import correction, discard, handwritten, named, request, scenario

from pytest_regen.errors import UsageError
from pytest_regen.sessions import apply_corrections, merge_replacements

A, B, C = scenario("/a"), scenario("/b"), scenario("/c")


def test_a_corrected_scenario_makes_room_and_replacements_come_last() -> None:
    """What was wrong is removed, what replaces it appended.

    Requirement 1, merge: what was corrected is replaced.
    """
    merged = merge_replacements([A, B], [C], [correction("/a", "deny")], [])

    assert merged == [B, C]


def test_a_discarded_scenario_goes() -> None:
    """So does one that no policy can satisfy.

    Requirement 1, merge: what was discarded goes.
    """
    twin = scenario("/z", description="read /a")

    assert merge_replacements([A, B, twin], [C], [], [discard("/a")]) == [B, twin, C]


def test_handwritten_scenarios_are_never_removed() -> None:
    """Neither by a discard nor by a correction, whatever the samples of the text do.

    Requirement 1, merge: handwritten ones stay.
    """
    own = handwritten("/a", description="read /a")

    merged = merge_replacements(
        [own, A.model_copy(update={"request": request("/x")})], [], [], [discard("/a")]
    )
    assert own in merged
    assert merge_replacements([own], [], [correction("/a", "allow")], []) == [own]


def test_a_replacement_of_a_kept_description_is_left_out() -> None:
    """Descriptions tell scenarios apart for a reader.

    Requirement 1, merge: duplicates of kept ones.
    """
    again = scenario("/other", description="read /b")

    assert merge_replacements([A, B], [again], [correction("/a", "deny")], []) == [B]


def test_an_ambiguous_description_is_an_error() -> None:
    """Correcting both would break the right one; an id tells them apart."""
    twin = scenario("/z", description="read /a")

    with pytest.raises(UsageError, match="2 scenarios are called"):
        merge_replacements([A, twin], [], [correction("/a", "deny")], [])
    by_id = correction("/a", "deny", scenario_id=twin.id)
    assert merge_replacements([A, twin], [], [by_id], []) == [A]


def test_corrections_are_put_in_place() -> None:
    changed = apply_corrections([A, B], [correction("/a", "deny")])

    assert named(changed) == [("read /a", "deny"), ("read /b", "allow")]
    assert changed[0].reasoning == "the constitution says so"
    with pytest.raises(UsageError, match="handwritten"):
        apply_corrections([handwritten("/h")], [correction("/h", "deny")])
