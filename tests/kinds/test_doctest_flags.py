"""Flags of doctest are pytest's own: an example comes out as ``pytest --doctest-modules`` says."""

import pytest

from pytest_regen import sandbox
from pytest_regen.settings import read_settings
from pytest_regen.units.loading import load_kinds
from pytest_regen.units.place import open_units

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")

EXAMPLES = {
    "short": ("list(range(20))", "[0, ..., 19]"),
    "not_short": ("[1, 2]  # doctest: -ELLIPSIS", "[1, ...]"),
    "spaced": ("[1, 2]", "[1,   2]"),
    "old_text": ("'a'", "u'a'"),
    "old_text_named": ("'a'  # doctest: +ALLOW_UNICODE", "u'a'"),
    "old_bytes": ("b'a'", "'a'"),
    "old_bytes_named": ("b'a'  # doctest: +ALLOW_BYTES", "'a'"),
    "number": ("3.14159", "3.14"),
    "number_named": ("3.14159  # doctest: +NUMBER", "3.14"),
    "other_error": ("int('x')", "Traceback (most recent call last):\nValueError: otherwise"),
}
FUNCTION = '''
def {name}():
    """Show something.

    >>> {source}
    {want}
    """
    # [REGEN:BEGIN {name}]
    return
    # [REGEN:END {name}]
'''
MODULE = "".join(
    FUNCTION.format(name=name, source=source, want=want.replace("\n", "\n    "))
    for name, (source, want) in EXAMPLES.items()
)
TABLE = '[tool.pytest-regen]\nfunctions = ["shown.py"]\n'
FIRST, SECOND = ["NORMALIZE_WHITESPACE", "NUMBER"], ["ALLOW_UNICODE", "IGNORE_EXCEPTION_DETAIL"]
INI = f"doctest_optionflags = {' '.join(FIRST)}\n  {' '.join(SECOND)}\n"
PLACES = {
    "pytest.ini": f"[pytest]\n{INI}",
    "pyproject.toml": f"[tool.pytest]\ndoctest_optionflags = {[*FIRST, *SECOND]}\n",
    "an option": "",
    "nowhere": "",
}


@pytest.mark.parametrize("place", PLACES)
def test_flags_count_wherever_pytest_reads_them(pytester: pytest.Pytester, place: str) -> None:
    """In a run of pytest and in commands; where none are set, ELLIPSIS holds, as in pytest."""
    pytester.path.joinpath("shown.py").write_text(MODULE, "utf-8")
    texts = {"pyproject.toml": TABLE}
    if PLACES[place]:
        texts[place] = texts.get(place, "") + PLACES[place]
    for name, text in texts.items():
        pytester.path.joinpath(name).write_text(text, "utf-8")
    options = ("-o", "doctest_optionflags=ALLOW_BYTES") if place == "an option" else ()

    run = pytester.inline_run("--doctest-modules", *options)

    passed = {report.nodeid for report in run.listoutcomes()[0]}
    doctests = {name for name in EXAMPLES if f"shown.py::shown.{name}" in passed}
    assert {name for name in EXAMPLES if f"shown.py::{name}" in passed} == doctests
    assert len(doctests) > 3
    if not options:
        settings = read_settings(pytester.path)
        units = open_units(load_kinds(pytester.path, settings), "shown.py").open()
        assert {name for name in EXAMPLES if not units.score(name).errors} == doctests


def test_modules_are_found_by_any_pythonpath_of_pytest(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest="[pytest]\npythonpath = lib more\n")
    pytester.path.joinpath("pyproject.toml").write_text(TABLE, "utf-8")
    more = pytester.mkdir("more") / "lengths.py"
    more.write_text("YARD = 36\n", "utf-8")
    module = f"from lengths import YARD\n{FUNCTION.format(name='f', source='YARD', want='36')}"
    pytester.path.joinpath("shown.py").write_text(module, "utf-8")

    units = open_units(load_kinds(pytester.path, read_settings(pytester.path)), "shown.py").open()

    assert [issue.code for issue in units.issues("f")] == ["UNRECORDED"]
