"""What this project asks of its generated types, beyond what validation checks by itself."""

import pytest

STORE = "generated/GET_v1_port-calls_callId-b21766ff"


def test_money_is_never_binary(regen_store):
    """A double cannot hold 0.10; charges are exact."""
    charge = regen_store(STORE)["Charge"]

    assert "double" not in charge.source
    assert "Money" in charge.source


@pytest.mark.regen(store=STORE, types=["Vessel"])
def test_types_are_immutable(regen_store):
    """With --regen, a setter in Vessel is told to the model, and the test is called again."""
    vessel = regen_store(STORE)["Vessel"]

    assert "set;" not in vessel.source, "use { get; init; } on every property, never set"
    assert not vessel.issues()
