"""Hooks that a conftest.py or another plugin may implement."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_regen.cassettes import Scrub
    from pytest_regen.regeneration import HealResult
    from pytest_regen.settings import Price
    from pytest_regen.stores import RegenStore
    from pytest_regen.turns.values import Provider, Reply, TurnRequest
    from pytest_regen.validation.issues import Issue


@pytest.hookspec(firstresult=True)
def pytest_regen_provider(config: pytest.Config) -> "Provider | None":
    """Return the provider that regenerates; the first that is not ``None`` is used.

    Args:
        config: pytest's configuration.
    """


@pytest.hookspec
def pytest_regen_validators(
    config: pytest.Config, store: "RegenStore", type_name: str
) -> "Iterable[Issue] | None":
    """Return what else is wrong with one type of a store.

    Issues of severity ``error`` fail the type's item and are fed back when it is regenerated.

    Args:
        config: pytest's configuration.
        store: the store as it stands, a candidate included while one is tried.
        type_name: the type, as its source declares it.
    """


@pytest.hookspec(firstresult=True)
def pytest_regen_prices(config: pytest.Config, model: str) -> "Price | None":
    """Return what a million tokens of a model cost; the first that is not ``None`` is used.

    Asked for models that the project's own table ``[tool.pytest-regen.price]`` does not name;
    without an answer, the price list of genai-prices decides.

    Args:
        config: pytest's configuration.
        model: as requests name it.
    """


@pytest.hookspec
def pytest_regen_scrubbers(config: pytest.Config) -> "Iterable[Scrub] | None":
    """Return functions that take a text and return it without what no recording may hold.

    Called once a run. The functions see every text of requests and answers, one after the other,
    before it is written and before it is compared with what is written; credentials are taken
    out whether or not there are any. Tests marked ``vcr`` have vcrpy's own filters instead.

    Args:
        config: pytest's configuration.
    """


@pytest.hookspec
def pytest_regen_before_turn(config: pytest.Config, request: "TurnRequest") -> None:
    """Look at a request that is about to be sent; raise to stop it.

    Args:
        config: pytest's configuration.
        request: what is asked.
    """


@pytest.hookspec
def pytest_regen_after_turn(config: pytest.Config, request: "TurnRequest", reply: "Reply") -> None:
    """Look at a reply that has just arrived.

    Args:
        config: pytest's configuration.
        request: what was asked.
        reply: what came back.
    """


@pytest.hookspec
def pytest_regen_after_heal(item: pytest.Item, result: "HealResult") -> None:
    """Look at how the work on one type ended.

    Args:
        item: the test that failed and asked for it.
        result: what was asked, kept and rejected, and why the work ended.
    """
