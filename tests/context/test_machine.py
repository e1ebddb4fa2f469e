"""Any order of what clients, models and time can do: several conversations, one stateless agent."""

import json
from typing import Any

from context_values import INFERRED, LOCATION, WORDS
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)
from laws import scaled

from pytest_regen.context import (
    Ask,
    ClarificationRequest,
    ClarifyingAgent,
    Generate,
    Sealer,
    parse_context,
    parse_request,
    require_seal,
)
from pytest_regen.errors import InvalidContextError, ReaskedError, ReplyFormatError, SealError
from pytest_regen.turns import ScriptedProvider, TurnRequest

KEY = {"k1": "flows that are told apart by their keys"}
MOODS = ("writes", "asks first", "asks", "mumbles first", "mumbles")


class Conversation:
    """What a client holds: its own words, and what it was given on the first turn, as JSON."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.message = f"issue{number}x"
        self.given: dict[str, Any] = {}
        self.answers: dict[str, str] = {}
        self.last: TurnRequest | None = None
        """The first request of the last second turn."""

    def body(self) -> dict[str, Any]:
        """Return the request of the second turn."""
        return {
            "message": self.message,
            "interactionId": f"c-{self.number}",
            "seal": self.given["seal"],
            "conversationContext": {
                "originalDescription": self.message,
                "questionsAsked": self.given["clarification_questions"],
                "inferredContext": self.given["inferred_context"],
                "answers": self.answers,
            },
        }


class Flows(RuleBasedStateMachine):
    """Clients take turns with agents of which each lives for one turn."""

    asked: Bundle[Conversation] = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.started = 0
        self.sent: list[tuple[int, TurnRequest]] = []
        self.calls: list[int] = []

    @rule(target=asked)
    def start(self) -> Conversation:
        """Somebody describes an issue, and is asked two questions."""
        self.started += 1
        one = Conversation(self.started)
        inferred = INFERRED | {"reasoning": f"because{one.number}x"}
        questions = [LOCATION | {"question": f"Where{one.number}x?"}, WORDS]
        said = {"needs_clarification": True, "clarification_questions": questions}
        reply = json.dumps({**said, "inferred_context": inferred})
        request = parse_request({"message": one.message})
        result = self._turn(one, request, [reply])
        assert isinstance(result, Ask)
        one.given = result.model_dump(mode="json", by_alias=True) | {"seal": ""}
        first = parse_context(one.body()["conversationContext"])
        one.given["seal"] = self._sealer().seal(first, conversation=f"c-{one.number}")
        return one

    @rule(one=asked, place=st.booleans(), words=st.booleans())
    def answer(self, one: Conversation, *, place: bool, words: bool) -> None:
        """Somebody fills in all, some or none of the answers."""
        one.answers = {
            **({"location": f"place{one.number}x"} if place else {}),
            **({"words": f"words{one.number}x"} if words else {"words": " "}),
        }

    @rule(one=asked)
    def reload(self, one: Conversation) -> None:
        """The page is loaded again: all that is left of the conversation is JSON."""
        one.given, one.answers = json.loads(json.dumps([one.given, one.answers]))

    @rule(one=asked, mood=st.sampled_from(MOODS))
    def send(self, one: Conversation, mood: str) -> None:
        """The second turn, with a model in one mood or another; it can be sent again after."""
        before = dict(one.answers)
        request = self._accepted(one.body())
        try:
            result = self._turn(one, request, self._script(mood))
        except (ReaskedError, ReplyFormatError):
            assert mood in {"asks", "mumbles"}
        else:
            assert isinstance(result, Generate)
        assert one.answers == before

    @rule(one=asked, mood=st.sampled_from(MOODS))
    def send_twice(self, one: Conversation, mood: str) -> None:
        """What is sent after an error, or a lost connection, is what was sent before."""
        self.send(one, mood)
        first = self.sent[-self.calls[-1]][1]
        self.send(one, "writes")

        assert self.sent[-1][1] == first

    @rule(one=asked, part=st.sampled_from(("description", "questions", "inferences", "seal")))
    def tamper(self, one: Conversation, part: str) -> None:
        """Whoever changes anything but the answers is refused."""
        body = json.loads(json.dumps(one.body()))
        context = body["conversationContext"]
        if part == "description":
            context["originalDescription"] += "!"
        elif part == "questions":
            context["questionsAsked"][0]["question"] += "!"
        elif part == "inferences":
            context["inferredContext"]["reasoning"] += "!"
        else:
            body["seal"] = body["seal"][:-2]
        self._refused(body)

    @precondition(lambda self: self.started > 1)
    @rule(one=asked, other=asked)
    def mix(self, one: Conversation, other: Conversation) -> None:
        """The seal of one conversation is no good in another."""
        if one is not other:
            self._refused({**one.body(), "seal": other.given["seal"]})
            self._refused({**one.body(), "interactionId": f"c-{other.number}"})

    @rule(one=consumes(asked))
    def come_too_late(self, one: Conversation) -> None:
        """A seal expires; the time of others goes on."""
        now, self.now = self.now, self.now + 3_700
        self._refused(one.body())
        self.now = now

    @invariant()
    def nothing_is_mixed_up(self) -> None:
        """A request holds the words of its own conversation and of no other."""
        for number, request in self.sent[-4:]:
            text = "\n".join(message.content for message in request.messages)
            for other in range(1, self.started + 1):
                own = other == number
                assert (f"issue{other}x" in text) == own
                assert own or f"because{other}x" not in text

    @invariant()
    def calls_are_bounded(self) -> None:
        """No turn takes more than three calls of the model."""
        assert all(calls <= 3 for calls in self.calls[-2:])

    def _sealer(self) -> Sealer:
        return Sealer(KEY, clock=lambda: self.now)

    def _accepted(self, body: dict[str, Any]) -> ClarificationRequest:
        request = parse_request(body)
        assert request.conversation_context is not None
        require_seal(
            self._sealer(),
            request.seal,
            request.conversation_context,
            conversation=request.interaction_id or "",
        )
        return request

    def _refused(self, body: dict[str, Any]) -> None:
        try:
            self._accepted(body)
        except (SealError, InvalidContextError):
            return
        raise AssertionError("a context that nobody vouches for was accepted")

    def _script(self, mood: str) -> list[str]:
        asks = json.dumps({"needs_clarification": True, "clarification_questions": [LOCATION]})
        writes = json.dumps({"needs_clarification": False, "subject_line": "Act"})
        bad = asks if mood.startswith("asks") else "hm"
        if mood == "writes":
            return [writes]
        return [bad, writes] if mood.endswith("first") else [bad] * 3

    def _turn(self, one: Conversation, request: ClarificationRequest, replies: list[str]) -> object:
        provider = ScriptedProvider(replies)
        try:
            return ClarifyingAgent(provider).turn(request)
        finally:
            self.sent += [(one.number, sent) for sent in provider.requests]
            self.calls.append(len(provider.requests))


TestFlows = Flows.TestCase
TestFlows.settings = settings(max_examples=scaled(25), stateful_step_count=20)
