"""What must hold of amounts beyond the examples of their docstrings."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kitchen.amounts import Pantry, add_up, format_amount, parse_amount, scale

amounts = st.fractions(min_value=0, max_value=1_000, max_denominator=64)
recipes = st.dictionaries(st.sampled_from(["eggs", "flour", "milk", "salt"]), amounts)
# The same examples in every run, so that a failure reads the same and its recording answers.
repeatable = settings(derandomize=True, database=None, deadline=None)


@pytest.mark.regen(unit="src/kitchen/amounts.py::parse_amount")
@pytest.mark.parametrize("text", ["1/0", "", "-1", "1.5.2", "½½"])
def test_what_is_no_amount(text):
    """A fraction by zero, nothing, a sign, and more than one number."""
    with pytest.raises(ValueError, match="no amount"):
        parse_amount(text)


@pytest.mark.regen(unit=["src/kitchen/amounts.py::format_amount"])
@repeatable
@given(amounts)
def test_an_amount_comes_back(amount):
    """What is written is what is read."""
    assert parse_amount(format_amount(amount)) == amount


@pytest.mark.regen(unit="src/kitchen/amounts.py::scale")
@repeatable
@given(recipes, st.integers(1, 12), st.integers(1, 12))
def test_scaling_there_and_back(recipe, servings, wanted):
    """Nothing is lost on the way."""
    assert scale(scale(recipe, servings, wanted), wanted, servings) == recipe


@repeatable
@given(recipes)
def test_nothing_is_missing_from_a_pantry_that_holds_it(recipe):
    """What is there need not be bought."""
    assert Pantry(add_up([recipe])).missing(recipe) == []
