"""Checks that an agent's second turn has everything it needs, and nothing else.

Each takes a factory, which makes an agent that speaks through the provider it is given, lets the
agent take turns while a scripted model answers, and looks at what was sent. No model is needed, and
no failure is a matter of luck: asking again cannot make one pass.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

from pydantic import BaseModel

from pytest_regen.context.questions import LocationLevel, is_blank
from pytest_regen.context.values import Ask
from pytest_regen.errors import UsageError
from pytest_regen.testing import fresh, places
from pytest_regen.testing.agents import (
    Agent,
    AgentFactory,
    ContextLossError,
    Observed,
    Replies,
    is_questions,
    plain_turn,
    readable,
    text_of,
    writing,
)
from pytest_regen.testing.canaries import (
    ANY_MARK,
    Sample,
    Shape,
    leaves,
    new_mark,
    value_at,
    with_value,
)
from pytest_regen.testing.lab import Lab
from pytest_regen.testing.remote import HttpAgent
from pytest_regen.testing.structure import assert_structure_holds

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

_REPLIES: Final = Replies()
_MAX_CALLS: Final = 3
_TOKEN: Final = 17
"""Characters of a token."""


def assert_carries_full_context(
    make: AgentFactory, *, replies: Replies = _REPLIES, ignore: Iterable[str] = ()
) -> None:
    """Check that every leaf of the context reaches the model on the second turn.

    Texts are tokens that must stand in the request; of others, another value must make
    another request. Ids need not arrive.

    Args:
        make: makes the agent.
        replies: what the model says.
        ignore: patterns of paths that need not arrive: ``questions_asked.*.placeholder``.

    Raises:
        ContextLossError: leaves are lost; names them.
    """
    lab, check = Lab.of(make, replies), "carries_full_context"
    lost: dict[str, str] = {}
    for shape, where in lab.shapes():
        seen = lab.observe(shape)
        lab.require_request(check, seen)
        prompt, ends = readable(seen.prompt), shape.sent_tokens(ANY_MARK, "y")
        for path, token in shape.sent_tokens(ANY_MARK).items():
            # Which questions are told where some are skipped is for another check.
            is_due = not shape.is_partial or shape.sample.role(path)[0] == "answer"
            if ends[path] not in prompt and is_due:
                lost.setdefault(path, where if token not in prompt else ": its end is cut off")
    tried: set[str] = set()
    for sample in lab.samples:
        variants = [*sample.variants()]
        for path, other in variants:
            if _pattern(path) not in tried and lab.same(Shape(sample, sample.wire), other):
                lost.setdefault(path, "")
        # The same member of another conversation, which is sent by the same line.
        tried |= {_pattern(path) for path, _ in variants}
        for path, negative, without in _negatives(sample):
            if lab.same(negative, without):
                lost.setdefault(path, ", where the answer is 'no'")
    found = [
        f"{path}{where}"
        for path, where in lost.items()
        if not any(fnmatchcase(path, pattern) for pattern in ignore)
    ]
    if found:
        summary = f"{len(found)} leaves of the context do not reach the model"
        raise ContextLossError(check, summary, found)


def _pattern(path: str) -> str:
    return re.sub(r"\d+", "*", path)


def _negatives(sample: Sample) -> Iterator[tuple[str, Shape, Shape]]:
    """Yield the path of an answer in words, the turn in which it is no, and the one without it."""
    for path in sample.texts:
        kind, number = sample.role(path)
        alone = Shape(sample, sample.wire).answering(*range(int(number or 0)))
        if kind == "answer" and number == str(len(sample.ids) - 1):
            some = Shape(sample, sample.wire).with_leaf(path, "no")
            if sample.accepts(some.wire) and path.endswith("text"):
                yield path, some, alone


def assert_answers_in_place(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that every answer stands with its question, and no inference where an answer belongs.

    Looks at the order of the tokens in the prompt and at what stands before them. An agent passes
    whose prompt names the question beside its answer, or lists answers in the order of questions.

    Raises:
        ContextLossError: they do not; names the leaves.
    """
    lab = Lab.of(make, replies)
    wrong: list[str] = []
    for sample in lab.samples:
        shape = Shape(sample, sample.wire)
        answered, skipped = lab.prompt(shape), lab.prompt(shape.answering())
        depth = len(sample.answers_at)
        in_answers = [keys for keys, _ in leaves(sample.wire) if keys[:depth] == sample.answers_at]
        # Not where options were chosen, because their tokens stand with the question as well.
        if not any(isinstance(key, int) for keys in in_answers for key in keys[depth:]):
            misplaced = places.find_misplaced(shape, answered)
            wrong += [f"{path} stands with another question" for path in misplaced]
            wrong += _unnamed(lab, shape)
        for inferred, answer in places.posing(shape, answered, skipped, moved=True):
            wrong.append(f"{answer} and {inferred} have changed places")
        for inferred, key in places.called_answers(shape, answered):
            wrong.append(f"{inferred} stands below {key!r}, and no answer does")
    if wrong:
        summary = "answers are not where they belong"
        raise ContextLossError("answers_in_place", summary, dict.fromkeys(wrong))


