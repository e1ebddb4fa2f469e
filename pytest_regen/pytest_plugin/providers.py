"""Who answers turns, within which budget, and through which cassette."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from pytest_regen.cassettes import CassetteRun, Matching, RecordMode, Scrub
from pytest_regen.errors import (
    MissingExtraError,
    MissingKeyError,
    ProviderError,
    RefusedError,
    UsageError,
)
from pytest_regen.modes import TABLE_PROVIDER, TEMPLATE, split_provider
from pytest_regen.pytest_plugin.choices import cassette_mark, choices_of
from pytest_regen.pytest_plugin.names import corrected_command, keeps_template, recording_command
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.stash import CASSETTE, scrubber_of, worker_ledger
from pytest_regen.pytest_plugin.summary import note_command
from pytest_regen.regeneration import TurnSettings
from pytest_regen.regeneration.values import Pending
from pytest_regen.settings import Price
from pytest_regen.turns import AnthropicProvider, Budget, ReplyJournal, load_provider
from pytest_regen.turns.exchange import CallRecord, TurnExchange, asks_cassettes
from pytest_regen.turns.models import Prices
from pytest_regen.turns.providers import TemplateProvider, near_reference, no_template
from pytest_regen.turns.values import Provider, Reply, TurnRequest


@contextmanager
def record_turns(
    provider: Provider,
    path: Path,
    mode: RecordMode,
    *,
    record_command: str,
    scrub: Scrub | None = None,
    is_apart: bool = False,
    prices: Prices | None = None,
) -> Iterator[tuple[TurnExchange, CassetteRun]]:
    """Yield a provider whose turns, and nothing but its turns, go through a cassette of its own.

    Between two turns the body of a test may be called again; its own requests must
    not reach the cassette, which would record them, or block them where it only replays.

    What was recorded is kept unless a call failed: replaying that would fail for ever, and ``once``
    would never record over it. A refusal is no failure: it is an answer. Answers that a run has
    left which failed or was killed are not paid for again.

    Args:
        provider: who answers.
        path: the cassette.
        mode: whether to replay, to record, or both.
        record_command: the command that the message of a miss names.
        scrub: takes each text and returns it without what must not be stored.
        is_apart: whether other turns, with other cassettes, may be under way at the same time.
        prices: those of the project.
    """
    is_spoilt = False

    def note(call: CallRecord) -> None:
        nonlocal is_spoilt
        if isinstance(call.error, ProviderError) and not isinstance(call.error, RefusedError):
            is_spoilt = True

    run = CassetteRun(
        path,
        mode,
        record_command=record_command,
        matching=Matching(scrub=scrub),
        is_apart=is_apart,
        resumes=True,
    )
    finished = False
    try:
        yield TurnExchange(provider, cassette=run, log=note, prices=prices), run
        finished = True
    finally:
        run.finish(keep=finished and not is_spoilt)


_BUDGET: pytest.StashKey[Budget] = pytest.StashKey()


def budget_of(config: pytest.Config) -> Budget:
    """Return the budget of the run, one for all items of this process and all workers."""
    if _BUDGET not in config.stash:
        config.stash[_BUDGET] = Budget(choices_of(config).budget, worker_ledger(config))
    return config.stash[_BUDGET]


_DEFAULT: pytest.StashKey[Provider] = pytest.StashKey()
"""The ``regen_provider`` of a test that does not override it."""


def default_provider(item: pytest.Item) -> Provider:
    """Return the ``regen_provider`` of a test that has none of its own."""
    return item.stash.setdefault(_DEFAULT, _provider_of_run(item.config, of_types=False))


def provider_of(item: pytest.Item, *, of_types: bool, by_template: bool = False) -> Provider:
    """Return who answers for an item.

    The first of these that is there: the test's own fixture ``regen_provider``, the option
    ``--regen-provider``, a hook ``pytest_regen_provider``, ``provider`` in ``[tool.pytest-regen]``,
    the template where it wrote the type before, the real API.

    Args:
        item: the item.
        of_types: whether it asks for types of a store, and not for units of another kind.
        by_template: whether the template wrote the type, and can do so again.

    Raises:
        UsageError: the option or the table names no provider; or the option names the template,
            and no types are asked for.
    """
    own: Provider | None = getattr(item, "funcargs", {}).get("regen_provider")
    if own is not None and own is not item.stash.get(_DEFAULT, None):
        return own
    if choices_of(item.config).provider_option == TEMPLATE and not of_types:
        raise no_template("units of a kind")
    if by_template and keeps_template(item.config):
        return TemplateProvider()
    try:
        return _provider_of_run(item.config, of_types=of_types)
    except UsageError as error:
        # Nothing else is to be run before this is mended.
        option = choices_of(item.config).provider_option
        near = near_reference(option or "")
        is_near = bool(near) and error.hint == f"write it as {near}"
        if is_near:
            error.hint = corrected_command(item.config, item.nodeid, near)
        note_command(item, error.hint if is_near else "")
        raise


_OF_SERVICES: pytest.StashKey[dict[str, Provider]] = pytest.StashKey()
_ADDRESSES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST")


def _provider_of_run(config: pytest.Config, *, of_types: bool) -> Provider:
    """Return who answers where no test says otherwise.

    The template answers for types alone: all else goes to whom it would go without it.
    """
    choices = choices_of(config)
    named = (choices.provider_option, choices.provider_default)
    option, default = (None if name == TEMPLATE and not of_types else name for name in named)
    if option is None:
        hooked: Provider | None = config.hook.pytest_regen_provider(config=config)
        if hooked is not None:
            return hooked
    name, where = option or default, "--regen-provider" if option else TABLE_PROVIDER
    if name is not None and split_provider(name) is None:
        return load_provider(name, folder=config.rootpath, option=where)
    # One for all items: its connections are kept. A test may have put the address elsewhere.
    known = config.stash.setdefault(_OF_SERVICES, {})
    addresses = (os.environ.get(variable, "") for variable in _ADDRESSES)
    key = " ".join((name or "", *addresses))
    if key not in known:
        known[key] = load_provider(name, option=where) if name else AnthropicProvider(choices.model)
    return known[key]


def hooks_of(
    config: pytest.Config,
) -> tuple[Callable[[TurnRequest], None], Callable[[TurnRequest, Reply], None]]:
    """Return what calls the hooks before and after a turn."""

    def before(request: TurnRequest) -> None:
        config.hook.pytest_regen_before_turn(config=config, request=request)

    def after(request: TurnRequest, reply: Reply) -> None:
        config.hook.pytest_regen_after_turn(config=config, request=request, reply=reply)

    return before, after


@contextmanager
def turn_settings(
    item: pytest.Item,
    cassette: Path,
    unit: str,
    *,
    of_types: bool,
    by_template: bool = False,
    jobs: int = 1,
) -> Iterator["RegenerationTurns"]:
    """Yield with what the pages of ``unit`` are asked; turns go through ``cassette``.

    Args:
        item: the item that asks.
        cassette: where its turns are recorded.
        unit: its node id.
        of_types: whether it asks for types of a store, and not for units of another kind.
        by_template: whether the template wrote the type, and can do so again.
        jobs: pages that are asked at the same time, those of other items among them.

    Raises:
        UsageError: see ``--regen-provider``.
    """
    answers = provider_of(item, of_types=of_types, by_template=by_template)
    if isinstance(answers, TemplateProvider):
        # No turn is taken, so that there is nothing to record.
        yield RegenerationTurns(TurnSettings(answers, pending=pending_of(item)), None)
        return
    with _cassette_provider(item, answers, cassette, unit, is_apart=jobs > 1) as (provider, run):
        settings = replace(settings_of_run(item.config, provider, jobs), pending=pending_of(item))
        yield RegenerationTurns(settings, run)


_PENDING: pytest.StashKey[Pending] = pytest.StashKey()


def pending_of(item: pytest.Item) -> Pending | None:
    """Return where what an item would keep waits for review; ``None`` where it is stored."""
    if not choices_of(item.config).pending:
        return None
    if _PENDING not in item.stash:
        item.stash[_PENDING] = Pending(item.config.rootpath, item.nodeid)
    return item.stash[_PENDING]


def settings_of_run(config: pytest.Config, provider: Provider, jobs: int = 1) -> TurnSettings:
    """Return with what, and within which limits, pages are asked of a provider in this run."""
    before, after = hooks_of(config)
    return TurnSettings(
        provider,
        model=choices_of(config).model,
        budget=budget_of(config),
        jobs=jobs,
        before_turn=before,
        after_turn=after,
        journal=None if asks_cassettes(provider) else journal_of(config),
        prices=partial(price_in, config),
    )


_JOURNAL: pytest.StashKey[ReplyJournal] = pytest.StashKey()


def journal_of(config: pytest.Config) -> ReplyJournal:
    """Return where the replies of this run stand until they are stored; opened on first use.

    A provider of the Messages API needs none: its answers are on the disk as recordings.
    """
    if _JOURNAL not in config.stash:
        config.stash[_JOURNAL] = journal = ReplyJournal.open(config.rootpath)
        config.add_cleanup(journal.close)
    return config.stash[_JOURNAL]


@dataclass(frozen=True, slots=True)
class RegenerationTurns:
    """Provider, budget and hooks for one regeneration."""

    settings: TurnSettings
    run: "CassetteRun | None"
    """The cassette that the turns go through; ``None`` where no turn is taken."""

    @property
    def is_emulated(self) -> bool:
        """Whether an answer came from the emulator, live or recorded."""
        run = self.run
        return run is not None and run.emulated and run.played + run.recorded > 0

    @property
    def is_live(self) -> bool:
        """Whether an answer was given just now, and so may have cost something."""
        # A provider that uses no HTTP is asked although nothing is recorded of it.
        run = self.run
        if run is None or run.is_replay_only:
            return False
        return run.recorded > 0 or run.played == 0


@contextmanager
def _cassette_provider(
    item: pytest.Item, provider: Provider, path: Path, unit: str, *, is_apart: bool
) -> Iterator[tuple[Provider, "CassetteRun"]]:
    if CASSETTE in item.stash:
        yield provider, item.stash[CASSETTE]
        return
    mode = choices_of(item.config).record_mode(cassette_mark(item).record)
    command = recording_command(item.config, unit, path)
    scrub = scrubber_of(item.config)
    prices = partial(price_in, item.config)
    with record_turns(
        provider,
        path,
        mode,
        record_command=command,
        scrub=scrub,
        is_apart=is_apart,
        prices=prices,
    ) as (recorder, run):
        yield recorder, run
    if run.changed:
        from pytest_regen.pytest_plugin.recording.log import note_changed

        note_changed(item, path, run.changed)


def may_get_answer(item: pytest.Item, cassette: Path) -> bool:
    """Return whether a turn of an item may be answered, as far as can be seen without taking it.

    Args:
        item: the item.
        cassette: where its turns are recorded.
    """
    require_key = getattr(provider_of(item, of_types=False), "require_key", None)
    mode = choices_of(item.config).record_mode(cassette_mark(item).record)
    if require_key is None or (cassette.exists() and mode not in {"all", "rewrite"}):
        return True  # A function of the user's needs neither; a recording may have the answer.
    if mode == "none":
        return False
    try:
        require_key()
    except (MissingKeyError, MissingExtraError):
        return False
    return True


def price_in(config: pytest.Config, model: str) -> Price | None:
    """Return the price of a model that the project names, in its table or by a hook.

    Raises:
        pytest.UsageError: the hook ``pytest_regen_prices`` answers with something else.
    """
    price = choices_of(config).settings.price.get(model)
    if price is None:
        price = config.hook.pytest_regen_prices(config=config, model=model)
    if not isinstance(price, Price | None):
        raise usage_error(
            f"pytest_regen_prices answers {price!r} for {model!r}",
            why="a price is what input and output cost, in US dollars per million tokens",
            hint="return pytest_regen.settings.Price(input=3, output=15), or None",
        )
    return price
