"""Checks that an agent's second turn has everything it needs, and nothing else.

Each takes a factory, which makes an agent that speaks through the provider it is given, lets the
agent take turns while a scripted model answers, and looks at what was sent. No model is needed, and
no failure is a matter of luck: asking again cannot make one pass.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from pytest_regen.context.questions import LocationLevel
from pytest_regen.context.requests import ClarificationRequest
from pytest_regen.context.values import Ask
from pytest_regen.testing.agents import (
    ANY_MARK,
    AgentFactory,
    ContextLossError,
    Replies,
    Turns,
    bad_at_first,
    first_text,
    is_questions,
    observe,
    plain_turn,
    text_of,
    writing,
)
from pytest_regen.testing.canaries import (
    CanaryFlow,
    RequestWith,
    canary_flows,
    exchanges,
    find_misplaced,
    flow_of_pairs,
    flow_with,
    new_mark,
    posing,
    variants,
)
from pytest_regen.testing.fresh import FRESH, take_turn_elsewhere
from pytest_regen.testing.structure import assert_structure_holds

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

_REPLIES: Final = Replies()
_MAX_CALLS: Final = 3


def assert_carries_full_context(
    make: AgentFactory, *, replies: Replies = _REPLIES, ignore: Iterable[str] = ()
) -> None:
    """Check that every leaf of the context reaches the model on the second turn.

    Texts are tokens that must stand in the request; of others, another value must make
    another request.

    Args:
        make: makes the agent.
        replies: what the model says.
        ignore: patterns of paths that need not arrive: ``questions_asked.*.placeholder``.

    Raises:
        ContextLossError: leaves are lost; names them.
    """
    turns = Turns(make, replies)
    patterns = tuple(ignore)
    lost: dict[str, str] = {}
    for number in range(2):
        for where, flow in _shapes(number):
            seen = observe(make)(flow.request, writing(replies))
            sent = first_text("carries_full_context", seen)
            for path, token in flow.tokens.items():
                if flow.ends[path] not in sent:
                    lost.setdefault(path, where if token not in sent else ": its end is cut off")
        for path, one, other in variants(number):
            if turns.same(one, other):
                lost.setdefault(path, "")
    found = [
        f"{path}{where}"
        for path, where in lost.items()
        if not any(fnmatchcase(path, pattern) for pattern in patterns)
    ]
    if found:
        raise ContextLossError(
            "carries_full_context",
            f"{len(found)} leaves of the context do not reach the model",
            found,
        )


def _shapes(number: int) -> Iterator[tuple[str, CanaryFlow]]:
    """Yield flows in which different things get lost, and what to say of them."""
    yield "", canary_flows()[number]
    # Where inferences are sure, some let them win over answers; where not, some drop them.
    for confidence in (0.98, 0.02):
        where = f", where inferences have confidence {confidence}"
        yield where, canary_flows(confidence=confidence)[number]
    yield ", where texts are as long as they may be", canary_flows(long=True)[number]


def assert_answers_in_place(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that every answer stands with its question, and no inference where an answer belongs.

    Looks at the order of the tokens in the prompt and at what stands before them. An agent passes
    whose prompt names the question beside its answer, or lists answers in the order of questions.

    Raises:
        ContextLossError: they do not; names the leaves.
    """
    turns = Turns(make, replies)
    wrong = [
        f"{path} stands with another question"
        for path in find_misplaced(flow_of_pairs(ANY_MARK).tokens, turns.text(_pairs))
    ]
    first, second = turns.text(_only_first), turns.text(_only_second)
    tokens = flow_of_pairs(ANY_MARK).tokens
    named = all(tokens[f"questions_asked.{n}.question"] in first for n in (0, 1))
    answered = tokens["answers.0.text"] in first and tokens["answers.0.text"] in second
    if named and answered and turns.same(_only_first, _only_second):
        wrong.append("which of the questions was answered does not reach the model")
    for number in range(2):
        texts = [turns.text(_Skipping(number, how)) for how in ("request", "skipped")]
        wrong += [
            f"{answer} and {inferred} have changed places"
            for inferred, answer in exchanges(canary_flows(ANY_MARK)[number].tokens, *texts)
        ]
    if wrong:
        raise ContextLossError("answers_in_place", "answers are not where they belong", wrong)


