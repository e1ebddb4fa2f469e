"""What the user chose for this run, from options, marks, ini values and settings.

Precedence, highest first: option, marker, ini value, ``[tool.pytest-regen]``, default.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_regen.modes import (
    ANNOTATION_POLICIES,
    BEHAVIOUR_POLICIES,
    POLICIES,
    RECORD_MODES,
    STALE_POLICIES,
    TEMPLATE,
    AnnotationPolicy,
    FindingPolicy,
    RecordMode,
    StalePolicy,
    effective_provider,
    is_ci,
    named_model,
    stale_outcome,
)
from pytest_regen.pytest_plugin.options import FAIL_ON, FailOn, usage_error

if TYPE_CHECKING:
    from pytest_regen.settings import Settings
    from pytest_regen.validation.issues import Issue, ValidationResult


T = TypeVar("T", bound=str)

_RECORD = ("--regen-record", "--record-mode")

DEFAULT_ATTEMPTS = 2
"""Calls of a test, the first included."""

_CHOICES: "pytest.StashKey[Choices]" = pytest.StashKey()


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices that hold for the whole run."""

    settings: "Settings"
    heal: bool
    """Whether failing units are regenerated: ``--regen`` stands on the command line itself."""
    may_record: bool
    """Whether a live call may be made, as far as the command line goes."""
    pending: bool
    """Whether what would be kept waits for review, and nothing is stored."""
    only: tuple[str, ...]
    attempts_option: int | None
    attempts_default: int
    jobs: int
    """Requests under way at the same time for types and units that fail."""
    model: str | None
    provider_option: str | None
    """Who answers, as the command line says."""
    provider_default: str | None
    """Who answers where neither a test nor a hook says otherwise."""
    record_option: RecordMode | None
    record_default: RecordMode
    budget: int | None
    dry_run: bool
    ignore_stale: bool
    stale: StalePolicy
    annotations: AnnotationPolicy
    """What becomes of a type that is older than its document."""
    fail_on: FailOn
    in_ci: bool
    notes: tuple[str, ...] = ()
    """What was asked for and is not done, and why; one line each."""

    @property
    def writes_types(self) -> bool:
        """Whether the template writes types, unless a test or a hook brings a provider."""
        return (self.provider_option or self.provider_default) == TEMPLATE

    def attempts(self, marker: int | None = None) -> int:
        """Return how often a test may be called."""
        return self.attempts_option or marker or self.attempts_default

    def record_mode(self, marker: RecordMode | None = None) -> RecordMode:
        """Return the record mode of a cassette whose marker says ``marker``.

        Without leave on the command line itself every mode is ``none``.

        Raises:
            pytest.UsageError: a live call could be made in CI and nothing limits its cost.
        """
        wanted = self.record_option or marker or self.record_default
        if not self.may_record:
            return "none"
        if wanted != "none" and self.in_ci and self.budget is None:
            raise usage_error(
                f"record mode {wanted!r} makes live calls, and nothing limits what they cost",
                why="CI is set, where no one watches",
                hint="add --regen-budget TOKENS, or replay with --regen-record none",
            )
        return wanted

    def gate(self, result: "ValidationResult") -> "tuple[tuple[Issue, ...], tuple[Issue, ...]]":
        """Return the issues that fail an item, and those that are only reported.

        Where the project has not chosen, a warning of staleness says what CI makes of it.
        """
        outcome = stale_outcome(self.stale)
        stale, others = (
            tuple(one for one in result.warnings if (one.code == "STALE") is is_stale)
            for is_stale in (True, False)
        )
        if outcome != "ignore":  # What a person wrote fails nowhere for what it was written for.
            others += tuple(one for one in stale if one.is_by_hand)
            stale = tuple(one for one in stale if not one.is_by_hand)
        if outcome == "fail":
            return (*result.errors, *stale), others
        if outcome == "ignore":
            return result.errors, others
        note = (
            " (fails in CI; pytest-regen generate mends it, --regen does not)"
            if self.stale == "auto"
            else ""
        )
        warned = tuple(replace(issue, message=issue.message + note) for issue in stale)
        return result.errors, (*warned, *others)


def choices_of(config: pytest.Config) -> Choices:
    """Return the choices of this run, read once.

    Raises:
        pytest.UsageError: an option or ini value is wrong.
    """
    if _CHOICES not in config.stash:
        config.stash[_CHOICES] = _read(config)
    return config.stash[_CHOICES]


