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
from pytest_regen.pytest_plugin.options import FAIL_ON, FailOn, table_of, usage_error

if TYPE_CHECKING:
    from pytest_regen.settings import Settings
    from pytest_regen.validation.issues import Issue, ValidationResult


T = TypeVar("T", bound=str)

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
        mode = self.record_option or marker or self.record_default
        if not self.may_record:
            return "none"
        if mode != "none" and self.in_ci and self.budget is None:
            raise usage_error(
                f"record mode {mode!r} makes live calls, and nothing limits what they cost",
                why="CI is set, where no one watches",
                hint="add --regen-budget TOKENS, or replay with --regen-record none",
            )
        return mode

    def gate(self, result: "ValidationResult") -> "tuple[tuple[Issue, ...], tuple[Issue, ...]]":
        """Return the issues that fail an item, and those that are only reported.

        Where the project has not chosen, a warning of staleness says what CI makes of it.
        """
        outcome = stale_outcome(self.stale)
        hint = ""
        if self.stale == "auto":
            hint = " (fails in CI; pytest-regen generate mends it, --regen does not)"
        failing, stale, warnings = list(result.errors), [], []
        for issue in result.warnings:
            # What a person wrote fails nowhere for what it was written for.
            if issue.code != "STALE" or (issue.is_by_hand and outcome != "ignore"):
                warnings.append(issue)
            elif outcome == "fail":
                failing.append(issue)
            elif outcome == "warn":
                stale.append(replace(issue, message=issue.message + hint))
        return tuple(failing), (*stale, *warnings)


def choices_of(config: pytest.Config) -> Choices:
    """Return the choices of this run, read once.

    Raises:
        pytest.UsageError: an option or ini value is wrong.
    """
    if _CHOICES not in config.stash:
        config.stash[_CHOICES] = _read(config)
    return config.stash[_CHOICES]


def _read(config: pytest.Config) -> Choices:
    from pytest_regen.settings import Settings

    option = config.option
    settings = table_of(config) or Settings()
    behaviour = ini_choice(config, "regen_behaviour", BEHAVIOUR_POLICIES) or settings.behaviour
    settings = replace(settings, behaviour=behaviour)
    _refuse_contradictions(option)
    heal = option.regen_heal and _is_typed(config, "--regen")
    record = option.regen_record or getattr(option, "record_mode", None)
    records = _is_typed(config, "--regen-record") or _is_typed(config, "--record-mode")
    default = effective_provider(None, settings.provider, option.regen_model)
    only = (part.strip() for value in option.regen_only for part in value.split(","))
    not_typed = "is not in effect: it comes from addopts or PYTEST_ADDOPTS; write it on the command"
    notes = []
    if option.regen_heal and not heal:
        notes.append(f"--regen {not_typed} line itself")
    if option.regen_record not in {None, "none"} and not _is_typed(config, "--regen-record"):
        notes.append(f"--regen-record {option.regen_record} {not_typed} line itself")
    choices = Choices(
        settings=settings,
        heal=heal,
        pending=option.regen_pending,
        may_record=heal or (record is not None and records),
        only=tuple(filter(None, only)),
        attempts_option=_count(config, "--regen-attempts"),
        attempts_default=_count(config, "regen_attempts") or settings.attempts or 2,
        jobs=_count(config, "--regen-jobs") or _count(config, "regen_jobs") or 1,
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
        budget=_count(config, "--regen-budget"),
        dry_run=option.regen_dry_run,
        ignore_stale=option.regen_ignore_stale,
        stale=ini_choice(config, "regen_stale", STALE_POLICIES) or settings.stale or "auto",
        annotations=ini_choice(config, "regen_annotations", ANNOTATION_POLICIES)
        or settings.annotations
        or "auto",
        fail_on=ini_choice(config, "regen_fail_on", FAIL_ON) or "auto",
        in_ci=is_ci(),
        notes=tuple(notes),
    )
    choices.record_mode()
    return choices


def _refuse_contradictions(option: Any) -> None:
    """Refuse options that cannot all be meant.

    Raises:
        pytest.UsageError: there are some.
    """
    provider, model = option.regen_provider, option.regen_model
    record, same = option.regen_record, getattr(option, "record_mode", None)
    if option.regen_only and not (option.regen_heal or option.regen_dry_run):
        raise usage_error("--regen-only narrows --regen, which is not given", hint="add --regen")
    if option.regen_pending and not option.regen_heal:
        what = "--regen-pending works only together with --regen, which is not given"
        raise usage_error(what, hint="add --regen")
    options, why, hint = "", "", "give one of them"
    if provider == TEMPLATE and model is not None:
        options, why = f"--regen-provider {TEMPLATE}", "the template asks no model"
    elif named_model(provider) and model not in {None, named_model(provider)}:
        options, why = f"--regen-provider {provider}", "each of them names the model that is asked"
        hint = "leave --regen-model out"
    if options:
        what = f"{options} and --regen-model {model} contradict each other"
        raise usage_error(what, why=why, hint=hint)
    # `--record-mode` is pytest-recording's name for the same choice.
    if record and same and record != same:
        what = f"--regen-record {record} and --record-mode {same} contradict each other"
        raise usage_error(what, why="both say how every cassette is used", hint=hint)


