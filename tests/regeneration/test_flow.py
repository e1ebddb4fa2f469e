"""The main flow over several types: what is asked, in which order, and what ends it."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harbour_store import HARBOUR, harbour_store
from unit_asking import ask_for_unit

from pytest_regen.errors import TransportError
from pytest_regen.regeneration import TurnSettings, heal_store
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.turns.values import Reply, TurnRequest

WRONG = {
    (name, 1): HARBOUR[name, 1].replace("JsonPropertyName", "JsonName")
    for name in ("Owner", "Berth", "Tide")
}


class Model:
    """Answers each type as it is told to, and notes which types it was asked for."""

    def __init__(self, answer: Callable[[str], str] | None = None) -> None:
        self._answer = answer or (lambda name: HARBOUR[name, 1])
        self.asked: list[str] = []
        self.prompts: list[str] = []

    def send(self, request: TurnRequest) -> Reply:
        """Answer for the type that the prompt names."""
        found = re.search(r'^TYPE: "(\w+)"$', request.messages[-1].content, re.MULTILINE)
        assert found
        self.asked.append(found[1])
        self.prompts.append(request.messages[-1].content)
        return Reply(self._answer(found[1]), model="model-a")


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """The same with errors in three types."""
    return harbour_store(tmp_path / "wrong", WRONG).path


def test_each_round_goes_over_all_that_is_wrong(tmp_path: Path) -> None:
    """A type gets its second try when the others had their first."""
    spoilt = {key: WRONG[key] for key in (("Owner", 1), ("Berth", 1))}
    path = harbour_store(tmp_path / "store", spoilt).path
    half = {
        name: text.replace("JsonName", "JsonPropertyName", 1) for (name, _), text in spoilt.items()
    }
    model = Model(lambda name: half.pop(name, HARBOUR[name, 1]))

    done = heal_store(path, settings=TurnSettings(model), attempts=2)

    assert model.asked == ["Owner", "Berth", "Owner", "Berth"]
    assert done.stop_reasons == {"Owner": "clean", "Berth": "clean"}


def test_a_lost_connection_ends_the_work_on_all_types(wrong: Path) -> None:
    """The first request shows it; no other is sent, and types not reached have no result."""

    def answer(_name: str) -> str:
        raise TransportError("the connection was lost", hint="try again")

    model = Model(answer)
    done = heal_store(wrong, settings=TurnSettings(model, jobs=4), attempts=3)

    assert model.asked == ["Owner"]
    assert done.stop_reasons == {"Owner": "transport"}
    assert [failure.what for failure in done.failures] == ["the connection was lost"]


def test_a_refusal_ends_the_work_on_its_type_alone(wrong: Path) -> None:
    """Whatever the model declines to write, it may write the rest."""
    model = Model()
    send = model.send

    class Declining:
        """The model, with a refusal in place of one answer."""

        def send(self, request: TurnRequest) -> Reply:
            """Answer all but one."""
            reply = send(request)
            is_owner = model.asked[-1] == "Owner"
            return replace(reply, stop_reason="refusal", text="") if is_owner else reply

    done = heal_store(wrong, settings=TurnSettings(Declining(), jobs=4))

    assert done.stop_reasons == {"Owner": "refused", "Berth": "clean", "Tide": "clean"}


CONVERTED = {
    key: text.replace(
        "public State?",
        "[JsonConverter(typeof(JsonStringEnumConverter<State>))]\n    public State?",
    )
    for key, text in HARBOUR.items()
}
"""Outputs in which each use of the enum names its converter, so that the enum needs none."""

BARE = {("State", 1): HARBOUR["State", 1].partition("\n")[2]}


def test_a_type_that_another_one_healed_is_not_asked_for(tmp_path: Path) -> None:
    """With one job each type is asked in view of what the one before it changed."""
    wrong = {**BARE, ("Owner", 1): WRONG["Owner", 1], ("Berth", 1): CONVERTED["Berth", 1]}
    path = harbour_store(tmp_path / "store", wrong).path
    model = Model(lambda name: CONVERTED[name, 1])

    done = heal_store(path, settings=TurnSettings(model))

    assert model.asked == ["Owner"]
    assert done.stop_reasons == {"Owner": "clean", "State": "clean"}


def test_an_output_that_makes_another_type_wrong_is_not_kept(tmp_path: Path) -> None:
    """However many errors of its own type it mends, and though the other had none."""
    owner = CONVERTED["Owner", 1].replace('("name")', '("nmae")')
    wrong = {**BARE, ("Owner", 1): owner, ("Berth", 1): CONVERTED["Berth", 1]}
    path = harbour_store(tmp_path / "store", wrong).path

    done = heal_store(path, settings=TurnSettings(Model()), attempts=1)

    assert not done.regenerated
    assert done.stop_reasons == {"Owner": "attempts"}


def test_the_next_correction_begins_with_what_was_wrong_with_the_rejected_output(
    tmp_path: Path,
) -> None:
    """The model has just said it; what only the stored output lacks comes after it."""
    path = harbour_store(tmp_path / "store", {("Tide", 1): WRONG["Tide", 1]}).path
    worse = HARBOUR["Tide", 1].replace('("berth")', '("quay")').replace("Berth?", "Quay?")
    model = Model(lambda _: worse if len(model.asked) == 1 else HARBOUR["Tide", 1])

    done = heal_store(path, settings=TurnSettings(model), attempts=2)

    first, second = model.prompts
    assert "quay" not in first
    assert "quay" in second
    assert done.stop_reasons == {"Tide": "clean"}


def test_pages_asked_in_one_round_are_one_attempt(tmp_path: Path) -> None:
    """However many pages of a type are at fault."""
    root = "ProjectDataObject"
    wrong = {
        (root, page): HARBOUR[root, page].replace("JsonPropertyName", "JsonName") for page in (1, 2)
    }
    path = harbour_store(tmp_path / "store", wrong).path
    pages = iter([HARBOUR[root, 1], HARBOUR[root, 2]])

    result = ask_for_unit(
        StorePlace(path), root, settings=TurnSettings(Model(lambda _: next(pages)))
    )

    assert (result.attempts, result.calls) == (1, 2)
    assert result.regenerated == ((root, 1), (root, 2))
    assert result.stop_reason == "clean"
