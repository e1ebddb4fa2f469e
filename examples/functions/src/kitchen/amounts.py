"""Amounts as recipes write them, kept as exact fractions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

VULGAR = {"¼": Fraction(1, 4), "½": Fraction(1, 2), "¾": Fraction(3, 4), "⅓": Fraction(1, 3)}


def parse_amount(text: str) -> Fraction:
    """Return the amount that a recipe writes: ``2``, ``0.25``, ``3/4``, ``1 1/2``, ``1½`` or ``½``.

    Blanks around it do not count. Amounts are never negative. Anything else is a ``ValueError``
    with the text in it.

    >>> parse_amount("1 1/2")
    Fraction(3, 2)
    >>> parse_amount(" 0.25 ")
    Fraction(1, 4)
    >>> parse_amount("1½")
    Fraction(3, 2)
    >>> parse_amount("a pinch")
    Traceback (most recent call last):
    ...
    ValueError: no amount: 'a pinch'
    """
    # [REGEN:BEGIN parse_amount]
    import re

    signs = "".join(VULGAR)
    forms = (
        r"(?P<whole>\d+)",
        r"(?P<decimal>\d+\.\d+)",
        r"(?:(?P<before>\d+)\s+)?(?P<top>\d+)/(?P<bottom>\d*[1-9]\d*)",
        rf"(?:(?P<number>\d+)\s*)?(?P<sign>[{signs}])",
    )
    stripped = text.strip()
    for form in forms:
        match = re.fullmatch(form, stripped, re.ASCII)
        if match is None:
            continue
        found = match.groupdict()
        if "whole" in found:
            return Fraction(int(found["whole"]))
        if "decimal" in found:
            return Fraction(found["decimal"])
        if "top" in found:
            return int(found["before"] or 0) + Fraction(int(found["top"]), int(found["bottom"]))
        return int(found["number"] or 0) + VULGAR[found["sign"]]
    raise ValueError(f"no amount: {text!r}")
    # [REGEN:END parse_amount]


def format_amount(amount: Fraction) -> str:
    """Return an amount as ``parse_amount`` reads it: whole, proper fraction, or both.

    >>> format_amount(Fraction(3, 2))
    '1 1/2'
    >>> format_amount(Fraction(3, 4)), format_amount(Fraction(2))
    ('3/4', '2')
    >>> format_amount(Fraction(0))
    '0'
    """
    # [REGEN:BEGIN format_amount]
    whole, rest = divmod(amount.numerator, amount.denominator)
    if not rest:
        return str(whole)
    fraction = f"{rest}/{amount.denominator}"
    return f"{whole} {fraction}" if whole else fraction
    # [REGEN:END format_amount]


def scale(recipe: Mapping[str, Fraction], servings: int, wanted: int) -> dict[str, Fraction]:
    """Return what a recipe for some servings takes for as many as are wanted.

    >>> scale({"flour": Fraction(3, 2), "eggs": Fraction(2)}, 4, 6)
    {'flour': Fraction(9, 4), 'eggs': Fraction(3, 1)}
    >>> scale({}, 0, 2)
    Traceback (most recent call last):
    ...
    ValueError: a recipe for 0 servings
    """
    # [REGEN:BEGIN scale]
    if servings < 1:
        raise ValueError(f"a recipe for {servings} servings")
    return {name: amount * wanted / servings for name, amount in recipe.items()}
    # [REGEN:END scale]


def add_up(recipes: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    """Return all that recipes take together, in alphabetical order.

    >>> add_up([{"flour": Fraction(1), "eggs": Fraction(2)}, {"eggs": Fraction(1)}])
    {'eggs': Fraction(3, 1), 'flour': Fraction(1, 1)}
    """
    # [REGEN:BEGIN add_up]
    total: dict[str, Fraction] = {}
    for recipe in recipes:
        for name, amount in recipe.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return dict(sorted(total.items()))
    # [REGEN:END add_up]


@dataclass
class Pantry:
    """What is in the house."""

    stock: dict[str, Fraction] = field(default_factory=dict)

    def missing(self, recipe: Mapping[str, Fraction]) -> list[str]:
        """Return what has to be bought for a recipe, one line each, in its order.

        >>> pantry = Pantry({"eggs": Fraction(1)})
        >>> pantry.missing({"flour": Fraction(1, 2), "eggs": Fraction(3), "salt": Fraction(0)})
        ['1/2 flour', '2 eggs']
        """
        # [REGEN:BEGIN Pantry.missing]
        lines = []
        for name, amount in recipe.items():
            lacking = amount - self.stock.get(name, Fraction(0))
            if lacking > 0:
                lines.append(f"{format_amount(lacking)} {name}")
        return lines
        # [REGEN:END Pantry.missing]
