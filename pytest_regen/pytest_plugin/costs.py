"""What live calls of a run cost: by the project's table, else its hook, else the price list."""

from decimal import Decimal

import pytest

from pytest_regen.pytest_plugin.choices import choices_of
from pytest_regen.pytest_plugin.usage_errors import usage_error
from pytest_regen.settings import Price
from pytest_regen.turns import cost_of
from pytest_regen.turns.values import Usage

__all__ = ["cost_in"]


def cost_in(config: pytest.Config, usage: Usage, model: str) -> Decimal | None:
    """Return what ``usage`` costs in US dollars, or ``None`` where nobody knows a price.

    Raises:
        pytest.UsageError: the hook ``pytest_regen_prices`` answers with something else.
    """
    price = choices_of(config).settings.price.get(model)
    if price is None:
        price = config.hook.pytest_regen_prices(config=config, model=model)
    if price is None:
        return cost_of(usage, model)
    if not isinstance(price, Price):
        raise usage_error(
            f"pytest_regen_prices answers {price!r} for {model!r}",
            why="a price is what input and output cost, in US dollars per million tokens",
            hint="return pytest_regen.settings.Price(input=3, output=15), or None",
        )
    return price.cost(usage)
