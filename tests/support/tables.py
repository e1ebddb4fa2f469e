"""Tables in one case: what a test says of many rows is one behaviour, and is reported as one.

Thousands of cases of a millisecond each take longer to set up and to report than to run.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

__all__ = ["each"]

ParameterSet = type(pytest.param())


def each(
    names: str | tuple[str, ...],
    rows: Iterable[Any],
    ids: Iterable[object] | Callable[[Any], str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each row, in one case; it is read as ``pytest.mark.parametrize`` is.

    Fixtures are made once for all rows, but each row has a ``tmp_path`` of its own. Every row that
    fails is reported, under its words.

    Args:
        names: of the parameters, as one text or several.
        rows: their values; of several names, a tuple each.
        ids: the words of the rows, or what makes them of a value.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = _table(wanted, [*rows], ids)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**given: Any) -> None:
            failures: list[Exception] = []
            for number, (words, row) in enumerate(table):
                own = (
                    {"tmp_path": _folder(given["tmp_path"], number)} if "tmp_path" in given else {}
                )
                try:
                    test(**{**given, **own, **row})
                except Exception as error:  # noqa: BLE001 - each is reported
                    error.add_note(f"in the row: {words}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"of {len(table)} rows {len(failures)} fail", failures)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in set(wanted)]
        vars(run)["__signature__"] = signature.replace(parameters=left)
        return run

    return decorated


def _folder(parent: Path, number: int) -> Path:
    folder = parent / str(number)
    folder.mkdir()
    return folder


def _table(
    names: list[str], rows: list[Any], ids: Iterable[object] | Callable[[Any], str] | None
) -> list[tuple[str, Mapping[str, Any]]]:
    assert rows, "a table without rows says nothing"
    tell = ids if callable(ids) else lambda value: repr(value)[:80]
    given = [] if ids is None or callable(ids) else list(ids)
    assert not given or len(given) == len(rows)
    table: list[tuple[str, Mapping[str, Any]]] = []
    for number, row in enumerate(rows):
        word: object = None
        values = row if len(names) > 1 else (row,)
        if isinstance(row, ParameterSet):
            assert not row.marks, "a row has no marks of its own"
            word, values = str(row.id) if row.id else None, row.values
        word = given[number] if given else word or "-".join(map(tell, values))
        table.append((str(word), dict(zip(names, values, strict=True))))
    return table