def _is_typed(config: pytest.Config, name: str) -> bool:
    """Return whether an option stands on the command line itself, not in addopts."""
    words = map(str, config.invocation_params.args)
    return any(word == name or word.startswith(f"{name}=") for word in words)


def _count(config: pytest.Config, name: str) -> int | None:
    """Return the number that an option or an ini value gives; ``None`` where it is not set."""
    if name.startswith("--"):
        value: int | None = config.getoption(name)
        if value is not None and value < 1:
            raise pytest.UsageError(f"{name} {value}: must be at least 1")
        return value
    text = str(config.getini(name)).strip()
    if text and not (text.isdecimal() and int(text) >= 1):
        raise pytest.UsageError(f"{name} = {text}: must be a whole number of at least 1")
    return int(text) if text else None


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
    arguments = _arguments(item, "regen", ("store", "types", "attempts", "on", "unit"))
    attempts, store = arguments.get("attempts"), arguments.get("store")
    # Python's True is an integer.
    if attempts is not None and (type(attempts) is not int or attempts < 1):
        raise _wrong(item, f"regen(attempts={attempts!r})", "it is a whole number of at least 1")
    if store is not None and not isinstance(store, str | os.PathLike):
        raise _wrong(item, f"regen(store={store!r})", "it is the path of a store")
    types, codes, units = (
        names_argument(item, "regen", key, arguments.get(key)) for key in ("types", "on", "unit")
    )
    return RegenMark(
        None if store is None else os.fspath(store),
        types or (),
        attempts,
        None if codes is None else frozenset(codes),
        units or (),
    )


def cassette_mark(item: pytest.Item) -> CassetteMark:
    """Return what the item's ``cassette`` marker says; defaults where it has none.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    names = tuple(field.name for field in fields(CassetteMark))
    return cassette_arguments(item, _arguments(item, "cassette", names))


def cassette_arguments(item: pytest.Item, arguments: Mapping[str, object]) -> CassetteMark:
    """Return what a ``cassette`` marker or the fixture ``cassette_config`` says.

    Raises:
        pytest.UsageError: an argument is of the wrong kind.
    """
    checked: dict[str, Any] = {}
    for key, value in arguments.items():
        what = f"cassette({key}={value!r})"
        words = {"record": RECORD_MODES, "drift": POLICIES, "unplayed": POLICIES}.get(key)
        checked[key] = value
        if value is None:
            continue
        if key in {"ignore", "keep_headers", "drop_headers", "passthrough_hosts"}:
            checked[key] = names_argument(item, "cassette", key, value)
        elif key == "normalize":
            if not callable(value):
                raise _wrong(item, what, "it is a function")
        elif not isinstance(value, str):
            raise _wrong(item, what, "it is text")
        elif words and value not in words:
            raise _wrong(item, what, did_you_mean(value, words, f"it is one of {', '.join(words)}"))
    return CassetteMark(**checked)


def _arguments(item: pytest.Item, mark_name: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a marker by their names."""
    mark = item.get_closest_marker(mark_name)
    if mark is None:
        return {}
    takes = f"it takes {', '.join(names)}"
    if len(mark.args) > len(names):
        raise _wrong(item, f"{mark_name}{mark.args!r}", f"{takes}, and no more")
    arguments = {**dict(zip(names, mark.args, strict=False)), **mark.kwargs}
    for key, value in arguments.items():
        if key not in names:
            what = f"{mark_name}({key}={value!r}): unknown argument"
            raise _wrong(item, what, did_you_mean(key, names, takes))
    return arguments


def names_argument(
    item: pytest.Item, mark_name: str, key: str, value: object
) -> tuple[str, ...] | None:
    """Return names that a marker or fixture gives, as one or as a list.

    Raises:
        pytest.UsageError: it is neither.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence | set | frozenset) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise _wrong(item, f"{mark_name}({key}={value!r})", "it is a name or a list of names")


def did_you_mean(word: str, names: Sequence[str], why: str) -> str:
    """Return why a word is wrong, after the name that was perhaps meant."""
    from difflib import get_close_matches

    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]!r}? {why}" if near else why


def _wrong(item: pytest.Item, what: str, why: str) -> pytest.UsageError:
    return usage_error(f"{item.nodeid}: {what}", why=why, hint="correct the mark")
