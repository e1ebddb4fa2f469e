"""Stores of API types are no subclass of ``Kind``; other tests hold them against the same laws."""

import ast
from pathlib import Path

from tables import each

TESTS = Path(__file__).parents[1]

LAWS = {
    "a kill at any write leaves the old or the new": (
        "stores/test_kills.py::test_a_kill_at_any_effect_of_a_write_leaves_before_or_after",
        "suites/test_kill_regeneration.py::test_a_regeneration_killed_at_an_effect_loses_nothing",
    ),
    "what is right passes, what is wrong fails": (
        "plugin/test_items.py::test_every_type_of_a_good_store_passes",
        "plugin/test_items.py::test_a_wrong_type_fails_alone",
    ),
    "a text comes back as it was put in": (
        "sources/test_boundaries.py::test_every_text_comes_back_as_it_was",
    ),
    "an edit is drift and is not healed": (
        "plugin/test_healing.py::test_an_edited_type_is_left_alone",
    ),
    "adopt keeps an edit": ("cli/test_past.py::test_adopt_keeps_an_edit",),
    "rebuild drops an edit": (
        "cli/test_past.py::test_rebuild_drops_an_edit_and_keeps_it_in_the_history",
    ),
    "a changed input makes it stale": (
        "stores/test_opening.py::test_only_the_type_that_changed_is_stale",
    ),
    "what is missing is generated": (
        "suites/test_update.py::test_an_interrupted_update_goes_on_where_it_stopped",
    ),
    "what nothing names is dropped": (
        "suites/test_update.py::test_a_vanished_type_goes_to_the_history",
    ),
    "the better text is kept": (
        "regeneration/test_keep_best.py::test_less_code_does_not_replace_more",
        "cli/test_regenerate.py::test_worse_output_is_put_aside_unless_any_is_accepted",
    ),
    "a model that repeats itself is asked no more": (
        "suites/test_stopped_generations.py::test_a_generation_that_makes_no_progress",
    ),
    "a text of the history is restored": (
        "regeneration/test_past.py::test_what_was_replaced_can_be_restored",
    ),
    "pytest heals and replays offline": (
        "examples/test_csharp_dto.py::test_the_demonstration_heals",
    ),
    "with workers, too": ("plugin/test_workers.py::test_a_regeneration_is_told_alike",),
}
"""Unrecorded text is the one law without a counterpart: a store has no text before its pages."""


@each("law", LAWS)
def test_a_law_of_kinds_is_held_for_stores(law: str) -> None:
    """The tests that hold it are there."""
    for test in LAWS[law]:
        file, _, name = test.partition("::")
        tree = ast.parse((TESTS / file).read_text("utf-8"))

        assert name in {getattr(node, "name", "") for node in tree.body}, test
