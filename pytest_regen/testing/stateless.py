"""Checks that an agent's second turn has everything it needs, and nothing else.

Each takes a factory, which makes an agent that speaks through the provider it is given, lets the
agent take turns while a scripted model answers, and looks at what was sent. No model is needed, and
no failure is a matter of luck: asking again cannot mend one.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from pytest_regen.context.questions import LocationLevel
from pytest_regen.context.values import Ask
from pytest_regen.testing.canaries import canary_flows, flow_with, variants
from pytest_regen.testing.fresh import taken_elsewhere
from pytest_regen.testing.observing import AgentFactory, Replies, observe, text_of
from pytest_regen.testing.structure import assert_structure_holds
from pytest_regen.testing.verdicts import (
    ContextLossError,
    bad_at_first,
    is_questions,
    plain_turn,
    sent_text,
    writing,
)

__all__ = [
    "CHECKS",
    "ContextLossError",
    "assert_carries_full_context",
    "assert_legacy_ignored",
    "assert_level",
    "assert_reasking_is_bounded",
    "assert_retry_keeps_context",
    "assert_skip_is_graceful",
    "assert_stateless",
    "assert_structure_holds",
    "check_stateless_agent",
    "failing_checks",
]

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
    take, script = observe(make), writing(replies)
    lost: list[str] = []
    for flow in canary_flows():
        sent = sent_text("carries_full_context", take(flow.request, script))
        lost += [path for path, token in flow.tokens.items() if token not in sent]
        for path, one, other in variants(flow):
            if take(one, script).text == take(other, script).text:
                lost.append(path)
    patterns = tuple(ignore)
    lost = [path for path in lost if not any(fnmatchcase(path, one) for one in patterns)]
    if lost:
        raise ContextLossError(
            "carries_full_context",
            f"{len(lost)} leaves of the context do not reach the model",
            dict.fromkeys(lost),
        )


def assert_stateless(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that a second turn follows from its request alone.

    The same turn is taken twice by the same instance, by a fresh one, in a fresh process (from
    JSON, with another hash seed, locale and time zone), and again after turns of other
    conversations, one of which has the same description. What is sent and answered must be equal.

    Raises:
        ContextLossError: it is not; names the cases.
        UsageError: the factory cannot be imported in a fresh process.
    """
    take, script = observe(make), writing(replies)
    flow, other = canary_flows()
    twin = flow_with(flow, {"answers.0.label": "elsewhere", "inferred_context.reasoning": "else"})
    first = take(flow.request, script)
    sent_text("stateless", first)
    cases = {
        "the same instance": plain_turn(take(flow.request, script)),
        "a fresh instance": plain_turn(observe(make)(flow.request, script)),
    }
    for between in (other.first, other.request, twin, other.skipped):
        take(between, script)
    interleaved = take(flow.request, script)
    cases["interleaved with other conversations"] = plain_turn(interleaved)
    cases["a fresh process"] = tuple(taken_elsewhere(make, flow.request, replies))
    wrong = [
        f"{name} sends or answers something else"
        for name, seen in cases.items()
        if seen != plain_turn(first)
    ]
    said = "\n".join(map(text_of, interleaved.requests))
    wrong += [
        f"{path} of another conversation is sent"
        for path, token in other.tokens.items()
        if token in said
    ]
    if wrong:
        raise ContextLossError("stateless", "a second turn depends on more than its request", wrong)


def assert_legacy_ignored(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that the legacy fields change nothing where there is a context.

    Raises:
        ContextLossError: they do; names them.
    """
    take, script = observe(make), writing(replies)
    flow, _ = canary_flows()
    alone = plain_turn(take(flow.request, script))
    answers = {question["id"]: "a legacy answer" for question in flow.wire["questions_asked"]}
    legacy: Mapping[str, dict[str, Any]] = {
        "interaction_id": {"interaction_id": "legacy-1"},
        "clarification_answers": {"clarification_answers": answers},
        "both": {"interaction_id": "legacy-1", "clarification_answers": answers},
        "empty clarification_answers": {"clarification_answers": {}, "interaction_id": "legacy-1"},
    }
    wrong = [
        f"{name}: the request is another with it"
        for name, fields in legacy.items()
        if plain_turn(take(flow.request.model_copy(update=fields), script)) != alone
    ]
    if wrong:
        raise ContextLossError("legacy_ignored", "legacy fields win over the context", wrong)


def assert_retry_keeps_context(make: AgentFactory, *, replies: Replies = _REPLIES) -> None:
    """Check that what is sent after an unusable reply still holds all that was sent before it.

    An agent that does not ask again keeps everything.

    Raises:
        ContextLossError: leaves are lost; names them.
    """
    take = observe(make)
    lost: list[str] = []
    for flow in canary_flows():
        for bad in (*replies.unusable, replies.ask):
            seen = take(flow.request, bad_at_first(bad, replies))
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
    for name, flow in zip(("answered", "other"), canary_flows(), strict=True):
        for kind, request in ((name, flow.request), ("skipped", flow.skipped)):
            seen = observe(make)(request, lambda _, __: replies.ask)
            if seen.ran_away or len(seen.requests) > max_calls:
                wrong.append(f"{kind}: {len(seen.requests)} calls or more, {max_calls} at most")
            elif seen.error is None and asks(seen.result):
                wrong.append(f"{kind}: the second turn returns questions")
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
    take, script, asks = observe(make), writing(replies), is_ask or is_questions
    wrong: list[str] = []
    for flow in canary_flows():
        skipped = take(flow.skipped, script)
        if skipped.error is not None:
            wrong.append(f"raises {type(skipped.error).__name__}: {skipped.error}"[:300])
            continue
        if asks(skipped.result):
            wrong.append("asks again")
        if plain_turn(take(flow.blank, script)) != plain_turn(skipped):
            wrong.append("blank answers are not taken for none")
        answered = take(flow.request, script).text
        wrong += [
            f"{path} is lost"
            for path, token in flow.tokens.items()
            if token in answered and token not in skipped.text
            # Ids may have been sent as names of answers.
            if not path.startswith("answers") and not path.endswith(".id")
        ]
    if wrong:
        raise ContextLossError("skip_works", "skipping is not graceful", dict.fromkeys(wrong))


def assert_level(ask: Ask, question: str, level: LocationLevel) -> None:
    """Check the level of place that a location question asks for.

    Raises:
        AssertionError: there is no such question, or its level is another.
    """
    levels = {one.id: one.location_level for one in ask.questions}
    assert question in levels, f"no question {question!r}; asked were {sorted(levels)}"  # noqa: S101
    found = levels[question]
    assert found == level, f"question {question!r} asks for a {found}, not a {level}"  # noqa: S101


CHECKS: Final[Mapping[str, Callable[..., None]]] = {
    "carries_full_context": assert_carries_full_context,
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
