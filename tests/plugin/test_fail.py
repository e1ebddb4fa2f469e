"""``pytest_regen.fail``: a failure whose content is the feedback."""

import pickle

import pytest

import pytest_regen
from pytest_regen.testing import FeedbackError
from pytest_regen.validation.issues import Issue

ISSUE = Issue.of("MISSING_FIELD", "field 'name' is missing", type_name="Owner", page=1)


def test_it_is_an_assertion_that_shows_what_is_wrong() -> None:
    with pytest.raises(AssertionError) as caught:
        pytest_regen.fail(issues=[ISSUE], corrections="dates are UTC")

    assert str(caught.value) == "[MISSING_FIELD] Owner: field 'name' is missing\ndates are UTC"


def test_it_carries_the_feedback_through_pickling() -> None:
    error = FeedbackError([ISSUE, "dates are UTC"])

    assert pickle.loads(pickle.dumps(error)).feedback == (ISSUE, "dates are UTC")


def test_saying_nothing_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="needs issues="):
        pytest_regen.fail()