def _unnamed(lab: Lab, shape: Shape) -> Iterator[str]:
    """Yield that the same words make the same request as an answer to either question."""
    sample, prompts = shape.sample, []
    first, second = shape.answering(0), shape.answering(1)
    answer = value_at(first.wire, sample.answers_at)[sample.ids[0]]
    wire = with_value(first.wire, sample.answers_at, {sample.ids[1]: answer})
    for turn, roles in ((first, ("question", "answer")), (second, ("answer",))):
        tokens = turn.sent_tokens(ANY_MARK).items()
        due = [token for path, token in tokens if sample.role(path)[0] in roles]
        prompts.append((readable(lab.prompt(turn)), due))
    # Where questions or answers are missing, another check names what is lost.
    is_sent = all(token in prompt for prompt, due in prompts for token in due)
    other = replace(first, wire=wire)
    if is_sent and sample.accepts(wire) and lab.same(first, other):
        yield "which of the questions was answered does not reach the model"


def assert_stateless(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that a second turn follows from its request alone.

    One instance takes turns of several conversations: one turn twice, one with the same description
    as another, one with the same answers, two under one ``interaction_id``, a second turn after its
    first, two at once, one whose model gives nothing usable after one that went well. Each must be
    what it is without the others. So must it be in a fresh process (from JSON, with another hash
    seed and locale), and there on another day in another time zone.

    Raises:
        ContextLossError: it is not; names the cases.
        UsageError: the factory cannot be imported in a fresh process.
    """
    lab, mark, check = Lab.of(make, replies), new_mark(), "stateless"
    shapes = [Shape(sample, sample.wire) for sample in lab.samples]
    first, other = shapes[0], shapes[1 % len(shapes)]
    agent, script = Agent(lab.make), lab.script(mark)
    seen = agent.take(first.request(mark), script)
    lab.require_request(check, seen)
    # Where tokens with another mark make another prompt, expectations have to have the same mark.
    is_steady = lab.plain(first) == lab.without_mark(seen, mark)
    wrong = []
    for name, before, shape, its_script in _cases(lab, first, other):
        for earlier in before:
            agent.take(earlier.request(mark), script)
        scripted = lab.script(mark, its_script)
        after = agent.take(shape.request(mark), scripted)
        alone = Agent(lab.make).take(shape.request(mark), scripted)
        # What the whole process remembers is found by tokens that it cannot know.
        is_known = is_steady and lab.plain(shape, script=its_script) == lab.without_mark(
            after, mark
        )
        if plain_turn(after) != plain_turn(alone) or (is_steady and not is_known):
            wrong.append(f"{name}: sends or answers something else")
    interleaved = agent.take(first.request(mark), script)
    if plain_turn(interleaved) != plain_turn(seen):
        wrong.append("interleaved with other conversations: sends or answers something else")
    wrong += _at_once(lab, first, other)
    wrong += _elsewhere(lab, first)
    prompts = readable("\n".join(map(text_of, interleaved.requests)))
    tokens = {} if other is first else other.sent_tokens(mark)
    own = first.sent_tokens(mark).values()
    wrong += [
        f"{path} of another conversation is sent"
        for path, token in tokens.items()
        if token in prompts and token not in own
    ]
    if wrong:
        raise ContextLossError(check, "a second turn depends on more than its request", wrong)


def _cases(
    lab: Lab, first: Shape, other: Shape
) -> Iterator[tuple[str, Sequence[Shape], Shape, str]]:
    """Yield what is called so, the turns before, the turn that must not show it, its script."""
    after = [other]
    if lab.is_default:
        after = [replace(other, is_first=True), other]
    yield "the same instance", (), first, "write"
    yield "after another conversation", after, first, "write"
    texts = list(first.sample.texts)
    answers = [path for path in texts if first.sample.role(path)[0] == "answer"]
    reason = next((path for path in reversed(texts) if not first.sample.role(path)[0]), "")
    for what, changed in (
        ("description", [answers[0], reason]),
        ("answers", [texts[0], reason]),
    ):
        shape = first
        for path in filter(None, changed):
            # As long as a token, because a prompt may be cut in the middle of one.
            shape = shape.with_leaf(path, f"Ä {what}".ljust(_TOKEN, "."))
        name = f"after another conversation with the same {what}"
        if first.sample.accepts(shape.wire):
            yield name, (first,), shape, "write"
    yield "after unusable replies", (other,), first, "unusable"
    if lab.is_default:
        one_id = {"interaction_id": "i{mark}"}
        under = replace(first, legacy=one_id)
        where = "under the same interaction_id"
        yield f"after another context {where}", (replace(other, legacy=one_id),), under, "write"
        yield f"after the first turn {where}", (replace(under, is_first=True),), under, "write"


def _at_once(lab: Lab, *shapes: Shape) -> Iterator[str]:
    """Yield what differs where one instance takes two turns at once."""
    first, other = shapes
    names = ["write", *(f"bad {number}" for number in range(len(lab.replies.unusable)))]
    if first is other:
        # Calls are counted by the tokens of a sample, so that one alone has no bad replies.
        shapes, names = (first, first.answering()), ["write"]
    for name in names:
        mark = new_mark()
        requests = [shape.request(mark) for shape in shapes]
        plain = [plain_turn(Agent(lab.make).take(one, lab.script(mark, name))) for one in requests]
        sent = sorted(json.dumps(one, sort_keys=True) for seen in plain for one in seen[0])
        try:
            both = Agent(lab.make).take_at_once(requests, lab.script(mark, name, at_once=True))
        except TimeoutError:
            yield "two turns at once: each waits for the other, or they block the thread they share"
            return
        sent_at_once = sorted(json.dumps(json.loads(text), sort_keys=True) for text in both[0])
        if sent_at_once != sent or both[1] != [seen[1] for seen in plain]:
            yield "two turns at once: sends or answers something else"
            return


def _elsewhere(lab: Lab, shape: Shape) -> Iterator[str]:
    request, script = shape.request(new_mark()), writing(lab.replies)
    expected = plain_turn(Agent(lab.make).take(request, script))
    if isinstance(lab.make, HttpAgent):
        again = lab.make.elsewhere({**fresh.ELSEWHERE, "TZ": fresh.ANOTHER_ZONE})
        if again is None:
            return
        lab.make.stop()
        try:
            turns = {fresh.FRESH: plain_turn(Agent(again).take(request, script))}
        finally:
            again.stop()
    else:
        turns = fresh.take_turn_elsewhere(lab.make, request, lab.replies)
    for name, seen in turns.items():
        if seen != expected:
            yield f"{name}: sends or answers something else"


def assert_legacy_ignored(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that deprecated members change nothing beside a context.

    Raises:
        ContextLossError: one does; names it.
    """
    lab = Lab.of(make, replies)
    if not lab.is_default:
        return
    shape = Shape(lab.samples[0], lab.samples[0].wire)
    lab.require_request("legacy_ignored", lab.observe(shape))
    one_id, answers = {"interaction_id": "i{mark}"}, {"0": "a legacy answer", "1": "another"}
    legacy: Mapping[str, Mapping[str, Any]] = {
        "interaction_id": one_id,
        "clarification_answers": {"clarification_answers": answers},
        "both": {**one_id, "clarification_answers": answers},
        "empty clarification_answers": {"clarification_answers": {}},
    }
    wrong = [
        f"{name} beside the context: sends or answers something else"
        for name, members in legacy.items()
        if lab.differ(shape, replace(shape, legacy=members))
    ]
    if wrong:
        raise ContextLossError("legacy_ignored", "legacy fields win over the context", wrong)


def assert_retry_keeps_context(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that what is sent after unusable replies still holds all that was sent before.

    So it must after one, after two, and on a first turn. An agent that does not ask again keeps
    everything.

    Raises:
        ContextLossError: leaves are lost; names them.
    """
    lab = Lab.of(make, replies)
    lost: dict[str, None] = {}
    for sample in lab.samples:
        shape = Shape(sample, sample.wire)
        bad = [
            f"{often} {n}" for n in range(len(replies.unusable) + 1) for often in ("bad", "worse")
        ]
        turns = [(shape, name) for name in bad]
        if lab.is_default:
            usable = f" {len(replies.unusable)}"  # On a first turn the agent may ask.
            first = replace(shape, is_first=True)
            turns += [(first, name) for name in bad if not name.endswith(usable)]
        for turn, name in turns:
            seen = lab.observe(turn, name)
            prompt = readable(seen.prompt)
            again = [readable(text_of(request)) for request in seen.requests[1:]]
            for path, token in turn.sent_tokens(ANY_MARK).items():
                if token in prompt and not all(token in text for text in again):
                    lost[path] = None
    if lost:
        raise ContextLossError(
            "retry_keeps_context",
            "leaves that the first request held are missing when the model is asked again",
            lost,
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
        ContextLossError: a second turn returns questions or nothing, or the model is called too
            often.
    """
    lab, asks, wrong = Lab.of(make, replies), is_ask or is_questions, []
    for sample in lab.samples[:2]:
        shape = Shape(sample, sample.wire)
        for name, turn in (("answered", shape), ("skipped", shape.answering())):
            seen, good = lab.observe(turn, "ask"), lab.observe(turn)
            if len(seen.requests) > max_calls:
                wrong.append(f"{name}: {len(seen.requests)} calls or more, {max_calls} at most")
            elif seen.error is None and asks(seen.result):
                wrong.append(f"{name}: the second turn returns questions")
            if any(_is_empty(lab.observe(turn, bad), good) for bad in ("ask", "unusable")):
                wrong.append(f"{name}: the second turn returns an empty result as a success")
    if wrong:
        raise ContextLossError("reasking_bounded", "asking again has no end", dict.fromkeys(wrong))


def _is_empty(seen: Observed, good: Observed) -> bool:
    """Return whether a turn returns the form of a result without the texts of one."""
    if (
        seen.error is not None
        or seen.result is None
        or not seen.requests
        or is_questions(seen.result)
    ):
        return False

    def texts(result: Any) -> dict[Any, str]:
        plain = plain_turn(Observed((), result, None))[1]
        return {keys: leaf for keys, leaf in leaves(plain) if isinstance(leaf, str)}

    found = texts(seen.result)
    written = [keys for keys, text in texts(good.result).items() if not is_blank(text)]
    return (
        bool(written)
        and type(seen.result) is type(good.result)
        and any(keys in found and is_blank(found[keys]) for keys in written)
    )


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
    lab, asks = Lab.of(make, replies), is_ask or is_questions
    wrong: list[str] = []
    for sample in lab.samples:
        shape = Shape(sample, sample.wire)
        skipped = shape.answering()
        seen, answered = lab.observe(skipped), lab.prompt(shape)
        if seen.error is not None:
            wrong.append(f"raises {type(seen.error).__name__}: {seen.error}"[:300])
            continue
        if asks(seen.result):
            wrong.append("asks again")
        if not seen.requests:
            continue  # Somebody else's result, remembered by answers: another check looks at that.
        blanks = dict.fromkeys(sample.ids, " \t\u200b")
        blank = replace(skipped, wire=with_value(shape.wire, sample.answers_at, blanks))
        if lab.is_default and lab.differ(skipped, blank):
            wrong.append("blank answers are not taken for none")
        before, after = readable(answered), readable(seen.prompt)
        tokens = skipped.sent_tokens(ANY_MARK).items()
        wrong += [f"{path} is lost" for path, one in tokens if one in before and one not in after]
        # All are skipped, or all but one.
        some = [shape.answering(n) for n in range(len(sample.ids))] if len(sample.ids) > 1 else []
        for fewer in (skipped, *some):
            for path, posed in places.posing(shape, answered, lab.prompt(fewer)):
                wrong.append(f"{path} stands where the answer {posed} would stand")
    if wrong:
        raise ContextLossError("skip_works", "skipping is not graceful", dict.fromkeys(wrong))


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
    make: AgentFactory,
    *,
    replies: Replies = _REPLIES,
    checks: Iterable[str] = tuple(CHECKS),
    conversation: BaseModel | Sequence[BaseModel] = (),
) -> dict[str, ContextLossError]:
    """Return the failures of an agent by the name of the check; empty for a good one.

    Raises:
        UsageError: a check could not be made, and no other fails.
    """
    samples = (conversation,) if isinstance(conversation, BaseModel) else tuple(conversation)
    lab: Any = Lab(make, replies, samples)
    failures: dict[str, ContextLossError] = {}
    unmade: dict[str, UsageError] = {}
    for name in checks:
        try:
            CHECKS[name](lab, replies=replies)
        except ContextLossError as error:
            failures[name] = error
        except UsageError as error:
            unmade[name] = error
    if unmade and not failures:
        raise next(iter(unmade.values()))
    for name, cause in unmade.items():
        failures[name] = ContextLossError(name, "the check could not be made", [str(cause)])
    return failures


def check_stateless_agent(
    make: AgentFactory,
    *,
    replies: Replies = _REPLIES,
    checks: Iterable[str] = tuple(CHECKS),
    conversation: BaseModel | Sequence[BaseModel] = (),
) -> None:
    """Check an agent in every way.

    Args:
        make: makes the agent; a function or class at the top of a module, or ``http(…)``.
        replies: what the scripted model says, where the agent reads another form than ours.
        checks: names of the checks to make.
        conversation: what the agent's turn takes, if it is no ``ClarificationRequest``: one second
            turn or several, of any pydantic model with a member ``answers`` by question id, every
            question answered and every text different.

    Raises:
        ContextLossError: it fails; one failure is raised as it is, several in one.
        UsageError: a check could not be made, and no other fails.
    """
    found = failing_checks(make, replies=replies, checks=checks, conversation=conversation)
    failures = tuple(found.values())
    if len(failures) == 1:
        raise failures[0]
    if failures:
        names = ", ".join(failure.check for failure in failures)
        raise ContextLossError(names, f"{len(failures)} checks fail", map(str, failures))
