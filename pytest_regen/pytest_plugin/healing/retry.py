"""Whether a failing item is called again, and what for: its sessions, or the types it is about."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin.stash import SESSION_MAKERS
from pytest_regen.pytest_plugin.summary import note_command

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.healing.ahead import Asked
    from pytest_regen.regeneration import TurnSettings
    from pytest_regen.regeneration.queue import Flow

_PACKAGE: Final = Path(__file__).parents[2]


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
    while steps and not _is_own(Path(steps[-1].tb_frame.f_code.co_filename), item):
        steps.pop()
    shown = None
    for step in reversed(steps):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return shown


@cache
def _library_folders() -> tuple[Path, ...]:
    """Return where packages and the standard library lie."""
    import sysconfig

    names = ("purelib", "platlib", "stdlib", "platstdlib")
    return tuple(Path(sysconfig.get_path(name)) for name in names)


def _is_own(file: Path, item: pytest.Item) -> bool:
    if file == item.path:
        return True
    if file.is_relative_to(_PACKAGE) or any(map(file.is_relative_to, _library_folders())):
        return False
    return file.is_relative_to(item.config.rootpath)


def heal_item(item: pytest.Item, failure: BaseException) -> BaseException | None:
    """Return the failure that is left of an item marked ``regen``; ``None`` if it passes now.

    Sessions take their next turn without an option, because nothing is written. With a debugger
    nothing is healed: whoever asked for it wants to see the failure. ``pytest.xfail`` and
    ``pytest.exit`` say themselves what is to become of the item.
    """
    if isinstance(failure, pytest.xfail.Exception | pytest.exit.Exception):
        return failure
    if getattr(item.config.option, "usepdb", False) or not _may_call_again(item):
        return failure
    if item.stash.get(SESSION_MAKERS, None):
        from pytest_regen.pytest_plugin.healing.sessions import (
            heal_sessions,
        )

        return heal_sessions(item, failure)
    return _heal_types(item, failure)


def _heal_types(item: pytest.Item, failure: BaseException) -> BaseException | None:
    from pytest_regen.pytest_plugin.choices import choices_of, regen_mark

    choices = choices_of(item.config)
    if not _is_ours(item) and (note := _missing_name(item)):
        note_command(item, None, note)
        return failure
    if not (choices.heal or choices.dry_run):
        _tell_command(item, failure)
        return failure
    if choices.heal and not choices.dry_run and _is_ours(item):
        _begin_ahead(item, choices.jobs)
    if hasattr(item, "unit") or regen_mark(item).units:
        from pytest_regen.pytest_plugin.healing.units import heal_units

        return heal_units(item, failure)
    from pytest_regen.pytest_plugin.healing.types import heal_types

    return heal_types(item, failure)


def _tell_command(item: pytest.Item, failure: BaseException) -> None:
    """Say which command asks for what a failing item is about."""
    from pytest_regen.pytest_plugin.choices import choices_of, regen_mark
    from pytest_regen.pytest_plugin.healing.feedback import is_feedback
    from pytest_regen.pytest_plugin.names import cassette_of_test, heal_command

    record = choices_of(item.config).record_option
    if record not in {None, "none"}:
        note = f"--regen-record {record} alone records what tests send; --regen heals what fails"
        note_command(item, None, note)
    mark = regen_mark(item)
    if not _is_ours(item) and (mark.units or (mark.types and is_feedback(failure))):
        # Not as a note of the failure, which would be told to the model.
        note_command(item, heal_command(item.config, item.nodeid, cassette_of_test(item)))


def _missing_name(item: pytest.Item) -> str:
    """Return that a bare mark means nothing in a project without stores; empty where it does."""
    from pytest_regen.pytest_plugin.choices import regen_mark
    from pytest_regen.pytest_plugin.options import has_kinds
    from pytest_regen.pytest_plugin.selection import stores_in_config

    mark, config = regen_mark(item), item.config
    has_store = "regen_store" in getattr(item, "fixturenames", ()) or stores_in_config(config)
    if mark.units or mark.types or mark.store or has_store or not has_kinds(config):
        return ""
    from pytest_regen.pytest_plugin.units import first_unit

    unit = first_unit(config)
    return unit and (
        f"{item.nodeid}: its mark names no unit that --regen could ask for; "
        f'for instance: @pytest.mark.regen(unit="{unit}")'
    )


def _is_ours(item: pytest.Item) -> bool:
    """Return whether an item is a type or a unit, and no test of the user's."""
    from pytest_regen.pytest_plugin.items import TypeItem
    from pytest_regen.pytest_plugin.units import UnitItem

    return isinstance(item, TypeItem | UnitItem)


def _begin_ahead(item: pytest.Item, jobs: int) -> None:
    """Begin the work on this item, and on those to come that fail as well.

    Not where the run may end before their turn: nothing is paid that may not be needed.
    """
    from pytest_regen.pytest_plugin.units import UnitItem, waves_of

    if jobs == 1 and not (isinstance(item, UnitItem) and item.check.file.has_users):
        return
    option = item.config.option
    if item.config.getvalue("maxfail") or getattr(option, "stepwise", False):
        return
    from pytest_regen.pytest_plugin.choices import choices_of
    from pytest_regen.pytest_plugin.healing.ahead import begin_ahead
    from pytest_regen.pytest_plugin.healing.types import flow_of_type
    from pytest_regen.pytest_plugin.healing.units import flow_of_unit
    from pytest_regen.pytest_plugin.providers import provider_of, settings_of_run

    def waves(items: Sequence[pytest.Item]) -> Sequence[Sequence[pytest.Item]]:
        ours = [each for each in items if _is_ours(each) and not _may_be_skipped(each)]
        return waves_of([each for each in ours if jobs > 1 or each.path == item.path])

    def flow_of(of: pytest.Item, failure: BaseException) -> "Flow[Asked] | None":
        return (flow_of_unit if hasattr(of, "unit") else flow_of_type)(of, failure)

    def settings() -> "TurnSettings":
        provider = provider_of(item, of_types=not hasattr(item, "unit"))
        return settings_of_run(item.config, provider, choices_of(item.config).jobs)

    begin_ahead(item, waves, flow_of, settings)


def _may_be_skipped(item: pytest.Item) -> bool:
    marks = ("skip", "skipif", "xfail")
    return any(item.get_closest_marker(name) is not None for name in marks)


def _may_call_again(item: pytest.Item) -> bool:
    # pytest-rerunfailures starts the whole item again; healing it twice would pay twice.
    return getattr(item, "execution_count", 1) <= 1 and not item.get_closest_marker("xfail")


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
