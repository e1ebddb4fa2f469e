"""Whether a failing item is called again, and what for: its sessions, or its units."""

import sysconfig
from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS
from pytest_regen.pytest_plugin.summary import record_of

_LIBRARIES: Final = map(sysconfig.get_path, ("purelib", "platlib", "stdlib", "platstdlib"))
_NOT_ITS: Final = (Path(__file__).parents[2], *map(Path, _LIBRARIES))
"""Where our own code, packages and the standard library lie."""


def project_frames(item: pytest.Item, traceback: TracebackType | None) -> TracebackType | None:
    """Return ``traceback`` up to the last line of the project that asked.

    What lies behind it, a client's retries and our lookup, does not explain the difference.

    Args:
        item: the test; its own file counts as the project wherever it lies.
        traceback: from the outermost frame in.

    Returns:
        The lines, or ``None`` where none of them is the project's: what it asked for failed in
        another thread, or it went on as if nothing had happened.
    """
    steps = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    while steps:
        file = Path(steps[-1].tb_frame.f_code.co_filename)
        # Not what lies in the project alone, because a virtual environment may lie there too.
        is_foreign = any(map(file.is_relative_to, _NOT_ITS))
        if file == item.path or (not is_foreign and file.is_relative_to(item.config.rootpath)):
            break
        steps.pop()
    lines = None
    for step in reversed(steps):
        lines = TracebackType(lines, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return lines


def heal_item(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Return the failure that is left of an item marked ``regen``; ``None`` if it passes now.

    Sessions take their next turn without an option, because nothing is written. With a debugger
    nothing is healed: whoever asked for it wants to see the failure. ``pytest.xfail`` and
    ``pytest.exit`` say themselves what is to become of the item.
    """
    # pytest-rerunfailures starts the whole item again; healing it twice would pay twice.
    is_again = getattr(item, "execution_count", 1) > 1 or item.get_closest_marker("xfail")
    is_decided = isinstance(failure, pytest.xfail.Exception | pytest.exit.Exception)
    if is_decided or is_again or getattr(item.config.option, "usepdb", False):
        return failure
    if item.stash.get(SESSION_MAKERS, None):
        from pytest_regen.pytest_plugin.healing.sessions import heal_sessions

        return heal_sessions(item, failure)
    from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
    from pytest_regen.pytest_plugin.options import has_kinds
    from pytest_regen.pytest_plugin.project import stores_in_config

    choices, mark, is_test = choices_of(item.config), regen_mark(item), not hasattr(item, "unit")
    uses_store = "regen_store" in getattr(item, "fixturenames", ())
    is_bare = is_test and not (mark.units or mark.types or mark.store or uses_store)
    # It may be about a store of a project that has one, or that has no kinds at all.
    if is_bare and not stores_in_config(item.config) and has_kinds(item.config):
        record_of(item).notes.append(
            f"{item.nodeid}: its mark names no unit that --regen could ask for; "
            'for instance: @pytest.mark.regen(unit="src/a.py::f")'
        )
        return failure
    if choices.heal or choices.dry_run:
        from pytest_regen.pytest_plugin.healing.heal import heal_units

        return heal_units(item, failure)
    from pytest_regen.pytest_plugin.healing.feedback import is_feedback
    from pytest_regen.pytest_plugin.names import cassette_of_test, heal_command

    record = choices.record_option
    if record not in {None, "none"}:
        note = f"--regen-record {record} alone records what tests send; --regen heals what fails"
        record_of(item).notes.append(note)
    if is_test and (mark.units or (mark.types and is_feedback(failure))):
        # Not as a note of the failure, which would be told to the model.
        cassette = cassette_of_test(item)
        record_of(item).next = heal_command(item.config, item.nodeid, cassette)
    return failure


def trim_traceback(
    item: pytest.Item, failure: pytest.ExceptionInfo[BaseException]
) -> pytest.ExceptionInfo[BaseException]:
    """Return how a test of a session failed, to the last line of the project.

    Our own lines below it, and the errors of libraries that caused it, do not help a reader.
    ``--full-trace`` shows them.
    """
    error = failure.value
    if not isinstance(error, RegenError) or item.config.option.fulltrace:
        return failure
    lines = project_frames(item, error.__traceback__)
    if lines is None:
        return failure
    error.__cause__, error.__suppress_context__ = None, True
    return pytest.ExceptionInfo.from_exception(error.with_traceback(lines))
