"""The file that ``--regen-report`` names: tried before the run, written in one step after it."""

import os
import tempfile
from pathlib import Path

import pytest

from pytest_regen.atomic import replace_file
from pytest_regen.pytest_plugin.usage_errors import usage_error

__all__ = ["SUFFIXES", "report_path", "write_report"]

SUFFIXES = (".html", ".json")


def report_path(config: pytest.Config) -> Path:
    """Return the file that the report goes to; its folder is made and can be written.

    Raises:
        pytest.UsageError: the ending is no format, or nothing can be written there.
    """
    given = config.option.regen_report
    path = Path(
        os.path.normpath(config.invocation_params.dir / os.path.expanduser(given))  # noqa: PTH111
    )
    if path.suffix.lower() not in SUFFIXES:
        better = Path(given).with_suffix(".html") if Path(given).name else "report.html"
        raise usage_error(
            f"--regen-report {given}: no report ends in {path.suffix!r}",
            why=f"the ending chooses the format: {' or '.join(SUFFIXES)}",
            hint=f"--regen-report {better}",
        )
    try:
        if path.is_dir():
            raise _refused(given, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only writing tells whether one may write; hours later is too late to learn it.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _refused(given, error.strerror or str(error)) from None
    return path


def write_report(path: Path, text: str) -> None:
    """Write the report, whole or not at all.

    Raises:
        OSError: it cannot be written; an older report is as it was.
    """
    # The folder may have been cleared away by a test.
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)


def _refused(given: str, why: str) -> pytest.UsageError:
    return usage_error(
        f"--regen-report {given} cannot be written",
        why=why,
        hint="name a file in a folder that can be written",
    )
