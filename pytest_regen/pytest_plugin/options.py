"""Options, ini values and markers as pytest registers them; whether a run uses any of them."""

import os
import sys
from pathlib import Path
from typing import Literal, get_args

import pytest

from pytest_regen.modes import RECORD_MODES

__all__ = [
    "FAIL_ON",
    "MARKERS",
    "FailOn",
    "add_markers",
    "add_options",
    "is_plain",
    "is_used",
    "plain_usage_error",
    "usage_error",
]


FailOn = Literal["auto", "regenerated", "never"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)

_KIND_KEYS = (b"kinds", b"functions", b"translations")
"""Keys of ``[tool.pytest-regen]`` that bring kinds of units."""

MARKERS = (
    (
        "regen(store=None, types=None, attempts=None, on=None, unit=None): with --regen, what this "
        "test fails with is the feedback with which types of the store, or units, are regenerated; "
        "then it runs again. "
        "Sessions of generator_session and scenario_session take another turn without the option."
    ),
    (
        "cassette(name=None, record=None, drift=None, unplayed=None, ignore=None, normalize=None, "
        "keep_headers=None, drop_headers=None, passthrough_hosts=None): file, record mode and "
        "matching of the test's `cassette` fixture."
    ),
)


def add_options(parser: pytest.Parser) -> None:
    """Register what a user can say, on the command line and in the ini file."""
    group = parser.getgroup("regen", "regenerating what language models wrote")
    _add_healing(group)
    _add_ways(group)
    _add_recording(group)
    _add_report(group)
    parser.addini(
        "regen_stores", "globs from the rootdir; each store they match is collected", "linelist", []
    )
    parser.addini("regen_model", "model that regenerates (also --regen-model)", "string", "")
    parser.addini("regen_attempts", "calls of a test, the first included", "string", "")
    parser.addini("regen_jobs", "requests at the same time (also --regen-jobs)", "string", "")
    parser.addini("regen_record", "record mode (also --regen-record)", "string", "")
    parser.addini(
        "regen_drift", "a request that is not what was recorded: fail, warn or ignore", "string", ""
    )
    parser.addini(
        "regen_unplayed",
        "recordings that a passing test did not ask for: fail, warn or ignore",
        "string",
        "",
    )
    parser.addini(
        "regen_passthrough_hosts",
        "hosts whose requests are neither recorded nor replayed nor missed",
        "linelist",
        [],
    )
    parser.addini(
        "regen_stale",
        "a type that is older than its document: auto (fail in CI, else warn), fail, warn or "
        "ignore",
        "string",
        "",
    )
    parser.addini(
        "regen_behaviour",
        "whether generated types are run with JSON of the document: auto (where what it takes is "
        "there) or off",
        "string",
        "",
    )
    parser.addini(
        "regen_annotations",
        "whether what is wrong is printed as annotations of GitHub: auto (where GitHub Actions "
        "runs this), never or always",
        "string",
        "",
    )
    parser.addini(
        "regen_fail_on",
        "when a run without failures exits with 1: auto (in CI, if it changed a store), "
        "regenerated (anywhere, if a test passed only after regeneration), never",
        "string",
        "auto",
    )


def _add_healing(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--regen",
        action="store_true",
        dest="regen_heal",
        help="Regenerate what fails, with its failure as the feedback, and try again.",
    )
    group.addoption(
        "--regen-pending",
        action="store_true",
        dest="regen_pending",
        help="With --regen: store nothing; what would be kept waits for pytest-regen review.",
    )
    group.addoption(
        "--regen-only",
        action="append",
        default=[],
        dest="regen_only",
        metavar="STORE::TYPE[,...]",
        help="Regenerate only these; globs are allowed, and each must match something.",
    )


def _add_ways(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--regen-attempts",
        type=int,
        default=None,
        dest="regen_attempts",
        metavar="N",
        help="Calls of a test, the first included (default: 2).",
    )
    group.addoption(
        "--regen-jobs",
        type=int,
        default=None,
        dest="regen_jobs",
        metavar="N",
        help="Requests under way at the same time for types and units that fail (default: 1).",
    )
    group.addoption(
        "--regen-model",
        default=None,
        dest="regen_model",
        metavar="MODEL",
        help="Model that regenerates.",
    )
    group.addoption(
        "--regen-provider",
        default=None,
        dest="regen_provider",
        metavar="NAME",
        help="Who answers: anthropic:MODEL, openai:MODEL, ollama:MODEL, litellm:SERVICE/MODEL or "
        "MODULE:ATTR; or template, which writes types without a model.",
    )
    group.addoption(
        "--regen-dry-run",
        action="store_true",
        dest="regen_dry_run",
        help="Say what --regen would ask for, and ask for nothing.",
    )
    group.addoption(
        "--regen-ignore-stale",
        action="store_true",
        dest="regen_ignore_stale",
        help="Regenerate from stored prompts although the IR has changed since.",
    )


