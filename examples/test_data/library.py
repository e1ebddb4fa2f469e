"""Rows of a library, and the database that decides about them.

python examples/test_data/library.py
"""

import datetime as dt
import json
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from pytest_regen import AnthropicProvider, Provider, use_cassette
from pytest_regen.sessions import ItemSession, VerifiedItems, generate_verify_repair

HERE = Path(__file__).parent
SCHEMA = (HERE / "schema.sql").read_text("utf-8")
CASSETTE = HERE / "cassettes" / "library.yaml"
ROWS = HERE / "rows.json"


class Author(BaseModel):
    """A row of the table ``author``."""

    table: Literal["author"]
    id: int
    name: str


class Book(BaseModel):
    """A row of the table ``book``."""

    table: Literal["book"]
    id: int
    author: int
    title: str
    year: int


class Loan(BaseModel):
    """A row of the table ``loan``."""

    table: Literal["loan"]
    id: int
    book: int
    lent: dt.date
    due: dt.date


Row = Author | Book | Loan
ROW: TypeAdapter[Row] = TypeAdapter(Annotated[Row, Field(discriminator="table")])

SYSTEM = f"""\
You write test data for the database of a small library: two authors, three books, two loans, as
rows of the tables below. Rows stand after those that they refer to. Names and titles are invented.

{SCHEMA}"""


class Database:
    """The oracle: a row is right if the database takes it, with all rows taken before."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.executescript(SCHEMA)

    def problem(self, row: Row) -> str | None:
        """Insert a row; return why the database does not take it."""
        values = row.model_dump(mode="json", exclude={"table"})
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        try:
            self._connection.execute(f"INSERT INTO {row.table} ({names}) VALUES ({marks})", values)
        except sqlite3.Error as error:
            return str(error)
        return None


def missing_tables(rows: Sequence[Row]) -> list[str]:
    """Return which tables have no row."""
    tables = {row.table for row in rows}
    return [f"no row of {table}" for table in ("author", "book", "loan") if table not in tables]


def run(provider: Provider) -> VerifiedItems[Row]:
    """Have rows written, try each in the database, and have those replaced that it refuses."""
    session = ItemSession(
        SYSTEM,
        ROW,
        key=lambda row: (row.table, row.id),
        lacks=missing_tables,
        name="rows",
        provider=provider,
    )
    return generate_verify_repair(session, Database().problem)


def replay() -> VerifiedItems[Row]:
    """Return what the recorded run ends with; no key, no network."""
    with use_cassette(CASSETTE, record_command=f"python {HERE / 'record.py'}"):
        return run(AnthropicProvider())


def as_json(rows: Sequence[Row]) -> str:
    """Return rows as they are kept in ``rows.json``."""
    return json.dumps([row.model_dump(mode="json") for row in rows], indent=1) + "\n"


if __name__ == "__main__":
    report = replay()
    sys.stdout.write(as_json(report.items))
    sys.exit(0 if report.passed else 1)
