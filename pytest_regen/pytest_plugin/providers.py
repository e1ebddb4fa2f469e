"""With what pages are asked again: provider, cassette, budget, hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.failures import node_command
from pytest_regen.pytest_plugin.ledger import shared_ledger
from pytest_regen.pytest_plugin.marks import cassette_mark
from pytest_regen.pytest_plugin.tapes import taped
from pytest_regen.regeneration import Budget, TurnSettings
from pytest_regen.turns import AnthropicProvider
from pytest_regen.turns.values import Provider, Reply, TurnRequest

if TYPE_CHECKING:
    from pytest_regen.cassettes import CassetteRun

__all__ = [
    "CASSETTE",
    "Asking",
    "budget_of",
    "mode_to_record",
    "provider_of",
    "provider_of_run",
    "turn_settings",
]

CASSETTE: "pytest.StashKey[CassetteRun]" = pytest.StashKey()
"""The cassette that an item has in use."""


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
def turn_settings(item: pytest.Item, cassette: Path, unit: str) -> Iterator["Asking"]:
    """Yield with what the pages of ``unit`` are asked; turns go through ``cassette``."""
    config = item.config
    choices = choices_of(config)

    def before(request: TurnRequest) -> None:
        config.hook.pytest_regen_before_turn(config=config, request=request)

    def after(request: TurnRequest, reply: Reply) -> None:
        config.hook.pytest_regen_after_turn(config=config, request=request, reply=reply)

    with _taped(item, cassette, unit) as (provider, is_emulated):
        settings = TurnSettings(
            provider,
            model=choices.model,
            budget=budget_of(config),
            before_turn=before,
            after_turn=after,
        )
        yield Asking(settings, is_emulated)


@dataclass(frozen=True, slots=True)
class Asking:
    """With what pages are asked, and whether the answers were emulated."""

    settings: TurnSettings
    is_emulated: Callable[[], bool]
    """True once an answer came from the emulator, live or recorded."""


def mode_to_record(path: Path) -> str:
    """Return the mode that records what a cassette lacks: ``once`` adds nothing to a file."""
    return "new_episodes" if path.exists() else "once"


@contextmanager
def _taped(
    item: pytest.Item, path: Path, unit: str
) -> Iterator[tuple[Provider, Callable[[], bool]]]:
    provider = provider_of(item)
    if CASSETTE in item.stash:
        run = item.stash[CASSETTE]
        yield provider, lambda: run.emulated
        return
    mode = choices_of(item.config).record_mode(cassette_mark(item).record)
    command = node_command(unit, "--regen", "--regen-record", mode_to_record(path))
    with taped(provider, path, mode, record_command=command) as tape:
        yield tape, lambda: tape.is_emulated
