"""Options, ini values and markers as pytest registers them; whether a run uses any of them."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.modes import RECORD_MODES
from pytest_regen.pytest_plugin.stash import TRIAL_PLUGIN

if TYPE_CHECKING:
    from pytest_regen.settings import Settings

FAIL_ON = ("auto", "regenerated", "never")

_TABLE = rb"""(?m)(?:^|\btool\s*\.)\s*["']?pytest[-_]regen["']?\s*[].=]"""
"""What a file with the table has in it, however that is written, and few other files do."""
_OWN_FILES = (".pytest-regen.toml", "pytest-regen.toml", ".pytest_regen.toml", "pytest_regen.toml")
"""What the file without pyproject.toml is called, or may be by mistake."""

_SETTINGS: "pytest.StashKey[Settings | None]" = pytest.StashKey()

MARKERS = (
    (
        "regen(store=None, types=None, attempts=None, on=None, unit=None): with --regen, the "
        "failure of this test goes to the model, which writes the units or types again; then the "
        "test runs again. "
        "Sessions of generator_session and scenario_session take another turn without the option."
    ),
    (
        "cassette(name=None, record=None, drift=None, unplayed=None, ignore=None, normalize=None, "
        "keep_headers=None, drop_headers=None, passthrough_hosts=None): file, record mode and "
        "matching of the test's `cassette` fixture."
    ),
)


_OPTIONS = {
    "--regen": "Regenerate what fails, with its failure as the feedback, and try again.",
    "--regen-pending": "With --regen: store nothing; what would be kept waits for pytest-regen "
    "review.",
    "--regen-only=STORE::TYPE[,...]": "Regenerate only these; globs are allowed, and each must "
    "match something.",
    "--regen-attempts=N": "Calls of a test, the first included (default: 2).",
    "--regen-jobs=N": "Requests under way at the same time for types and units that fail (default: "
    "1).",
    "--regen-model=MODEL": "Model that regenerates.",
    "--regen-provider=NAME": "Who answers: anthropic:MODEL, openai:MODEL, ollama:MODEL, "
    "litellm:SERVICE/MODEL or MODULE:ATTR; or template, which writes types without a model.",
    "--regen-dry-run": "Say what --regen would ask for, and ask for nothing.",
    "--regen-ignore-stale": "Regenerate from stored prompts although the IR has changed since.",
    "--regen-record=MODE": "Record mode of every cassette (default: none, which replays and "
    "reaches nothing).",
    "--regen-drop-unplayed": "While recording, drop recordings that a passing test did not ask "
    "for.",
    "--regen-keep-failed": "While recording, keep in the cassette what a failing test recorded.",
    "--regen-budget=TOKENS": "Tokens that all workers together may spend; required for live calls "
    "in CI.",
    "--regen-report=FILE": "Write a report to FILE: HTML for people (.html), or JSON for programs "
    "(.json).",
}
"""What ``--help`` says of each, by its name and what it takes."""

_INI_LISTS = {
    "regen_stores": "globs from the rootdir; each store they match is collected",
    "regen_passthrough_hosts": "hosts whose requests are neither recorded nor replayed nor missed",
}
_INI_TEXTS = {
    "regen_model": "model that regenerates (also --regen-model)",
    "regen_attempts": "calls of a test, the first included",
    "regen_jobs": "requests at the same time (also --regen-jobs)",
    "regen_record": "record mode (also --regen-record)",
    "regen_drift": "a request that is not what was recorded: fail, warn or ignore",
    "regen_unplayed": "recordings that a passing test did not ask for: fail, warn or ignore",
    "regen_stale": "a type that is older than its document: auto (fail in CI, else warn), fail, "
    "warn or ignore",
    "regen_behaviour": "whether generated types are run with JSON of the document: auto (where "
    "what it takes is there) or off",
    "regen_annotations": "whether what is wrong is printed as annotations of GitHub: auto (where "
    "GitHub Actions runs this), never or always",
    "regen_fail_on": "when a run without failures exits with 1: auto (in CI, if it changed a "
    "file or store), regenerated (anywhere, if a test passed only after regeneration), never",
}


def add_options(parser: pytest.Parser) -> None:
    """Register what a user can say, on the command line and in the ini file."""
    group = parser.getgroup("regen", "regenerating what language models wrote")
    for entry, text in _OPTIONS.items():
        name, _, value = entry.partition("=")
        settings: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
        if name == "--regen":
            settings["dest"] = "regen_heal"
        elif name == "--regen-only":
            settings.update(action="append", default=[])
        elif name == "--regen-record":
            # No default: it must not win over a marker or the ini file.
            settings = {"choices": RECORD_MODES}
        elif value in {"N", "TOKENS"}:
            settings["type"] = int
        group.addoption(name, help=text, **settings)
    for name, text in _INI_LISTS.items():
        parser.addini(name, text, "linelist", [])
    for name, text in _INI_TEXTS.items():
        parser.addini(name, text, "string", "auto" if name == "regen_fail_on" else "")


def is_used(config: pytest.Config) -> bool:
    """Return whether this run uses the plugin: a store, units, or one of its options."""
    if config.pluginmanager.has_plugin(TRIAL_PLUGIN):
        # One test is called; nothing else is collected that would have to be loaded for it.
        return False
    option, files = config.option, ("pages.json", "prompts.json")
    return bool(
        option.regen_heal
        or option.regen_dry_run
        or option.regen_only
        or option.regen_record
        or option.regen_budget
        or option.regen_report is not None
        # Tests of sessions are counted without any other option.
        or config.getini("regen_fail_on") == "regenerated"
        # A store that is named needs no setting.
        or any(
            Path(arg.partition("::")[0], file).is_file() for arg in config.args for file in files
        )
        or has_kinds(config)
        or store_globs(config)
        or other_places()
    )


def other_places() -> Sequence[str]:
    """Return the modules of registered places that are neither stores nor files with units."""
    # Whoever registered one has loaded the module.
    places = sys.modules.get("pytest_regen.regeneration.places")
    modules: Sequence[str] = places.PLACES[2:] if places else ()
    return modules


def store_globs(config: pytest.Config) -> dict[str, str]:
    """Return the globs of stores, and which setting each comes from."""
    settings = table_of(config)
    globs = dict.fromkeys(settings.stores if settings else (), "[tool.pytest-regen] stores")
    return globs | dict.fromkeys(config.getini("regen_stores"), "regen_stores")


def has_kinds(config: pytest.Config) -> bool:
    """Return whether the project may have units, at the price of reading a few files.

    A ledger is enough: without settings nothing of what it holds would be tested.
    """
    settings = table_of(config)
    return (
        (settings is not None and bool(settings.kinds or settings.shipped))
        or any((config.rootpath / ".regen" / name).is_dir() for name in ("units", "hand"))
        or any(map(_has_kind_packages, sys.path))
    )


def table_of(config: pytest.Config) -> "Settings | None":
    """Return what ``[tool.pytest-regen]`` says; ``None``, and nothing imported, without a table.

    Raises:
        pytest.UsageError: it cannot be read, a key of it is wrong, or nothing reads it.
    """
    if _SETTINGS in config.stash:
        return config.stash[_SETTINGS]
    root, start = config.rootpath, config.invocation_params.dir
    # A table in a folder of this run below the root is not read, which must be told. Where no file
    # made it the root, one in a folder above it is not read either.
    below = {Path(os.path.normpath(start / arg.partition("::")[0])) for arg in config.args}
    folders = {root: _may_have_table(root)}
    for path in below | ({start} if start.is_relative_to(root) else set()):
        for folder in (path, *path.parents):
            if folder == root and config.inipath is not None:
                break
            if folder not in folders:
                folders[folder] = _may_have_table(folder)
    config.stash[_SETTINGS] = None
    if any(folders.values()):
        from pytest_regen.errors import UsageError
        from pytest_regen.settings import read_settings
        from pytest_regen.settings_files import refuse_unread

        try:
            refuse_unread(root, [path for path, has in folders.items() if has and path != root])
            config.stash[_SETTINGS] = read_settings(root)
        except UsageError as error:
            raise plain_usage_error(str(error)) from None
    return config.stash[_SETTINGS]


def _may_have_table(folder: Path) -> bool:
    """Return whether a folder may hold settings: only then is what parses TOML imported."""
    if any((folder / name).is_file() for name in _OWN_FILES):
        return True
    try:
        text = (folder / "pyproject.toml").read_bytes()
    except OSError:
        return False
    # Compiled only then, because compiling takes longer than all else that is done here.
    return b"regen" in text and re.search(_TABLE, text) is not None


def _has_kind_packages(folder: str) -> bool:
    """Return whether a package that registers kinds is installed in a folder of ``sys.path``.

    ``importlib.metadata`` does the same ten times as slowly, in every run of every suite.
    """
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            if entry.name.endswith((".dist-info", ".egg-info")):
                # Not open(), because it makes a buffer and a decoder for each of hundreds of files.
                with suppress(OSError), FileIO(f"{entry.path}/entry_points.txt") as points:
                    if b"[pytest_regen.kinds]" in points.read():
                        return True
    return False


_WHOLE = "pytest_regen_is_whole"


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
