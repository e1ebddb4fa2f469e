"""The rows that are kept are those of the recorded run, and the database takes them all."""

import json

from library import ROW, ROWS, Database, as_json, replay


def test_the_database_takes_every_row() -> None:
    """In their order: a row stands after those that it refers to."""
    database = Database()

    for data in json.loads(ROWS.read_text("utf-8")):
        assert database.problem(ROW.validate_python(data)) is None, data


def test_three_wrong_rows_are_replaced_in_one_turn() -> None:
    """Only they are asked for; the run ends with the very rows that are kept."""
    report = replay()

    assert (report.passed, report.repairs, len(report.items)) == (True, 1, 7)
    assert as_json(report.items) == ROWS.read_text("utf-8")