def _add_report(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--regen-report",
        default=None,
        dest="regen_report",
        metavar="FILE",
        help="Write a report to FILE: HTML for people (.html), or JSON for programs (.json).",
    )


def _add_recording(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--regen-record",
        choices=RECORD_MODES,
        # None rather than "none": a default must not win over a marker or the ini file.
        default=None,
        dest="regen_record",
        help="Record mode of every cassette (default: none, which replays and reaches nothing).",
    )
    group.addoption(
        "--regen-drop-unplayed",
        action="store_true",
        dest="regen_drop_unplayed",
        help="While recording, drop recordings that a passing test did not ask for.",
    )
    group.addoption(
        "--regen-keep-failed",
        action="store_true",
        dest="regen_keep_failed",
        help="While recording, keep in the cassette what a failing test recorded.",
    )
    group.addoption(
        "--regen-budget",
        type=int,
        default=None,
        dest="regen_budget",
        metavar="TOKENS",
        help="Tokens that all workers together may spend; required for live calls in CI.",
    )


def add_markers(config: pytest.Config) -> None:
    """Make the markers known to ``--strict-markers`` and ``--markers``."""
    for line in MARKERS:
        config.addinivalue_line("markers", line)


def is_used(config: pytest.Config) -> bool:
    """Return whether this run uses the plugin: a store, units, or one of its options."""
    option = config.option
    return bool(
        config.getini("regen_stores")
        or option.regen_heal
        or option.regen_dry_run
        or option.regen_only
        or option.regen_record
        or option.regen_budget
        or option.regen_report is not None
        # Tests of sessions are counted without any other option.
        or config.getini("regen_fail_on") == "regenerated"
        or any(map(_names_a_store, config.args))
        or has_kinds(config)
    )


def has_kinds(config: pytest.Config) -> bool:
    """Return whether the project may have units, at the price of reading a few files.

    A ledger is enough: without settings nothing of what it holds would be tested.
    """
    try:
        table = (config.rootpath / "pyproject.toml").read_bytes()
    except OSError:
        table = b""
    return (
        (b"pytest-regen" in table and any(key in table for key in _KIND_KEYS))
        or any((config.rootpath / ".regen" / name).is_dir() for name in ("units", "hand"))
        or any(map(_has_kind_packages, sys.path))
    )


def _has_kind_packages(folder: str) -> bool:
    """Return whether a package that registers kinds is installed in a folder of ``sys.path``.

    ``importlib.metadata`` does the same ten times as slowly, in every run of every suite.
    """
    try:
        with os.scandir(folder or ".") as entries:
            found = [
                entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))
            ]
    except OSError:
        return False
    return any(_registers_kinds(f"{path}/entry_points.txt") for path in found)


def _registers_kinds(file: str) -> bool:
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - some forty of them in every run
            return b"[pytest_regen.kinds]" in opened.read()
    except OSError:
        return False


def _names_a_store(arg: str) -> bool:
    folder = Path(arg.partition("::")[0])
    return (folder / "pages.json").is_file() or (folder / "prompts.json").is_file()


_WHOLE = "pytest_regen_told_whole"


def usage_error(what: str, *, why: str = "", hint: str) -> pytest.UsageError:
    """Return pytest's own error with our three lines: what happened, why, and what to do next."""
    from pytest_regen.errors import UsageError

    return plain_usage_error(str(UsageError(what, why=why, hint=hint)))


def plain_usage_error(text: str) -> pytest.UsageError:
    """Return pytest's own error; its text is all there is to show of it."""
    error = pytest.UsageError(text)
    setattr(error, _WHOLE, True)
    return error


def is_plain(error: BaseException | None) -> bool:
    """Return whether an error is one of these, which need no traceback."""
    return getattr(error, _WHOLE, False)
