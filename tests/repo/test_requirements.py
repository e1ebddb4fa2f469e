"""Each row of the systems for scenarios and for contexts has a test that names it."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROWS = {
    "Requirement 1": (
        "decisions 1 and 2",
        "decision 3",
        "decisions 4 and 5",
        "decision 6",
        "parseJsonWithSchema: fences",
        "parseJsonWithSchema: invalid JSON",
        "parseJsonWithSchema: another schema",
        "schemaToPromptHint",
        "turn 1",
        "turn 2",
        "generate: handwritten",
        "prompt caching behavior",
        "proposed flow: verify",
        "proposed flow: rules",
        "merge: what was corrected",
        "merge: what was discarded",
        "merge: duplicates",
        "merge: handwritten",
        "testing: empty feedback",
        "testing: corrections",
        "testing: discarded",
        "testing: probes",
        "backward compatibility",
        "extension points: a limit of turns",
        "extension points: the history",
    ),
    "Requirement 3": (
        "data flow, turn 1",
        "section 1",
        "section 2",
        "section 3",
        "location-aware clarification: three levels",
        "location-aware clarification: 300 ms",
        "prompt enhancement",
        "end to end: initial",
        "end to end: skip",
        "migration: conversationContext takes precedence",
        "migration: clarificationAnswers",
        "criterion 1",
        "criterion 2",
        "criteria 1 and 3",
        "criterion 4",
    ),
}
"""What the docstring of a test calls each row, by the requirement it belongs to."""


def test_each_row_has_a_test_that_names_it() -> None:
    """In its docstring."""
    here = Path(__file__)
    texts = [path.read_text("utf-8") for path in TESTS.rglob("test_*.py") if path != here]

    assert not [
        f"{requirement}, {row}"
        for requirement, rows in ROWS.items()
        for row in rows
        if not any(f"{requirement}, {row}" in text for text in texts)
    ]
