"""What the user chose for this run, from options, marks, ini values and settings.

Precedence, highest first: option, marker, ini value, ``[tool.pytest-regen]``, default.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_regen import modes
from pytest_regen.pytest_plugin.options import FAIL_ON, table_of, usage_error

if TYPE_CHECKING:
    from pytest_regen.validation.issues import Issue, ValidationResult


T = TypeVar("T", bound=str)

_CHOICES: "pytest.StashKey[Choices]" = pytest.StashKey()


class Choices:
    """The choices that hold for the whole run.

    Args:
        config: the run's.

    Raises:
        pytest.UsageError: an option or ini value is wrong.
    """

    def __init__(self, config: pytest.Config) -> None:
        from pytest_regen.settings import Settings

        option = config.option
        _refuse_contradictions(option)
        # Without a table nothing of the project is parsed: `table_of` imports no TOML for it.
        settings = table_of(config) or Settings()
        behaviour = ini_choice(config, "regen_behaviour", modes.BEHAVIOUR_POLICIES)
        self.settings = replace(settings, behaviour=behaviour or settings.behaviour)
        self.heal = option.regen_heal and _is_typed(config, "--regen")
        """Whether failing units are regenerated: ``--regen`` stands on the command line itself."""
        self.dry_run: bool = option.regen_dry_run
        self.pending: bool = option.regen_pending
        """Whether what would be kept waits for review, and nothing is stored."""
        self.ignore_stale: bool = option.regen_ignore_stale
        names = (part.strip() for value in option.regen_only for part in value.split(","))
        self.only: tuple[str, ...] = tuple(filter(None, names))
        self.attempts_option = _count(config, "--regen-attempts")
        self._attempts = _count(config, "regen_attempts") or settings.attempts or 2
        self.jobs = _count(config, "--regen-jobs") or _count(config, "regen_jobs") or 1
        """Requests under way at the same time for types and units that fail."""
        self.budget = _count(config, "--regen-budget")
        self.provider_option: str | None = option.regen_provider
        """Who answers, as the command line says."""
        model: str | None = option.regen_model
        default = modes.effective_provider(None, settings.provider, model)
        # A model named on the command line is asked, whatever the project's table says.
        is_overruled = settings.provider == modes.TEMPLATE and model is not None
        self.provider_default = None if is_overruled else default
        """Who answers where neither a test nor a hook says otherwise."""
        self.model: str | None = modes.named_model(self.provider_option or default) or model
        self.model = self.model or config.getini("regen_model") or settings.model
        # `--record-mode` is pytest-recording's name for the same choice.
        record = option.regen_record or getattr(option, "record_mode", None)
        self.record_option: modes.RecordMode | None = record
        self._record = ini_choice(config, "regen_record", modes.RECORD_MODES) or "none"
        records = _is_typed(config, "--regen-record") or _is_typed(config, "--record-mode")
        self._may_record = self.heal or (record is not None and records)
        stale = ini_choice(config, "regen_stale", modes.STALE_POLICIES)
        self.stale: modes.StalePolicy = stale or settings.stale or "auto"
        """What becomes of a type that is older than its document."""
        annotations = ini_choice(config, "regen_annotations", modes.ANNOTATION_POLICIES)
        self.annotations = annotations or settings.annotations or "auto"
        self.fail_on = ini_choice(config, "regen_fail_on", FAIL_ON) or "auto"
        self.in_ci = modes.is_ci()
        self.notes: list[str] = []
        """What was asked for and is not done, and why; one line each."""
        where = "it comes from addopts or PYTEST_ADDOPTS; write it on the command line itself"
        if option.regen_heal and not self.heal:
            self.notes.append(f"--regen is not in effect: {where}")
        record = option.regen_record
        if record not in {None, "none"} and not _is_typed(config, "--regen-record"):
            self.notes.append(f"--regen-record {record} is not in effect: {where}")
        # Now, and not when the first test asks: in CI it refuses to record without a budget.
        self.record_mode()

    def attempts(self, marker: int | None = None) -> int:
        """Return how often a test may be called."""
        return self.attempts_option or marker or self._attempts

    def record_mode(self, marker: modes.RecordMode | None = None) -> modes.RecordMode:
        """Return the record mode of a cassette whose marker says ``marker``.

        Without leave on the command line itself every mode is ``none``.

        Raises:
            pytest.UsageError: a live call could be made in CI and nothing limits its cost.
        """
        mode = self.record_option or marker or self._record
        if not self._may_record:
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
        outcome = modes.stale_outcome(self.stale)
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
    """Return the choices of this run, read once; see ``Choices`` for what is refused."""
    if _CHOICES not in config.stash:
        config.stash[_CHOICES] = Choices(config)
    return config.stash[_CHOICES]


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
    if provider == modes.TEMPLATE and model is not None:
        options, why = f"--regen-provider {modes.TEMPLATE}", "the template asks no model"
    elif modes.named_model(provider) and model not in {None, modes.named_model(provider)}:
        options, why = f"--regen-provider {provider}", "each of them names the model that is asked"
        hint = "leave --regen-model out"
    if options:
        what = f"{options} and --regen-model {model} contradict each other"
        raise usage_error(what, why=why, hint=hint)
    if record and same and record != same:
        what = f"--regen-record {record} and --record-mode {same} contradict each other"
        raise usage_error(what, why="both say how every cassette is used", hint=hint)


def _is_typed(config: pytest.Config, name: str) -> bool:
    """Return whether an option stands on the command line itself, not in addopts."""
    # Not the parsed options, because in those what addopts says cannot be told apart.
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
    """The name of the file, without its ending; by default that of the test."""
    record: modes.RecordMode | None = None
    """The record mode."""
    drift: modes.FindingPolicy | None = None
    """What becomes of a request that is not what was recorded: ``fail``, ``warn``, ``ignore``."""
    unplayed: modes.FindingPolicy | None = None
    """The same for recordings that the passing test did not ask for."""
    ignore: tuple[str, ...] | None = None
    """Paths into request bodies that vary."""
    normalize: Callable[[Any], Any] | None = None
    """Takes the JSON body of a request and returns the JSON that is compared and stored."""
    keep_headers: tuple[str, ...] | None = None
    """Headers of requests that are kept as well, by name or pattern."""
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


def cassette_mark(
    item: pytest.Item, defaults: Mapping[str, object] = MappingProxyType({})
) -> CassetteMark:
    """Return what the item's ``cassette`` marker says, completed by the fixture's defaults.

    Args:
        item: the test.
        defaults: what the fixture ``cassette_config`` says.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    names = tuple(field.name for field in fields(CassetteMark))
    unknown = sorted(defaults.keys() - {*names})
    if unknown:
        raise usage_error(
            f"{item.nodeid}: cassette_config has the unknown key {unknown[0]!r}",
            hint=f"use some of {', '.join(sorted(names))}",
        )
    marked = _arguments(item, "cassette", names)
    chosen = {**defaults, **{key: value for key, value in marked.items() if value is not None}}
    return CassetteMark(**{key: _cassette_value(item, key, value) for key, value in chosen.items()})


def _cassette_value(item: pytest.Item, key: str, value: Any) -> Any:
    """Return an argument of ``cassette`` as the mark holds it."""
    what = f"cassette({key}={value!r})"
    words: Sequence[str] = modes.RECORD_MODES if key == "record" else modes.POLICIES
    if value is None:
        return None
    if key in {"ignore", "keep_headers", "drop_headers", "passthrough_hosts"}:
        return names_argument(item, "cassette", key, value)
    if key == "normalize":
        if not callable(value):
            raise _wrong(item, what, "it is a function")
    elif not isinstance(value, str):
        raise _wrong(item, what, "it is text")
    elif key != "name" and value not in words:
        raise _wrong(item, what, f"it is one of {', '.join(words)}")
    return value


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
            raise _wrong(item, f"{mark_name}({key}={value!r}): unknown argument", takes)
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


def _wrong(item: pytest.Item, what: str, why: str) -> pytest.UsageError:
    return usage_error(f"{item.nodeid}: {what}", why=why, hint="correct the mark")
