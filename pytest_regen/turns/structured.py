"""Replies that are to be JSON of a given schema: extracted, validated, asked for again.

A schema is a pydantic model, any type pydantic understands, or a ``TypeAdapter``.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

from pytest_regen.errors import ReplyFormatError, UsageError
from pytest_regen.text import plural, without_thinking
from pytest_regen.turns.exchange import TurnExchange, Whole, extend, whole_reply
from pytest_regen.turns.reply_text import JsonText, join, json_texts
from pytest_regen.turns.steps import OnProgress, Steps
from pytest_regen.turns.values import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_MODEL,
    CacheTtl,
    Message,
    Provider,
    TurnRequest,
    Usage,
)

T = TypeVar("T")

_REPAIR = "Reply with the whole corrected JSON value, and with nothing else."
_STOPPED = {
    "max_tokens": (
        "the reply was cut at max_tokens, its continuations as well",
        "raise max_tokens, or ask for less",
    ),
    "model_context_window_exceeded": (
        "stop_reason 'model_context_window_exceeded': prompt and reply fill the model's window",
        "send less, in the system prompt or in the turns before, or take a model with more room",
    ),
    "tool_use": (
        "stop_reason 'tool_use': the model called a tool instead of answering",
        "offer the model no tools where it is to answer in JSON",
    ),
}
"""Why a reply ended, where more of the same would not help, and what to do."""


@dataclass(frozen=True, slots=True)
class ObjectWithRepair(Generic[T]):
    """A validated reply and what it took."""

    output: T
    repair_attempts: int
    """Times the model was asked to repair its reply; 0 where the first one fitted."""
    text: str
    """The reply that fitted, its pieces joined."""
    usage: Usage = field(default_factory=Usage)
    """Of all calls, truncated and unusable replies included."""


def object_steps(
    request: TurnRequest,
    parse: Callable[[str], T],
    *,
    max_repairs: int = 2,
    salvage: Callable[[Sequence[str]], T | None] | None = None,
    progress: OnProgress | None = None,
) -> Steps[ObjectWithRepair[T]]:
    """Ask until ``parse`` accepts the reply.

    Args:
        request: the first request; its last message carries the cache breakpoint, if any.
        parse: returns the value of a reply's text, or raises ``ReplyFormatError``.
        max_repairs: times a wrong reply is sent back.
        salvage: returns what can be used of a reply that was cut and whose pieces make no whole,
            ``None`` where nothing can; or raises ``ReplyFormatError``. Without it such a reply is
            sent back as any wrong one, or is an error where its last piece was cut as well.
        progress: called with one line per repair and continuation.

    Raises:
        UsageError: ``max_repairs`` is negative.
        ReplyFormatError: the last reply did not fit, or one was cut beyond continuation.
        RefusedError: the model declined.
    """
    # The wrong reply and what is wrong with it are appended to the request, so that each call reads
    # the one before it from the cache. A reply that was sent back before, with the same words, is
    # not sent back again: it would be answered as before.
    if max_repairs < 0:
        raise UsageError(
            f"max_repairs is {max_repairs}",
            why="it counts the times a wrong reply is sent back",
            hint="pass 0 or more",
        )
    report = progress or (lambda _: None)
    usage = Usage()
    repairs = 0
    sent: set[tuple[str, str]] = set()
    while True:
        whole = yield from whole_reply(request, progress=report)
        usage += whole.usage
        try:
            value, text = _parse_pieces(whole, parse, salvage)
        except ReplyFormatError as error:
            error.is_truncated = whole.is_truncated
            ask = f"{error.problem}\n\n{error.asks or _REPAIR}"
            reply_text = "".join(whole.pieces).strip()
            is_again = (reply_text, ask) in sent
            if whole.is_truncated or is_again or repairs == max_repairs:
                _explain(error, whole.reply.stop_reason, repairs, is_again=is_again)
                raise
            if reply_text:
                sent.add((reply_text, ask))
            request = extend(whole.request, whole.reply.text, ask)
        else:
            return ObjectWithRepair(value, repairs, text, usage)
        repairs += 1
        report(f"Repairing the reply ({repairs}/{max_repairs})...")


def _explain(error: ReplyFormatError, stop: str, repairs: int, *, is_again: bool) -> None:
    """Say why no further reply is asked for, and what can be done about it."""
    why, hint = _STOPPED.get(stop, ("", ""))
    if is_again:
        why = "told what is wrong with it, the model gave the same reply again"
    elif repairs and not why:
        why = f"{plural(repairs, 'repair')} did not help"
    error.why = "\n".join(filter(None, (error.why, why)))
    more = "" if is_again else ", or raise max_repairs"
    error.hint = hint or f"say in the prompt what is wanted, or try another model{more}"


def _parse_pieces(
    whole: Whole,
    parse: Callable[[str], T],
    salvage: Callable[[Sequence[str]], T | None] | None,
) -> tuple[T, str]:
    """Return the value of a reply and the text that it was read from."""
    joined = join(whole.pieces)
    errors = []
    for text in joined.texts:
        try:
            return parse(text), text
        except ReplyFormatError as error:
            errors.append(error)
    saved = salvage(joined.pieces) if salvage and not joined.is_whole else None
    if saved is None:
        raise errors[0]
    return saved, "".join(whole.pieces)


if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    Schema = type[T] | TypeAdapter[T]
    """What a reply must be."""
else:
    # Named without pydantic, which costs 0.1 s: whoever imports all of turns may need no schema.
    Schema = type[T]

_MOST_PROBLEMS = 20
_ABOUT_EQUAL = 0.9
_OPENS = re.compile(r"[{\[]")
_VALUES = frozenset({"const", "default", "enum", "examples"})
"""Keys of a schema that hold values, not schemas."""
_NAMED = frozenset({"$defs", "properties"})
"""Keys of a schema that hold schemas by name."""
_CHOICES = ("anyOf", "enum", "oneOf")
"""Keys of a schema whose order says nothing."""


def adapter_of(schema: Schema[T]) -> "TypeAdapter[T]":
    """Return ``schema`` as an adapter."""
    from pydantic import TypeAdapter

    return schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)


def extract_json(text: str) -> str:
    """Return the largest JSON value that stands in ``text``: fenced, bare or amid prose.

    Prose in brackets, fences around something else and what a model thinks aloud between
    ``<think>`` tags are passed over. Of values of about the same size the last counts. Where there
    is no whole JSON value, the text is returned without thinking and without the white space around
    it.
    """
    texts = [value.text for value in json_texts(text)]
    return texts[likely_answer(texts)] if texts else without_thinking(text).strip()


def parse_json_with_schema(text: str, schema: Schema[T]) -> T:
    """Return the largest JSON value in ``text`` that fits ``schema``, of about equal ones the last.

    A list counts as well where it is the only value in the text, and the schema is an object with
    one list as a member.

    Raises:
        ReplyFormatError: none does; a ``ValueError`` whose cause is the error of the JSON
            decoder or of pydantic, and whose ``problem`` says in words what is wrong: of several
            values, with the one that is taken for the answer.
    """
    from pydantic import ValidationError

    adapter = adapter_of(schema)
    candidates = [*json_texts(text)]
    # Models that are asked for {"scenarios": [...]} often leave the braces out.
    name = _only_list(adapter) if [type(c.value) for c in candidates] == [list] else None
    if name is not None:
        candidates += [JsonText(f"{{{json.dumps(name)}:{candidates[0].text}}}", None)]
    fitting: list[tuple[str, T]] = []
    failing: list[tuple[str, ValidationError]] = []
    for candidate, _ in candidates:
        try:
            value = adapter.validate_json(candidate.encode("utf-8", "surrogatepass"))
            fitting.append((candidate, value))
        except ValidationError as error:
            failing.append((candidate, error))
    if fitting:
        return fitting[likely_answer([candidate for candidate, _ in fitting])][1]
    if failing:
        failure = failing[likely_answer([candidate for candidate, _ in failing])][1]
        raise _mismatch(text, failure) from failure
    raise _no_json(text)


def likely_answer(texts: Sequence[str]) -> int:
    """Return the index of the answer: the largest value, or a later one of about its size."""
    # Examples and drafts stand before the answer and are smaller, or as large where it repairs
    # them.
    sizes = [len("".join(text.split())) for text in texts]
    least = max(sizes) * _ABOUT_EQUAL
    return max(index for index, size in enumerate(sizes) if size >= least)


def _only_list(adapter: "TypeAdapter[Any]") -> str | None:
    """Return the name of the only member that is a list, where the schema is an object with one."""
    from pydantic.errors import PydanticUserError

    try:
        members = adapter.json_schema().get("properties", {})
    except PydanticUserError:
        return None
    lists = [name for name, member in members.items() if member.get("type") == "array"]
    return lists[0] if len(lists) == 1 else None


def schema_to_prompt_hint(schema: Schema[Any]) -> str:
    """Return what tells a model the form of its reply, to be appended to a message.

    It begins with a blank line and holds the JSON Schema (draft 2020-12). A schema that JSON
    Schema cannot express is replaced by a plain request for JSON.
    """
    from pydantic.errors import (
        PydanticInvalidForJsonSchema,
        PydanticUserError,
    )

    try:
        described = stable_schema(adapter_of(schema))
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return "\n\nRespond with valid JSON only."
    return describe_schema(described)


def describe_schema(schema: Mapping[str, Any]) -> str:
    """Return what tells a model the form of its reply, from the JSON Schema of that form."""
    return (
        "\n\nRespond with one JSON value that matches this JSON Schema, and with nothing else:\n\n"
        + json.dumps(_without_titles(schema), ensure_ascii=False)
    )


def _without_titles(schema: Any, *, holds_names: bool = False) -> Any:
    """Return a schema without the titles that pydantic makes of names, because each costs tokens.

    Args:
        schema: a schema, or a part of one.
        holds_names: whether its keys are names of the caller, of which one may be ``title``.
    """
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: part
        if key in _VALUES and not holds_names
        else _without_titles(part, holds_names=not holds_names and key in _NAMED)
        for key, part in schema.items()
        if holds_names or key != "title" or not isinstance(part, str)
    }


def stable_schema(adapter: "TypeAdapter[Any]") -> dict[str, Any]:
    """Return the JSON Schema of ``adapter``, the same for the same type wherever it is."""
    # It is part of recorded requests. What one version of pydantic says and another leaves out is
    # left out. Choices are sorted: Literal["a", "b"] and Literal["b", "a"] are equal, so that
    # typing returns the one for the other as long as it remembers that one.
    schema: dict[str, Any] = _plain(adapter.json_schema())
    return schema


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: part if key in _VALUES else _plain(part) for key, part in schema.items()}
    if plain.get("additionalProperties") is True:
        del plain["additionalProperties"]
    if "const" in plain and plain.get("enum") == [plain["const"]]:
        del plain["enum"]
    # A property of such a name holds a schema, and not a list.
    lists = {key: plain[key] for key in _CHOICES if isinstance(plain.get(key), list)}
    order = partial(json.dumps, sort_keys=True)
    return plain | {key: sorted(choices, key=order) for key, choices in lists.items()}


class ObjectOptions(TypedDict, total=False):
    """Optional arguments of ``generate_object_with_repair``, which says what they mean."""

    system: str
    history: Sequence[Message]
    model: str
    max_tokens: int
    max_repairs: int
    cache: CacheTtl | None
    on_progress: OnProgress | None


def generate_object_with_repair(
    provider: Provider, schema: Schema[T], *, prompt: str, **options: Unpack[ObjectOptions]
) -> ObjectWithRepair[T]:
    """Ask for a value of ``schema``; show the model its mistake and ask again where it made one.

    One logical request: nothing of it is remembered. A reply cut at ``max_tokens`` is continued.

    Args:
        provider: who answers.
        schema: what the reply must be.
        prompt: the user message; the hint of the schema is appended.
        system: the system prompt.
        history: messages before the prompt.
        model: name of the model.
        max_tokens: upper limit of one reply.
        max_repairs: times a wrong reply is sent back with what is wrong with it.
        cache: lifetime of the cache breakpoints on the system prompt and the last message.
        on_progress: called with one line per repair and continuation.

    Raises:
        UsageError: ``max_repairs`` is negative.
        ReplyFormatError: the last reply did not fit either.
        RefusedError: the model declined.
        ProviderError: there was no reply.
    """
    return TurnExchange(provider).run(_steps(schema, prompt, **options))


async def agenerate_object_with_repair(
    provider: Provider, schema: Schema[T], *, prompt: str, **options: Unpack[ObjectOptions]
) -> ObjectWithRepair[T]:
    """Ask as ``generate_object_with_repair`` does, without blocking the event loop."""
    return await TurnExchange(provider).arun(_steps(schema, prompt, **options))


def _steps(
    schema: Schema[T], prompt: str, **options: Unpack[ObjectOptions]
) -> Steps[ObjectWithRepair[T]]:
    adapter, cache = adapter_of(schema), options.get("cache", "5m")
    message = Message("user", prompt + schema_to_prompt_hint(adapter), cache)
    request = TurnRequest(
        options.get("system", ""),
        (*options.get("history", ()), message),
        options.get("model", DEFAULT_MODEL),
        options.get("max_tokens", DEFAULT_MAX_TOKENS),
        cache=cache,
    )
    return object_steps(
        request,
        lambda text: parse_json_with_schema(text, adapter),
        max_repairs=options.get("max_repairs", 2),
        progress=options.get("on_progress"),
    )


def _mismatch(text: str, error: "ValidationError") -> ReplyFormatError:
    problems = [
        f"- {'.'.join(map(str, problem['loc'])) or 'the value'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    if len(problems) > _MOST_PROBLEMS:
        left = len(problems) - _MOST_PROBLEMS
        problems = [*problems[:_MOST_PROBLEMS], f"- and {left} more"]
    return ReplyFormatError(
        f"the reply's JSON does not fit the schema ({error.error_count()} problem(s))",
        text=text,
        problem="The JSON does not match the schema:\n" + "\n".join(problems),
        why="\n".join(problems),
        hint="ask again with these problems, as generate_object_with_repair() does",
    )


def _no_json(text: str) -> ReplyFormatError:
    text = without_thinking(text)
    one_line = " ".join(text.split())
    excerpt = one_line if len(one_line) <= 80 else f"{one_line[:77]}..."
    what = f"the reply holds no whole JSON value: {excerpt!r}" if one_line else "the reply is empty"
    problem = "The reply holds no JSON: answer with the JSON value alone, without any words."
    cause: ValueError | None = None
    bracket = _OPENS.search(text)
    try:
        json.loads(text[bracket.start() if bracket else 0 :].strip())
    except ValueError as error:
        cause = error
    except RecursionError:
        cause = ValueError("the value is nested too deeply")
    if cause and bracket:
        problem = f"The JSON value of the reply is broken: {cause}"
    why = str(cause or "") if one_line else ""
    hint = "ask again for JSON alone, as generate_object_with_repair() does"
    failure = ReplyFormatError(what, text=text, problem=problem, why=why, hint=hint)
    failure.__cause__ = cause
    return failure
