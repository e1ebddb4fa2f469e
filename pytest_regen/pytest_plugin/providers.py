"""Who answers turns, within which budget, and through which cassette."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.pytest_plugin.cassettes.provider import recorded_in
from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.commands import recording_command
from pytest_regen.pytest_plugin.ledger import shared_ledger
from pytest_regen.pytest_plugin.marks import cassette_mark
from pytest_regen.pytest_plugin.scrubbers import scrubber_of
from pytest_regen.pytest_plugin.stash import CASSETTE
from pytest_regen.regeneration import Budget, TurnSettings
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.values import Provider, Reply, TurnRequest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun

__all__ = [
    "RegenerationTurns",
    "budget_of",
    "provider_of",
    "provider_of_run",
    "turn_settings",
]

_BUDGET: pytest.StashKey[Budget] = pytest.StashKey()


def budget_of(config: pytest.Config) -> Budget:
    """Return the budget of the run, one for all items of this process and all workers."""
    if _BUDGET not in config.stash:
        config.stash[_BUDGET] = Budget(choices_of(config).budget, shared_ledger(config))
    return config.stash[_BUDGET]


def provider_of(item: pytest.Item) -> Provider:
    """Return who answers for an item.

    The first of these that is there: the test's own ``regen_provider`` fixture, a
    ``pytest_regen_provider`` hook, the real API.
    """
    funcargs: dict[str, Any] = getattr(item, "funcargs", {})
    return funcargs.get("regen_provider") or provider_of_run(item.config)


def provider_of_run(config: pytest.Config) -> Provider:
    """Return who answers where no test says otherwise: a hook's provider, or the real API."""
    provided: Provider | None = config.hook.pytest_regen_provider(config=config)
    if provided is not None:
        return provided
    return AnthropicProvider(choices_of(config).model)


@contextmanager
def turn_settings(item: pytest.Item, cassette: Path, unit: str) -> Iterator["RegenerationTurns"]:
    """Yield with what the pages of ``unit`` are asked; turns go through ``cassette``."""
    config = item.config
    choices = choices_of(config)

    def before(request: TurnRequest) -> None:
        config.hook.pytest_regen_before_turn(config=config, request=request)

    def after(request: TurnRequest, reply: Reply) -> None:
        config.hook.pytest_regen_after_turn(config=config, request=request, reply=reply)

    with _recorded_provider(item, cassette, unit) as (provider, run):
        settings = TurnSettings(
            provider,
            model=choices.model,
            budget=budget_of(config),
            before_turn=before,
            after_turn=after,
        )
        yield RegenerationTurns(settings, run)


@dataclass(frozen=True, slots=True)
class RegenerationTurns:
    """Provider, budget and hooks for one regeneration."""

    settings: TurnSettings
    run: "CassetteRun"
    """The cassette that the turns go through."""

    @property
    def is_emulated(self) -> bool:
        """Whether an answer came from the emulator, live or recorded."""
        return self.run.emulated and self.run.played + self.run.recorded > 0

    @property
    def is_live(self) -> bool:
        """Whether an answer was given just now, and so may have cost something."""
        # A provider that uses no HTTP is asked although nothing is recorded of it.
        run = self.run
        return not run.is_replay_only and (run.recorded > 0 or run.played == 0)


@contextmanager
def _recorded_provider(
    item: pytest.Item, path: Path, unit: str
) -> Iterator[tuple[Provider, "CassetteRun"]]:
    provider = provider_of(item)
    if CASSETTE in item.stash:
        yield provider, item.stash[CASSETTE]
        return
    mode = choices_of(item.config).record_mode(cassette_mark(item).record)
    command = recording_command(item.config, unit, path)
    scrub = scrubber_of(item.config)
    with recorded_in(provider, path, mode, record_command=command, scrub=scrub) as recorded:
        yield recorded, recorded.run
