"""What a session remembers of its calls: which one goes on from which, and at what cost."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_regen.sessions import Exchange, SessionTranscript
from pytest_regen.turns import Message, Reply, TurnRequest, Usage


def exchange(texts: Any, *, system: str = "s", failed: bool = False) -> Exchange:
    messages = tuple(
        Message("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)
    )
    reply = None if failed else Reply("fine", usage=Usage(10, 1, 0, 0))
    return Exchange(1, "ask", TurnRequest(system, messages, "m", 100), reply)


def reference(exchanges: list[Exchange], number: int) -> Exchange | None:
    """Return the call that ``number`` goes on from, by its definition."""
    asked = exchanges[number].request
    goes_on_from = [
        one
        for one in exchanges[:number]
        if one.reply is not None
        and one.request.system == asked.system
        and asked.messages[: len(one.request.messages)] == one.request.messages
    ]
    return max(reversed(goes_on_from), key=lambda one: len(one.request.messages), default=None)


CALLS = st.lists(
    st.builds(
        exchange,
        st.lists(st.sampled_from("ab"), max_size=4),
        system=st.sampled_from("st"),
        failed=st.booleans(),
    ),
    max_size=12,
)


@given(CALLS)
def test_a_call_goes_on_from_the_longest_answered_one_before_it(calls: list[Exchange]) -> None:
    transcript = SessionTranscript(calls)

    for number, one in enumerate(calls):
        assert transcript.before(one) is reference(calls, number)
