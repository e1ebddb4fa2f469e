"""Who answers turns, within which budget, and through which cassette."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_regen import errors
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.run import CassetteRun
from pytest_regen.modes import TABLE_PROVIDER, TEMPLATE, split_provider
from pytest_regen.pytest_plugin.choices import cassette_mark, choices_of
from pytest_regen.pytest_plugin.looks import Target
from pytest_regen.pytest_plugin.names import recording_command
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.stash import CASSETTE, scrubber_of
from pytest_regen.regeneration.values import Pending, TurnSettings
from pytest_regen.settings import Price
from pytest_regen.turns.anthropic import AnthropicProvider
from pytest_regen.turns.budget import Budget
from pytest_regen.turns.exchange import CallRecord, TurnExchange, asks_cassettes
from pytest_regen.turns.models import Prices
from pytest_regen.turns.providers import TemplateProvider, load_provider, no_template
from pytest_regen.turns.values import Provider, Reply, TurnRequest

if TYPE_CHECKING:
    from pytest_regen.turns.replies import ReplyJournal


@contextmanager
def record_turns(
    provider: Provider, run: CassetteRun, prices: Prices | None = None
) -> Iterator[TurnExchange]:
    """Yield a provider whose turns, and nothing but its turns, go through a cassette of its own.

    Between two turns the body of a test may be called again; its own requests must
    not reach the cassette, which would record them, or block them where it only replays.

    What was recorded is kept unless a call failed: replaying that would fail for ever, and ``once``
    would never record over it. A refusal is no failure: it is an answer.

    Args:
        provider: who answers.
        run: the cassette.
        prices: those of the project.
    """
    keep, failures = False, []

    def note(call: CallRecord) -> None:
        if isinstance(call.error, errors.ProviderError) and not isinstance(
            call.error, errors.RefusedError
        ):
            failures.append(call.error)

    try:
        yield TurnExchange(provider, cassette=run, log=note, prices=prices)
        keep = not failures
    finally:
        run.finish(keep=keep)


_BUDGET: pytest.StashKey[Budget] = pytest.StashKey()


def budget_of(config: pytest.Config) -> Budget:
    """Return the budget of the run, one for all items of this process and all workers."""
    if _BUDGET not in config.stash:
        # The controller handed it to this worker; without workers there is none.
        ledger: str | None = getattr(config, "workerinput", {}).get("regen_ledger")
        config.stash[_BUDGET] = Budget(choices_of(config).budget, Path(ledger) if ledger else None)
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
    config = item.config
    fixture: Provider | None = getattr(item, "funcargs", {}).get("regen_provider")
    # The plugin's own fixture says nothing that option, hook and table do not.
    if fixture is not None and fixture is not item.stash.get(_DEFAULT, None):
        return fixture
    choices = choices_of(config)
    if choices.provider_option == TEMPLATE and not of_types:
        raise no_template("units of a kind")
    if by_template and not (choices.provider_option or choices.provider_default):
        return TemplateProvider()
    return _provider_of_run(config, of_types=of_types)


_OF_SERVICES: pytest.StashKey[dict[str, Provider]] = pytest.StashKey()
"""Providers of services, one for all items: its connections are kept."""


def _provider_of_run(config: pytest.Config, *, of_types: bool) -> Provider:
    """Return who answers where no test says otherwise.

    The template answers for types alone: all else goes to whom it would go without it.
    """
    choices = choices_of(config)
    names = (choices.provider_option, choices.provider_default)
    option, default = (None if name == TEMPLATE and not of_types else name for name in names)
    if option is None:
        hooked: Provider | None = config.hook.pytest_regen_provider(config=config)
        if hooked is not None:
            return hooked
    name, where = option or default, "--regen-provider" if option else TABLE_PROVIDER
    if name is not None and split_provider(name) is None:
        return load_provider(name, folder=config.rootpath, option=where)
    providers = config.stash.setdefault(_OF_SERVICES, {})
    # By address, too: a test may have put it elsewhere, at an emulator for one.
    variables = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST")
    key = " ".join([name or "", *(os.environ.get(variable, "") for variable in variables)])
    if key not in providers:
        provider = load_provider(name, option=where) if name else AnthropicProvider(choices.model)
        providers[key] = provider
    return providers[key]


def hooks_of(
    config: pytest.Config,
) -> tuple[Callable[[TurnRequest], None], Callable[[TurnRequest, Reply], None]]:
    """Return what calls the hooks before and after a turn."""
    hook = config.hook
    return (
        lambda request: hook.pytest_regen_before_turn(config=config, request=request),
        lambda request, reply: hook.pytest_regen_after_turn(
            config=config, request=request, reply=reply
        ),
    )


@contextmanager
def turn_settings(
    item: pytest.Item, target: Target, jobs: int
) -> Iterator[tuple[TurnSettings, CassetteRun | None]]:
    """Yield with what the pages of a unit are asked, and the cassette that turns go through.

    Without turns, by the template, there is no cassette.

    Args:
        item: the item that asks.
        target: the unit.
        jobs: pages that are asked at the same time, those of other items among them.

    Raises:
        UsageError: see ``--regen-provider``.
    """
    config, cassette = item.config, target.cassette
    of_types, by_template = target.look.home.has_pages, target.is_by_template
    provider = provider_of(item, of_types=of_types, by_template=by_template)
    if isinstance(provider, TemplateProvider):
        # No turn is taken, so that there is nothing to record.
        yield TurnSettings(provider, pending=pending_of(item)), None
        return
    if CASSETTE in item.stash:  # The cassette of the test's own fixture takes these turns, too.
        yield settings_of_run(item, provider, jobs), item.stash[CASSETTE]
        return
    run = CassetteRun(
        cassette,
        choices_of(config).record_mode(cassette_mark(item).record),
        record_command=recording_command(config, item.nodeid, cassette),
        matching=Matching(scrub=scrubber_of(config)),
        # Other turns, with other cassettes, may be under way at the same time.
        is_apart=jobs > 1,
        # Answers that a run has left which failed or was killed are not paid for again.
        resumes=True,
    )
    with record_turns(provider, run, partial(price_in, config)) as exchange:
        yield settings_of_run(item, exchange, jobs), run
    if run.changed:
        from pytest_regen.pytest_plugin.recording.log import note_changed

        note_changed(item, cassette, run.changed)


_PENDING: pytest.StashKey[Pending] = pytest.StashKey()


def pending_of(item: pytest.Item) -> Pending | None:
    """Return where what an item would keep waits for review; ``None`` where it is stored."""
    if not choices_of(item.config).pending:
        return None
    if _PENDING not in item.stash:
        item.stash[_PENDING] = Pending(item.config.rootpath, item.nodeid)
    return item.stash[_PENDING]


def settings_of_run(item: pytest.Item, provider: Provider, jobs: int) -> TurnSettings:
    """Return with what, and within which limits, pages are asked of a provider for an item."""
    config = item.config
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
        pending=pending_of(item),
    )


_JOURNAL: "pytest.StashKey[ReplyJournal]" = pytest.StashKey()


def journal_of(config: pytest.Config) -> "ReplyJournal":
    """Return where the replies of this run stand until they are stored; opened on first use.

    A provider of the Messages API needs none: its answers are on the disk as recordings.
    """
    if _JOURNAL not in config.stash:
        from pytest_regen.turns.replies import ReplyJournal

        config.stash[_JOURNAL] = journal = ReplyJournal.open(config.rootpath)
        config.add_cleanup(journal.close)
    return config.stash[_JOURNAL]


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