def _pairs(mark: str) -> ClarificationRequest:
    return flow_of_pairs(mark).request


def _only_first(mark: str) -> ClarificationRequest:
    return flow_of_pairs(mark).answering(0)


def _only_second(mark: str) -> ClarificationRequest:
    """Return the request in which the same words answer the other question."""
    flow = flow_of_pairs(mark)
    answers = [None, flow.wire["answers"][0]]
    return CanaryFlow({**flow.wire, "answers": answers}, flow.tokens, flow.ends).request


def assert_stateless(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that a second turn follows from its request alone.

    One instance takes turns of several conversations: one turn twice, one with the same description
    as another, one with the same answers, two under one ``interaction_id``, a second turn after its
    first. Each must be what it is without the others. So must it be in a fresh process (from JSON,
    with another hash seed and locale), and there on another day in another time zone.

    Raises:
        ContextLossError: it is not; names the cases.
        UsageError: the factory cannot be imported in a fresh process.
    """
    turns, mark = Turns(make, replies), new_mark()
    flow, other = canary_flows(mark)
    take, script = observe(make), turns.script(mark)
    first = take(flow.request, script)
    first_text("stateless", first)
    # Where tokens with another mark make another prompt, expectations have to have the same mark.
    is_steady = turns.plain(_first_flow) == turns.without_mark(first, mark)
    wrong = []
    for name, before, request_with in _CASES:
        for earlier in before:
            take(earlier(mark), script)
        seen = take(request_with(mark), script)
        alone = plain_turn(observe(make)(request_with(mark), script))
        # What the whole process remembers is found by tokens that it cannot know.
        is_known = is_steady and turns.plain(request_with) == turns.without_mark(seen, mark)
        if plain_turn(seen) != alone or (is_steady and not is_known):
            wrong.append(f"{name}: sends or answers something else")
    interleaved = take(flow.request, script)
    if plain_turn(interleaved) != plain_turn(first):
        wrong.append("interleaved with other conversations: sends or answers something else")
    elsewhere = take_turn_elsewhere(make, flow.request, replies)
    expected = plain_turn(observe(make)(flow.request, writing(replies)))
    wrong += [
        f"{name}: sends or answers something else"
        for name, seen in elsewhere.items()
        if seen != expected
    ]
    prompts = "\n".join(map(text_of, interleaved.requests))
    wrong += [
        f"{path} of another conversation is sent"
        for path, token in other.tokens.items()
        if token in prompts
    ]
    if wrong:
        raise ContextLossError("stateless", "a second turn depends on more than its request", wrong)


def _first_flow(mark: str) -> ClarificationRequest:
    return canary_flows(mark)[0].request


def _other_flow(mark: str) -> ClarificationRequest:
    return canary_flows(mark)[1].request


def _same_description(mark: str) -> ClarificationRequest:
    texts = {"answers.0.label": f"elsewhere {mark}", "inferred_context.reasoning": f"else {mark}"}
    return flow_with(canary_flows(mark)[0], texts)


def _same_answers(mark: str) -> ClarificationRequest:
    texts = {
        "original_description": f"something else {mark}",
        "inferred_context.reasoning": f"for another reason {mark}",
    }
    return flow_with(canary_flows(mark)[0], texts)


def _under_one_id(request_with: RequestWith) -> RequestWith:
    """Return the same request with an ``interaction_id`` that its mark decides."""

    def request(mark: str) -> ClarificationRequest:
        return request_with(mark).model_copy(update={"interaction_id": f"i{mark}"})

    return request


_CASES: Final[Sequence[tuple[str, Sequence[RequestWith], RequestWith]]] = (
    ("the same instance", (), _first_flow),
    (
        "after another conversation",
        (lambda mark: canary_flows(mark)[1].first, _other_flow),
        _first_flow,
    ),
    ("after another conversation with the same description", (), _same_description),
    ("after another conversation with the same answers", (), _same_answers),
    (
        "after another context under the same interaction_id",
        (_under_one_id(_other_flow),),
        _under_one_id(_first_flow),
    ),
    (
        "after the first turn under the same interaction_id",
        (_under_one_id(lambda mark: canary_flows(mark)[1].first),),
        _under_one_id(_other_flow),
    ),
)
"""What it is called, the turns taken before, and the turn that they must not change."""


def assert_legacy_ignored(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that the legacy fields change nothing where there is a context.

    Raises:
        ContextLossError: they do; names them.
    """
    turns = Turns(make, replies)
    wrong = [
        f"{name}: the request is another with it"
        for name, with_legacy in _LEGACY.items()
        if turns.differ(_first_flow, with_legacy)
    ]
    if wrong:
        raise ContextLossError("legacy_ignored", "legacy fields win over the context", wrong)


def _legacy_answers(mark: str) -> ClarificationRequest:
    flow = canary_flows(mark)[0]
    answers = {question["id"]: "a legacy answer" for question in flow.wire["questions_asked"]}
    return flow.request.model_copy(update={"clarification_answers": answers})


def _legacy_skip(mark: str) -> ClarificationRequest:
    return _first_flow(mark).model_copy(update={"clarification_answers": {}})


_LEGACY: Final[Mapping[str, RequestWith]] = {
    "interaction_id": _under_one_id(_first_flow),
    "clarification_answers": _legacy_answers,
    "both": _under_one_id(_legacy_answers),
    "empty clarification_answers": _under_one_id(_legacy_skip),
}


def assert_retry_keeps_context(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that what is sent after an unusable reply still holds all that was sent before it.

    An agent that does not ask again keeps everything.

    Raises:
        ContextLossError: leaves are lost; names them.
    """
    lost: list[str] = []
    for number in range(2):
        for bad in (*replies.unusable, replies.ask):
            flow = canary_flows()[number]
            seen = observe(make)(flow.request, bad_at_first(bad, replies))
            lost += [
                path
                for path, token in flow.tokens.items()
                for again in seen.requests[1:]
                if token in seen.text and token not in text_of(again)
            ]
    if lost:
        raise ContextLossError(
            "retry_keeps_context",
            "leaves that the first request held are missing when the model is asked again",
            dict.fromkeys(lost),
        )


def assert_reasking_is_bounded(
    make: AgentFactory,
    *,
    replies: Replies = _REPLIES,
    max_calls: int = _MAX_CALLS,
    is_ask: Callable[[Any], bool] | None = None,
) -> None:
    """Check what becomes of a model that never stops asking.

    Args:
        make: makes the agent.
        replies: what the model says.
        max_calls: of the model, in one turn.
        is_ask: whether a result of the agent holds questions; an ``Ask``, or a mapping whose
            ``needs_clarification`` is true, by default.

    Raises:
        ContextLossError: a second turn returns questions, or the model is called too often.
    """
    asks = is_ask or is_questions
    wrong = []
    for name, kind in (("answered", "request"), ("skipped", "skipped")):
        for flow in canary_flows():
            seen = observe(make)(getattr(flow, kind), lambda _, __: replies.ask)
            if seen.ran_away or len(seen.requests) > max_calls:
                wrong.append(f"{name}: {len(seen.requests)} calls or more, {max_calls} at most")
            elif seen.error is None and asks(seen.result):
                wrong.append(f"{name}: the second turn returns questions")
    if wrong:
        raise ContextLossError("reasking_bounded", "asking again has no end", dict.fromkeys(wrong))


def assert_skip_is_graceful(
    make: AgentFactory,
    *,
    replies: Replies = _REPLIES,
    is_ask: Callable[[Any], bool] | None = None,
) -> None:
    """Check that a person may skip: no error, no question, and nothing but answers is lost.

    Raises:
        ContextLossError: they may not.
    """
    turns, asks = Turns(make, replies), is_ask or is_questions
    wrong: list[str] = []
    for number in range(2):
        answered, skipped, blank = (_Skipping(number, how) for how in _HOW)
        seen = turns.observe(skipped)
        if seen.error is not None:
            wrong.append(f"raises {type(seen.error).__name__}: {seen.error}"[:300])
            continue
        if asks(seen.result):
            wrong.append("asks again")
        if not seen.requests and take_turn_elsewhere(make, skipped(new_mark()), replies)[FRESH][0]:
            # Somebody else's result, remembered by answers: another check looks at that.
            continue
        if turns.differ(skipped, blank):
            wrong.append("blank answers are not taken for none")
        wrong += _losses_by_skipping(number, turns.text(answered), turns.text(skipped))
    if wrong:
        raise ContextLossError("skip_works", "skipping is not graceful", dict.fromkeys(wrong))


_HOW: Final = ("request", "skipped", "blank")


class _Skipping:
    """The request of a flow, answered or not, with any mark."""

    def __init__(self, number: int, how: str) -> None:
        self._number, self._how = number, how

    def __call__(self, mark: str) -> ClarificationRequest:
        request: ClarificationRequest = getattr(canary_flows(mark)[self._number], self._how)
        return request


def _losses_by_skipping(number: int, answered: str, skipped: str) -> Iterator[str]:
    """Yield what is wrong with a prompt without answers beside the same with answers."""
    tokens = canary_flows(ANY_MARK)[number].tokens
    for path, token in tokens.items():
        # Ids may have been sent as names of answers.
        is_answer = path.startswith("answers") or path.endswith(".id")
        if token in answered and token not in skipped and not is_answer:
            yield f"{path} is lost"
    for path, posed in posing(tokens, answered, skipped):
        yield f"{path} stands where the answer {posed} would stand"


def assert_level(ask: Ask, question: str, level: LocationLevel) -> None:
    """Check the level of place that a location question asks for.

    Raises:
        AssertionError: there is no such question, or its level is another.
    """
    levels = {question.id: question.location_level for question in ask.questions}
    assert question in levels, f"no question {question!r}; asked were {sorted(levels)}"
    found = levels[question]
    assert found == level, f"question {question!r} asks for a {found}, not a {level}"


CHECKS: Final[Mapping[str, Callable[..., None]]] = {
    "carries_full_context": assert_carries_full_context,
    "answers_in_place": assert_answers_in_place,
    "stateless": assert_stateless,
    "legacy_ignored": assert_legacy_ignored,
    "retry_keeps_context": assert_retry_keeps_context,
    "reasking_bounded": assert_reasking_is_bounded,
    "skip_works": assert_skip_is_graceful,
    "structure_holds": assert_structure_holds,
}
"""All checks by name."""


def failing_checks(
    make: AgentFactory, *, replies: Replies = _REPLIES, checks: Iterable[str] = tuple(CHECKS)
) -> dict[str, ContextLossError]:
    """Return the failures of an agent by the name of the check; empty for a good one."""
    failures = {}
    for name in checks:
        try:
            CHECKS[name](make, replies=replies)
        except ContextLossError as error:
            failures[name] = error
    return failures


def check_stateless_agent(
    make: AgentFactory, *, replies: Replies = _REPLIES, checks: Iterable[str] = tuple(CHECKS)
) -> None:
    """Check an agent in every way.

    Args:
        make: makes the agent; a function or class at the top of a module.
        replies: what the scripted model says, where the agent reads another form than ours.
        checks: names of the checks to make.

    Raises:
        ContextLossError: it fails; one failure is raised as it is, several in one.
    """
    failures = tuple(failing_checks(make, replies=replies, checks=checks).values())
    if len(failures) == 1:
        raise failures[0]
    if failures:
        names = ", ".join(failure.check for failure in failures)
        raise ContextLossError(names, f"{len(failures)} checks fail", map(str, failures))
