"""Hooks that only runs with cassettes need: misses shown as such, notes for the summary."""

from collections.abc import Generator
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, cast

import pytest

from pytest_regen.errors import CassetteError, CassetteMissError
from pytest_regen.pytest_plugin.healing.retry import project_frames
from pytest_regen.pytest_plugin.recording.log import cassette_log
from pytest_regen.pytest_plugin.stash import CASSETTE, VCR_RUN
from pytest_regen.turns.interception import CassetteMiss

_NAME = "regen-cassettes"


def cassette_hooks(config: pytest.Config) -> None:
    """Register the hooks, once; the first test that uses a cassette calls this in its set-up."""
    if not config.pluginmanager.has_plugin(_NAME):
        config.pluginmanager.register(_CassetteHooks(), _NAME)


class _CassetteHooks:
    """What happens around the call of a test whose cassette is in use."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail with the miss itself, whatever a client made of it on its way to the test."""
        error: BaseException | None = None
        try:
            result = yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except BaseException as caught:  # noqa: BLE001 - the miss itself is one
            error, result = caught, None
        missed = _unreported_miss(item, error)
        if missed is not None and error is None:
            raise missed
        if missed is not None and error is not None:
            # The test noticed: its lines are the ones to show.
            raise missed.with_traceback(error.__traceback__)
        if error is not None:
            raise error
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Turn a miss into an ordinary error once it has left a coroutine.

        anyio runs the tests and fixtures of a module in one task. A BaseException ends that task,
        and the tests that follow find it gone.
        """
        test = pyfuncitem.obj
        is_marked = CASSETTE in pyfuncitem.stash or VCR_RUN in pyfuncitem.stash
        # hypothesis calls the function inside.
        if not is_marked or not iscoroutinefunction(test) or hasattr(test, "hypothesis"):
            return (yield)

        @wraps(test)
        async def raising_errors(*args: object, **options: object) -> object:
            try:
                return await test(*args, **options)
            except BaseException as caught:
                miss = _carried_error(caught)
                if miss is None:
                    raise
                error = miss.with_traceback(caught.__traceback__)
            raise error

        pyfuncitem.obj = raising_errors
        try:
            return (yield)
        finally:
            pyfuncitem.obj = test

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Turn a miss into an ordinary error once it has left the fixture that asked.

        A miss is a ``BaseException``, so that no client retries it and no task group wraps it; but
        pytest remembers only of an ``Exception`` that the fixture failed.
        """
        try:
            return (yield)
        except BaseException as caught:
            miss = _carried_error(caught)
            if miss is None:
                raise
            error = miss.with_traceback(caught.__traceback__)
        # pytest itself notes only an Exception. Without a note `finish` does nothing, the fixture
        # keeps its finalizers, and the next test that wants it ends in `assert not _finalizers`.
        key = fixturedef.cache_key(cast("Any", request))
        fixturedef.cached_result = (None, key, (error, error.__traceback__))
        raise error

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let misses be ordinary errors from here on.

        Where a fixture's end raises a BaseException, pytest skips the ends of the other fixtures,
        and the cassette would stay in use.
        """
        for run in (item.stash.get(CASSETTE, None), item.stash.get(VCR_RUN, None)):
            if run is not None:
                run.signals_misses = False
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show what is missing at the line that asked for it, and in the line of the summary."""
        miss, has_lines = None, False
        if call.excinfo is not None:
            error = call.excinfo.value
            miss = _unreported_miss(item, error) if call.when == "setup" else None
            miss = miss or _cassette_error(error)
        if miss is not None:
            has_lines = _show(item, call, miss)
        report = yield
        # Not before: whether a test is skipped, or fails as expected, goes by what it raised, and
        # of a test of unittest only pytest's own hook knows that.
        run = item.stash.get(VCR_RUN, None)
        if run is not None and miss is None and report.failed and call.excinfo is not None:
            miss = run.take_pending_miss(call.excinfo.value)
            if miss is not None:
                cassette_log(item.config).note_miss(item, run.path, miss)
                has_lines = _show(item, call, miss)
                report.longrepr = pytest.TestReport.from_item_and_call(item, call).longrepr
        if miss is None or call.excinfo is None:
            return report
        if not has_lines:
            report.longrepr = call.excinfo.getrepr(style="value")
        # Else the summary would start with the name of our class.
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            crash.message = str(call.excinfo.value)
        if crash is not None and not has_lines:
            # Only lines of our own are left, which would not help a reader.
            path, line, _ = item.reportinfo()
            crash.path, crash.lineno = str(path), (line or 0) + 1
        return report


def _show(item: pytest.Item, call: pytest.CallInfo[None], error: BaseException) -> bool:
    """Put an error where pytest looks for it, at the lines of the project that asked.

    Returns:
        Whether there are such lines.
    """
    traceback = call.excinfo.value.__traceback__ if call.excinfo else None
    lines = traceback if item.config.option.fulltrace else project_frames(item, traceback)
    call.excinfo = pytest.ExceptionInfo.from_exception(error.with_traceback(lines or traceback))
    return lines is not None


def _carried_error(error: BaseException) -> CassetteError | None:
    """Return the error to raise instead of a BaseException that carries one."""
    return None if isinstance(error, Exception) else _cassette_error(error)


def _cassette_error(error: BaseException) -> CassetteError | None:
    """Return the cassette error that an exception is, carries, or holds in a group."""
    if isinstance(error, CassetteMiss):
        return error.error
    if isinstance(error, CassetteError):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next(filter(None, map(_cassette_error, inner)), None)


def _unreported_miss(item: pytest.Item, failure: BaseException | None) -> CassetteError | None:
    """Return the first miss that the test did not raise itself, and note it for the summary."""
    run = item.stash.get(CASSETTE, None)
    if run is None:
        # There a miss is vcrpy's exception, which the test may handle.
        return None
    missed = run.take_pending_miss()
    reported = missed or failure
    if isinstance(reported, CassetteMissError):
        cassette_log(item.config).note_miss(item, run.path, reported)
    return missed
