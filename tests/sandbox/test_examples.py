"""Doctests in the sandbox come out as Python's own doctest decides them."""

import ast
import doctest
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tables import each

from pytest_regen.sandbox import Module, run_examples, without_examples

SOURCE = '''
"""About lengths.

>>> 1 + 1
2
"""
from __future__ import annotations


def twice(x: unknown):
    """Return it twice.

    >>> twice(2)
    4
    >>> twice(3)
    7
    >>> twice("a") ; print("b")
    'aa'
    b
    >>> twice(1 / 0)
    Traceback (most recent call last):
    ZeroDivisionError: division by zero
    >>> twice(None)
    Traceback (most recent call last):
    KeyError
    >>> twice(None)    # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TypeError: whatever
    >>> twice(x := [1, 2])  # doctest: +ELLIPSIS
    [1, ..., 2]
    >>> x
    [1, 2]
    >>> twice(0)  # doctest: +SKIP
    'never'
    >>> def inner():
    ...     return 1
    >>> inner()
    1
    """
    return x * 2


class Quiet:
    """Nothing is said of

    >>> Quiet()
    <BLANKLINE>
    quiet
    >>> x
    [1, 2]
    """

    def __repr__(self):
        return "\\nquiet"
'''


def examples_of(source: str, folder: Path) -> list[doctest.DocTest]:
    """Return the doctests of a module, found by Python's own finder."""
    path = folder / "lengths.py"
    path.write_text(source, "utf-8")
    spec = spec_from_file_location("lengths", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


def test_the_verdict_is_that_of_doctest(tmp_path: Path) -> None:
    """The same examples fail, in the same order, with the line each stands on."""
    tests = examples_of(SOURCE, tmp_path)

    [result] = run_examples([(Module("lengths", SOURCE), tests)])

    failures = [(tests[each.test].name, each.example.source) for each in result.failures]
    assert failures == [
        ("lengths.Quiet", "x\n"),
        ("lengths.twice", "twice(3)\n"),
        ("lengths.twice", "twice(None)\n"),
    ]
    lines = SOURCE.splitlines()
    assert all(
        failure.example.source.splitlines()[0] in lines[(failure.line or 0) - 1]
        for failure in result.failures
    )
    assert len(result.answers) == 13


@each(
    "source",
    [
        SOURCE,
        'def f(): "x\\n>>> 1\\n1"; return 2\n',
        'def f():\r\n    r"""\u00e4\r\n    >>> "\\n"\r\n    "x" """\r\n    return 1\r\n',
        'def f():\n    "about f"\n',
    ],
)
def test_examples_are_taken_out_and_nothing_else(source: str) -> None:
    """The code stays the same, line by line, and so does a docstring without examples."""

    def places(text: str) -> list[tuple[str, int]]:
        return [
            (type(node).__name__, getattr(node, "lineno", 0))
            for node in ast.walk(ast.parse(text))
            if not isinstance(node, ast.Constant | ast.Expr)
        ]

    blind = without_examples(source)

    assert places(blind) == places(source)
    assert ">>>" not in blind
    assert ("about f" in blind) == ("about f" in source)
