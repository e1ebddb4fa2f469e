"""Commands that messages name as the next step, ready for the shell in which pytest was called."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen.pytest_plugin.cassettes.names import cassette_of_type, mode_to_record
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.locate import id_from_here
from pytest_regen.validation.issues import Issue, ValidationResult

if TYPE_CHECKING:
    from pytest_regen.pytest_plugin.checks import StoreCheck

__all__ = [
    "adopt_command",
    "again_command",
    "can_be_kept",
    "heal_command",
    "is_edited",
    "is_stale",
    "mending_command",
    "node_command",
    "rebuild_command",
    "recording_command",
    "regenerate_command",
]


def node_command(config: pytest.Config, *nodeids: str, options: Sequence[str] = ()) -> str:
    """Return the command that runs just these nodes."""
    named = (id_from_here(nodeid, config) for nodeid in nodeids)
    return " ".join(map(shlex.quote, ["pytest", *named, *options]))


def heal_command(config: pytest.Config, nodeid: str, cassette: Path) -> str:
    """Return the command that heals one node.

    What was never recorded cannot be replayed: the command records it.
    """
    record = () if cassette.exists() else ("--regen-record", "once")
    return node_command(config, nodeid, options=("--regen", *record))


def again_command(
    config: pytest.Config, nodeid: str, cassette: Path, *options: str, budget: int | None = None
) -> str:
    """Return the command that tries once more to heal a node, as this run did.

    Args:
        config: pytest's configuration.
        nodeid: the item.
        cassette: where its turns are recorded.
        options: what is to be different.
        budget: tokens, where those of this run were too few.
    """
    choices = choices_of(config)
    chosen = choices.record_mode()
    # What this run recorded is there now, and `once` adds nothing to a file.
    mode = mode_to_record(cassette) if chosen == "once" else chosen
    repeated = ["--regen"]
    if mode != "none":
        repeated += ["--regen-record", mode]
    if choices.ignore_stale:
        repeated += ["--regen-ignore-stale"]
    limit = budget or choices.budget
    if limit is not None:
        repeated += ["--regen-budget", str(limit)]
    named = {"--regen-attempts": config.option.regen_attempts, "--regen-model": _model(config)}
    for name, value in named.items():
        if value is not None and name not in options:
            repeated += [name, str(value)]
    return node_command(config, nodeid, options=(*repeated, *options))


def recording_command(config: pytest.Config, nodeid: str, cassette: Path, *options: str) -> str:
    """Return the command that heals one node with answers that were not recorded so far."""
    budget = choices_of(config).budget
    limit = () if budget is None else ("--regen-budget", str(budget))
    record = ("--regen", "--regen-record", mode_to_record(cassette))
    return node_command(config, nodeid, options=(*record, *limit, *options))


def _model(config: pytest.Config) -> str | None:
    model: str | None = config.option.regen_model
    return model


def regenerate_command(place: str, type_name: str, page: int | None = None) -> str:
    """Return the command that regenerates just this page, or the type."""
    command = f"pytest-regen regenerate {shlex.quote(place)} --type {shlex.quote(type_name)}"
    return f"{command} --page {page}" if page is not None else command


def adopt_command(place: str, type_name: str) -> str:
    """Return the command that makes a type as it was edited by hand the stored one."""
    return f"pytest-regen adopt {shlex.quote(place)} --type {shlex.quote(type_name)}"


def rebuild_command(place: str, type_name: str) -> str:
    """Return the command that drops an edit: the block is written from its stored pages."""
    return f"pytest-regen rebuild {shlex.quote(place)} --type {shlex.quote(type_name)}"


def mending_command(check: "StoreCheck", type_name: str, issues: Iterable[Issue]) -> str:
    """Return the command that mends a type with these errors; empty where only an editor can.

    An edit by hand is not regenerated, but kept or dropped; one that has errors itself is dropped.
    A stale type is updated first, for its stored prompt is the old one.
    """
    # Tests of cassettes ask for commands, too, and load no stores.
    from pytest_regen.regeneration import fixable  # noqa: PLC0415 - as said
    from pytest_regen.validation.freshness import update_command  # noqa: PLC0415 - as said

    issues = tuple(issues)
    result = ValidationResult.of(issues)
    if is_edited(issues):
        keep = can_be_kept(issues) and not fixable(result)
        return (adopt_command if keep else rebuild_command)(check.here, type_name)
    if is_stale(issues) or any(issue.code == "EDITED_PROMPT" for issue in issues):
        return update_command(check.store)
    if any(issue.code == "CONFLICT" and issue.file is None for issue in issues):
        return f"pytest-regen rebuild {shlex.quote(check.here)}"
    # Issues of a hook's own are errors that are fed back, too.
    if not fixable(result):
        return ""
    cassette = cassette_of_type(check.config, check.path, type_name)
    return heal_command(check.config, f"{check.place}::{type_name}", cassette)


def is_stale(issues: Iterable[Issue]) -> bool:
    """Return whether a type with these issues was made for an older document."""
    return any(issue.code == "STALE" for issue in issues)


def can_be_kept(issues: Iterable[Issue]) -> bool:
    """Return whether an edit by hand can be adopted: where the block is gone, nothing can be."""
    drift = [issue for issue in issues if issue.code == "DRIFT"]
    return all(issue.line is not None or issue.file is not None for issue in drift)


def is_edited(issues: Iterable[Issue]) -> bool:
    """Return whether a type with these errors was edited by hand, and so is left alone."""
    return any(issue.code == "DRIFT" for issue in issues)
