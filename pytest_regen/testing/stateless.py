"""Checks that an agent's second turn has everything it needs, and nothing else.

Each lets the agent take turns while a scripted model answers, and looks at what was sent. No model
is needed, and no failure is a matter of luck: asking again cannot make one pass.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final, TypedDict, Unpack

from pydantic import BaseModel

from pytest_regen.canonical import canonical_json
from pytest_regen.context.questions import is_blank
from pytest_regen.errors import UsageError
from pytest_regen.testing import agents, fresh, places
from pytest_regen.testing.agents import AgentFactory, ContextLossError, Replies
from pytest_regen.testing.canaries import Shape, leaves, new_mark, with_value
from pytest_regen.testing.lab import Lab
from pytest_regen.testing.remote import HttpAgent
from pytest_regen.testing.structure import structure_holds

# A failure shows the code of the test that called, none of the lines in between.
__tracebackhide__ = True

_TOKEN: Final = 17
"""Characters of a token."""
_FOR_EVER: Final = 60
"""Replies, more than the calls that two turns may make."""
_DIFFERS: Final = "sends or answers something else"


def carries_full_context(lab: Lab) -> Iterator[str]:
    """Yield the leaves of the context that do not reach the model on the second turn.

    Texts are tokens that must stand in the request; of others, another value must make another
    request. Ids need not arrive.
    """
    lost: dict[str, str] = {}
    patterns = tuple(lab.ignore)
    for path, where in (*lost_texts(lab), *lost_values(lab)):
        if not any(fnmatchcase(path, pattern) for pattern in patterns):
            lost.setdefault(path, where)
    yield from (f"{path}{where}" for path, where in lost.items())


def lost_texts(lab: Lab) -> Iterator[tuple[str, str]]:
    """Yield the paths of texts that are not sent, or not whole, and where."""
    for sample in lab.samples:
        shapes = [
            (sample.turn, ""),
            (replace(sample.turn, is_long=True), ", where texts are as long as they may be"),
        ]
        where_one = ", where only one question is answered"
        shapes += [(turn, where_one) for turn in sample.turn.answering_one()]
        for shape, where in shapes:
            seen = lab.observe(shape)
            lost = [seen.failure] if seen.failure else shape.missing(seen.prompt)
            yield from ((path, where) for path in lost)


def lost_values(lab: Lab) -> Iterator[tuple[str, str]]:
    """Yield the paths of what may have another value without another request, and where."""
    for sample in lab.samples:
        for path, turn in sample.variants():
            if lab.same(sample.turn, turn):
                yield path, ""
        last = len(sample.ids) - 1
        for path in sample.texts:
            negative = sample.turn.with_texts({path: "no"})
            is_last = sample.role(path) == ("answer", str(last)) and path.endswith("text")
            if is_last and lab.same(negative, sample.turn.answering(*range(last))):
                yield path, ", where the answer is 'no'"


def answers_in_place(lab: Lab) -> Iterator[str]:
    """Yield the answers that do not stand with their questions, or stand where inferences belong.

    Looks at the order of the tokens in the prompt and at what stands before them. An agent passes
    whose prompt names the question beside its answer, or lists answers in the order of questions.
    """
    for sample in lab.samples:
        shape, depth = sample.turn, len(sample.answers_at)
        answered, skipped = lab.observe(shape).prompt, lab.observe(shape.answering()).prompt
        in_answers = [keys for keys, _ in leaves(sample.wire) if keys[:depth] == sample.answers_at]
        # Not where options were chosen, because their tokens stand with the question as well.
        if not any(isinstance(key, int) for keys in in_answers for key in keys[depth:]):
            for path in places.find_misplaced(shape, answered):
                yield f"{path} stands with another question"
        for inferred, answer, has_moved in places.posing(shape, answered, skipped):
            if has_moved:
                yield f"{answer} and {inferred} have changed places"
        for inferred in places.called_answers(shape, answered):
            yield f"{inferred} stands where answers are expected, and no answer does"


def stateless(lab: Lab) -> Iterator[str]:
    """Yield what a second turn depends on besides its request.

    One instance takes turns of several conversations. Each must be what it is without the others,
    in a fresh process, and there on another day in another time zone.
    """
    shapes = [sample.turn for sample in lab.samples]
    first = shapes[0]
    other = shapes[1] if len(shapes) > 1 else first.answering()
    mark, agent = new_mark(), agents.Agent(lab.make)
    for name, before, shape in _cases(lab, first, other):
        for earlier in before:
            lab.observe(earlier, mark=mark, agent=agent)
        for first_replies in ((), lab.replies.unusable[-1:] * _FOR_EVER):
            after = lab.observe(shape, first_replies, mark=mark, agent=agent)
            # What the whole process remembers is found by tokens that it cannot know.
            if after.plain != lab.observe(shape, first_replies).plain:
                yield f"{name}: {_DIFFERS}"
                break
    yield from _at_once(lab, first, other)
    # Over HTTP it is in another process already, which is somebody else's.
    if not isinstance(lab.make, HttpAgent):
        request = first.request(new_mark())
        expected = agents.Agent(lab.make).take(request, lab.replies.render).plain
        for name, plain in fresh.take_turn_elsewhere(lab.make, request, lab.replies).items():
            if plain != expected:
                yield f"{name}: {_DIFFERS}"


def _cases(lab: Lab, first: Shape, other: Shape) -> Iterator[tuple[str, Sequence[Shape], Shape]]:
    """Yield what is called so, the turns before, and the turn that must not show it."""
    yield "the same instance", (first,), first
    yield "after another conversation", (other,), first
    role, texts = first.sample.role, first.sample.texts
    answer = next(path for path in texts if role(path)[0] == "answer")
    for what, changed in (("description", answer), ("answers", next(iter(texts)))):
        # As long as a token, because a prompt may be cut in the middle of one.
        words = f"Ä {what}".ljust(_TOKEN, ".")
        shape = first.with_texts({changed: words})
        if first.sample.accepts(shape.wire):
            yield f"after another conversation with the same {what}", (), shape
    if lab.is_default:
        where, under = "under the same interaction_id", replace(first, has_id=True)
        yield f"after another context {where}", (replace(other, has_id=True),), under
        yield f"after the first turn {where}", (replace(under, is_first=True),), under
    yield "interleaved with other conversations", (), first


def _at_once(lab: Lab, *shapes: Shape) -> Iterator[str]:
    """Yield what differs where one instance takes two turns at once."""
    for replies in ((), lab.replies.unusable[-1:] * _FOR_EVER):
        mark = new_mark()
        requests = [shape.request(mark) for shape in shapes]
        alone = [agents.Agent(lab.make).take(it, lab.script(mark, replies)) for it in requests]
        if any(len(seen.requests) > lab.max_calls for seen in alone):
            return  # Its turns have no end, which another check tells.
        sent = sorted(canonical_json(request) for seen in alone for request in seen.requests)
        # A new instance, because what the last two turns left must not show.
        try:
            both = agents.Agent(lab.make).take_at_once(requests, lab.script(mark, replies))
        except TimeoutError:
            yield "two turns at once: each waits for the other, or they block the thread they share"
            return
        if both != (sent, [seen.result for seen in alone]):
            yield f"two turns at once: {_DIFFERS}"
            return


def legacy_ignored(lab: Lab) -> Iterator[str]:
    """Yield the deprecated members that change something beside a context."""
    shape = lab.samples[0].turn
    answers = dict.fromkeys(lab.samples[0].ids, "a legacy answer")
    legacy = {
        "interaction_id": replace(shape, has_id=True),
        "clarification_answers": replace(shape, legacy=answers),
        "both": replace(shape, has_id=True, legacy=answers),
        "empty clarification_answers": replace(shape, legacy={}),
    }
    for name, turn in legacy.items() if lab.is_default else ():
        if lab.differ(shape, turn):
            yield f"{name} beside the context: {_DIFFERS}"


def retry_keeps_context(lab: Lab) -> Iterator[str]:
    """Yield the leaves that the first request held, and what is sent after a bad reply does not.

    After one, after two, and on a first turn. An agent that does not ask again keeps everything.
    """
    unusable = lab.replies.unusable
    for sample in lab.samples:
        turns = [(sample.turn, bad) for bad in (*unusable, lab.replies.ask)]
        if lab.is_default:
            # No question, because on a first turn the agent may ask.
            turns += [(replace(sample.turn, is_first=True), bad) for bad in unusable]
        for turn, bad in turns:
            requests = lab.observe(turn, (bad, bad)).requests
            lost = [turn.missing(agents.text_of(request)) for request in requests]
            yield from (path for again in lost[1:] for path in again if path not in lost[0])


def reasking_bounded(lab: Lab) -> Iterator[str]:
    """Yield what becomes of a model that never stops asking."""
    bad = [(reply,) * _FOR_EVER for reply in (lab.replies.ask, lab.replies.unusable[-1])]
    for sample in lab.samples:
        for name, turn in (("answered", sample.turn), ("skipped", sample.turn.answering())):
            seen, good = lab.observe(turn, bad[0]), lab.observe(turn)
            if len(seen.requests) > lab.max_calls:
                yield f"{name}: {len(seen.requests)} calls or more, {lab.max_calls} at most"
            elif seen.asks:
                yield f"{name}: the second turn returns questions"
            if any(_is_empty(lab.observe(turn, replies), good) for replies in bad):
                yield f"{name}: the second turn returns an empty result as a success"


def _is_empty(seen: agents.Observed, good: agents.Observed) -> bool:
    """Return whether a turn returns the form of a result without the texts of one."""
    if seen.failure or seen.asks or type(seen.result) is not type(good.result):
        return False
    texts, written = (
        {keys: leaf for keys, leaf in leaves(result) if isinstance(leaf, str)}
        for result in (seen.result, good.result)
    )
    # Where the good result has a text, because a member that is always blank is no fault.
    blank = {keys for keys, text in texts.items() if is_blank(text)}
    return any(keys in blank for keys, text in written.items() if not is_blank(text))


def skip_works(lab: Lab) -> Iterator[str]:
    """Yield what happens to a person who skips: an error, a question, anything lost but answers."""
    for sample in lab.samples:
        shape, skipped = sample.turn, sample.turn.answering()
        seen, answered = lab.observe(skipped), lab.observe(shape).prompt
        if seen.error is not None:
            yield seen.failure
            continue
        if seen.asks:
            yield "asks again"
        if not seen.requests:
            continue  # Somebody else's result, remembered by answers: another check looks at that.
        blanks = dict.fromkeys(sample.ids, " \t\u200b")
        blank = replace(skipped, wire=with_value(shape.wire, sample.answers_at, blanks))
        if lab.is_default and lab.differ(skipped, blank):
            yield "blank answers are not taken for none"
        lost = skipped.missing(answered)
        yield from (f"{path} is lost" for path in skipped.missing(seen.prompt) if path not in lost)
        # All are skipped, or all but one.
        for fewer in (skipped, *shape.answering_one()):
            for path, answer, has_moved in places.posing(
                shape, answered, lab.observe(fewer).prompt
            ):
                if not has_moved:
                    yield f"{path} stands where the answer {answer} would stand"


CHECKS: Final[Mapping[str, tuple[Callable[[Lab], Iterator[str]], str]]] = {
    find.__name__: (find, summary)
    for find, summary in (
        (carries_full_context, "{} leaves of the context do not reach the model"),
        (answers_in_place, "answers are not where they belong"),
        (stateless, "a second turn depends on more than its request"),
        (legacy_ignored, "legacy fields win over the context"),
        (
            retry_keeps_context,
            "leaves that the first request held are missing when the model is asked again",
        ),
        (reasking_bounded, "asking again has no end"),
        (skip_works, "skipping is not graceful"),
        (structure_holds, "texts become structure of the prompt, or make the turn fail"),
    )
}
"""All checks by name, and what is wrong where one fails."""


class Options(TypedDict, total=False):
    """What may be said of an agent to the checks; see ``check_stateless_agent``."""

    replies: Replies
    checks: Iterable[str]
    conversation: BaseModel | Sequence[BaseModel]
    ignore: Iterable[str]
    max_calls: int
    skeleton: Callable[[str], object] | None


def failing_checks(make: AgentFactory, **options: Unpack[Options]) -> dict[str, ContextLossError]:
    """Return the failures of an agent by the name of the check; empty for a good one.

    Args:
        make: makes the agent.
        options: as ``check_stateless_agent`` takes them.

    Raises:
        UsageError: the agent has a form that no check can use.
    """
    lab = Lab(make, **options)
    failures: dict[str, ContextLossError] = {}
    failure = lab.observe(lab.samples[0].turn).failure
    for name in CHECKS if lab.checks is None else lab.checks:
        find, summary = CHECKS[name]
        try:
            # Where the plain turn fails, no check can look at anything else.
            findings = [failure] if failure else [*dict.fromkeys(find(lab))]
        except UsageError as error:
            # As a failure of this check, because the others can be made.
            findings, summary = [str(error)], "the check could not be made"
        if findings:
            failures[name] = ContextLossError(name, summary.format(len(findings)), findings)
    return failures


def check_stateless_agent(make: AgentFactory, **options: Unpack[Options]) -> None:
    """Check an agent in every way.

    Args:
        make: makes the agent; a function or class at the top of a module, or ``http(…)``.
        replies: what the scripted model says, where the agent reads another form than ours.
        checks: names of the checks to make; all by default.
        conversation: what the agent's turn takes, if it is no ``ClarificationRequest``: one second
            turn or several, of any pydantic model with a member ``answers`` by question id, every
            question answered and every text different.
        ignore: patterns of paths that need not reach the model:
            ``questions_asked.*.placeholder``.
        max_calls: of the model in one turn, while it asks and asks; 3 by default.
        skeleton: the structure of a prompt; two prompts have the same if the results are equal. By
            default the kinds of the lines that start like a heading, a bullet, a fence, a tag or a
            role. Give one that knows your delimiters if values keep their lines.

    Raises:
        ContextLossError: it fails, or a check could not be made; several failures are one error.
        UsageError: the agent has a form that no check can use.
    """
    failures = tuple(failing_checks(make, **options).values())
    if len(failures) == 1:
        raise failures[0]
    if failures:
        names = ", ".join(failure.check for failure in failures)
        raise ContextLossError(names, f"{len(failures)} checks fail", map(str, failures))