def _read(config: pytest.Config) -> Choices:
    from pytest_regen.errors import UsageError
    from pytest_regen.settings import read_settings

    try:
        settings = read_settings(config.rootpath)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    behaviour = ini_choice(config, "regen_behaviour", BEHAVIOUR_POLICIES) or settings.behaviour
    settings = replace(settings, behaviour=behaviour)
    option = config.option
    heal = option.regen_heal and _is_given(config, "--regen")
    only = tuple(
        part.strip() for value in option.regen_only for part in value.split(",") if part.strip()
    )
    if only and not (option.regen_heal or option.regen_dry_run):
        raise usage_error("--regen-only narrows --regen, which is not given", hint="add --regen")
    if option.regen_pending and not option.regen_heal:
        raise usage_error(
            "--regen-pending works only together with --regen, which is not given",
            hint="add --regen",
        )
    if option.regen_provider == TEMPLATE and option.regen_model is not None:
        raise usage_error(
            f"--regen-provider {TEMPLATE} and --regen-model {option.regen_model} contradict each "
            "other",
            why="the template asks no model",
            hint="give one of them",
        )
    named = named_model(option.regen_provider)
    if named and option.regen_model not in {None, named}:
        raise usage_error(
            f"--regen-provider {option.regen_provider} and --regen-model {option.regen_model} "
            "contradict each other",
            why="each of them names the model that is asked",
            hint="leave --regen-model out",
        )
    default = effective_provider(None, settings.provider, option.regen_model)
    record = _recording(option)
    choices = Choices(
        settings=settings,
        heal=heal,
        pending=option.regen_pending,
        may_record=heal
        or (record is not None and any(_is_given(config, name) for name in _RECORD)),
        only=only,
        attempts_option=_at_least_one("--regen-attempts", option.regen_attempts),
        attempts_default=_ini_number(config, "regen_attempts")
        or settings.attempts
        or DEFAULT_ATTEMPTS,
        jobs=_at_least_one("--regen-jobs", option.regen_jobs)
        or _ini_number(config, "regen_jobs")
        or 1,
        model=named_model(option.regen_provider or default)
        or option.regen_model
        or config.getini("regen_model")
        or settings.model,
        provider_option=option.regen_provider,
        # A model named on the command line is asked, whatever the project's table says.
        provider_default=default
        if settings.provider != TEMPLATE or option.regen_model is None
        else None,
        record_option=record,
        record_default=ini_choice(config, "regen_record", RECORD_MODES) or "none",
        budget=_at_least_one("--regen-budget", option.regen_budget),
        dry_run=option.regen_dry_run,
        ignore_stale=option.regen_ignore_stale,
        stale=ini_choice(config, "regen_stale", STALE_POLICIES) or settings.stale or "auto",
        annotations=ini_choice(config, "regen_annotations", ANNOTATION_POLICIES)
        or settings.annotations
        or "auto",
        fail_on=ini_choice(config, "regen_fail_on", FAIL_ON) or "auto",
        in_ci=is_ci(),
        notes=tuple(_notes(config)),
    )
    choices.record_mode()
    return choices


def _recording(option: object) -> "RecordMode | None":
    """Return the record mode asked for; ``--record-mode`` is another name for the same choice."""
    ours, theirs = getattr(option, "regen_record", None), getattr(option, "record_mode", None)
    if ours and theirs and ours != theirs:
        raise usage_error(
            f"--regen-record {ours} and --record-mode {theirs} contradict each other",
            why="both say how every cassette is used",
            hint="give one of them",
        )
    chosen = ours or theirs
    return next((mode for mode in RECORD_MODES if mode == chosen), None)


def _is_given(config: pytest.Config, name: str) -> bool:
    """Return whether an option stands on the command line itself, not in addopts."""
    return any(
        arg == name or str(arg).startswith(f"{name}=") for arg in config.invocation_params.args
    )


def _notes(config: pytest.Config) -> list[str]:
    option = config.option
    where = "it comes from addopts or PYTEST_ADDOPTS; write it on the command line itself"
    notes = []
    if option.regen_heal and not _is_given(config, "--regen"):
        notes.append(f"--regen is not in effect: {where}")
    if option.regen_record not in {None, "none"} and not _is_given(config, "--regen-record"):
        notes.append(f"--regen-record {option.regen_record} is not in effect: {where}")
    return notes


