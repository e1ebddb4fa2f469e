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
    assert merge_replacements([A, B], [C], [], [discard("/a")]) == [B, C]


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


def test_verified_merge_loses_nothing_that_is_right() -> None:
    """A corrected scenario stays unless an accepted replacement asks the same request."""
    corrected, better = scenario("/a", "deny"), scenario("/a", "deny", description="better")
    told = [correction("/a", "deny")]

    stays = merge_replacements([corrected, B], [C], told, [], accepts=lambda _: True)
    goes = merge_replacements([corrected, B], [better], told, [], accepts=lambda _: True)
    refused = merge_replacements([corrected, B], [better, C], told, [], accepts=lambda _: False)

    assert (stays, goes, refused) == ([corrected, B, C], [B, better], [corrected, B])


def test_corrections_are_put_in_place() -> None:
    changed = apply_corrections([A, B], [correction("/a", "deny")])

    assert named(changed) == [("read /a", "deny"), ("read /b", "allow")]
    assert changed[0].reasoning == "the constitution says so"


@pytest.mark.parametrize(
    ("path", "problem"), [("/nowhere", "no scenario is called"), ("/h", "handwritten")]
)
def test_a_correction_is_never_lost(path: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        apply_corrections([A, handwritten("/h")], [correction(path, "deny")])


def test_a_discard_among_twins_is_told_by_its_request() -> None:
    twin = scenario("/z", description="read /a")

    assert merge_replacements([A, twin], [], [], [discard("/a")]) == [twin]