def _at_least_one(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise pytest.UsageError(f"{name} {value}: must be at least 1")
    return value


def _ini_number(config: pytest.Config, name: str) -> int | None:
    text = str(config.getini(name)).strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise pytest.UsageError(f"{name} = {text}: must be a whole number of at least 1")
    return int(text)


def is_reported(config: pytest.Config) -> bool:
    """Return whether somebody reads more than the terminal: a report, or GitHub."""
    if config.option.regen_report is not None or os.environ.get("GITHUB_STEP_SUMMARY"):
        return True
    from pytest_regen.github import wants_annotations

    return wants_annotations(choices_of(config).annotations)


def ini_choice(config: pytest.Config, name: str, allowed: tuple[T, ...]) -> T | None:
    """Return which of some words an ini value is; ``None`` where it is not set.

    Raises:
        pytest.UsageError: it is another one.
    """
    value = str(config.getini(name)).strip()
    if value and value not in allowed:
        raise pytest.UsageError(f"{name} = {value}: must be one of {', '.join(allowed)}")
    return next((word for word in allowed if word == value), None)


_WORDS: dict[str, tuple[str, ...]] = {
    "record": RECORD_MODES,
    "drift": POLICIES,
    "unplayed": POLICIES,
}
"""Arguments that are one of some words."""


@dataclass(frozen=True, slots=True)
class RegenMark:
    """``@pytest.mark.regen(store=…, types=…, attempts=…, on=[codes], unit=…)``."""

    store: str | None = None
    """The store, from the rootdir; the only configured one by default."""
    types: tuple[str, ...] = ()
    """The types that are regenerated: a name or several; all by default."""
    attempts: int | None = None
    """Calls of the test, the first included."""
    on: frozenset[str] | None = None
    """Codes of issues that are healed; ``None`` for every failing assertion."""
    units: tuple[str, ...] = ()
    """Ids of units that the test is about."""


@dataclass(frozen=True, slots=True)
class CassetteMark:
    """The arguments of ``@pytest.mark.cassette(…)``, in their order."""

    name: str | None = None
    """Of the file, without its ending; by default that of the test."""
    record: RecordMode | None = None
    """The record mode."""
    drift: FindingPolicy | None = None
    """What becomes of a request that is not what was recorded: ``fail``, ``warn``, ``ignore``."""
    unplayed: FindingPolicy | None = None
    """The same for recordings that the passing test did not ask for."""
    ignore: tuple[str, ...] | None = None
    """Paths into request bodies that vary."""
    normalize: Callable[[Any], Any] | None = None
    """Takes the JSON body of a request and returns the JSON that is compared and stored."""
    keep_headers: tuple[str, ...] | None = None
    """Headers of requests that are kept, too, by name or pattern."""
    drop_headers: tuple[str, ...] | None = None
    """Headers of requests and answers that are not kept."""
    passthrough_hosts: tuple[str, ...] | None = None
    """Hosts whose requests are neither recorded nor replayed nor missed."""


def regen_mark(item: pytest.Item) -> RegenMark:
    """Return what the item's ``regen`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    given = _arguments(item, "regen", ("store", "types", "attempts", "on", "unit"))
    attempts = given.get("attempts")
    if attempts is not None and (type(attempts) is not int or attempts < 1):
        raise _wrong(item, f"regen(attempts={attempts!r})", "it is a whole number of at least 1")
    store = given.get("store")
    if store is not None and not isinstance(store, str | os.PathLike):
        raise _wrong(item, f"regen(store={store!r})", "it is the path of a store")
    return RegenMark(
        None if store is None else os.fspath(store),
        _names(item, "regen", "types", given.get("types")) or (),
        attempts,
        None
        if given.get("on") is None
        else frozenset(_names(item, "regen", "on", given["on"]) or ()),
        _names(item, "regen", "unit", given.get("unit")) or (),
    )


def cassette_mark(item: pytest.Item) -> CassetteMark:
    """Return what the item's ``cassette`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    given = _arguments(item, "cassette", tuple(field.name for field in fields(CassetteMark)))
    return cassette_arguments(item, given)


def cassette_arguments(item: pytest.Item, given: Mapping[str, object]) -> CassetteMark:
    """Return what a ``cassette`` marker or the fixture ``cassette_config`` says.

    Raises:
        pytest.UsageError: an argument is of the wrong kind.
    """
    arguments: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for key, value in arguments.items():
        if key in {"ignore", "keep_headers", "drop_headers", "passthrough_hosts"}:
            arguments[key] = _names(item, "cassette", key, value)
        elif key == "normalize":
            if not callable(value):
                raise _wrong(item, f"cassette({key}={value!r})", "it is a function")
        elif not isinstance(value, str):
            raise _wrong(item, f"cassette({key}={value!r})", "it is text")
        elif value not in _WORDS.get(key, (value,)):
            near = _near(value, _WORDS[key])
            words = ", ".join(_WORDS[key])
            raise _wrong(item, f"cassette({key}={value!r})", f"{near}it is one of {words}")
    return CassetteMark(**arguments)


def hosts_argument(item: pytest.Item, mark: str, value: object) -> tuple[str, ...]:
    """Return the hosts that a mark or fixture names as ``passthrough_hosts``.

    Raises:
        pytest.UsageError: it is neither a name nor a list of names.
    """
    return _names(item, mark, "passthrough_hosts", value) or ()


def _arguments(item: pytest.Item, name: str, known: tuple[str, ...]) -> dict[str, object]:
    mark = item.get_closest_marker(name)
    if mark is None:
        return {}
    if len(mark.args) > len(known):
        raise _wrong(item, f"{name}{mark.args!r}", f"it takes {', '.join(known)}, and no more")
    given = {**dict(zip(known, mark.args, strict=False)), **mark.kwargs}
    for key, value in given.items():
        if key not in known:
            takes = f"{_near(key, known)}it takes {', '.join(known)}"
            raise _wrong(item, f"{name}({key}={value!r}): unknown argument", takes)
    return given


def _names(item: pytest.Item, mark: str, key: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence | set | frozenset) and all(isinstance(v, str) for v in value):
        return tuple(str(item) for item in value)
    raise _wrong(item, f"{mark}({key}={value!r})", "it is a name or a list of names")


def _near(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def _wrong(item: pytest.Item, what: str, why: str) -> pytest.UsageError:
    return usage_error(f"{item.nodeid}: {what}", why=why, hint="correct the mark")
