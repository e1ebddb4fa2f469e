"""A conversation with a model whose replies are values of one type."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar, Unpack

from pydantic import TypeAdapter

from pytest_regen.canonical import text_hash
from pytest_regen.errors import ReplyFormatError, UsageError
from pytest_regen.sessions.conversation import SessionBase, SessionOptions, SessionSettings, Turn
from pytest_regen.sessions.state import GeneratorState, SessionState, sendable
from pytest_regen.turns.steps import Steps
from pytest_regen.turns.structured import (
    Schema,
    adapter_of,
    parse_json_with_schema,
    schema_to_prompt_hint,
    stable_schema,
)
from pytest_regen.turns.values import Message, Provider

_SHAPES = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type"})
"""Keywords of which a schema has one, unless it allows anything."""


def closed_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the JSON Schema of ``adapter`` with every object closed.

    Raises:
        UsageError: the schema would not survive: an object of free form could then hold nothing.
            The hint in the prompt works with any schema.
    """
    # Not the stable schema, because that leaves out by what pydantic tells an open object from one
    # that is closed by default.
    for node, place in _schemas(adapter.json_schema(), "the reply"):
        # Without properties it is a map, because pydantic closes a model without fields itself.
        is_open = node.get("additionalProperties", "properties" not in node)
        problem = "" if _SHAPES & node.keys() else "may be anything"
        if node.get("type") == "object" and is_open:
            problem = "is an object of free form"
        if problem:
            raise UsageError(
                "the response type does not survive structured output",
                why=f"{place} {problem}",
                hint="leave structured_output off: the schema then stands in the prompt and "
                "replies are validated here",
            )
    schema = stable_schema(adapter)
    for node, _ in _schemas(schema, ""):
        if node.get("type") == "object":
            node["additionalProperties"] = False
    return schema


def _schemas(node: dict[str, Any], where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield ``node`` and every schema in it, each with the name of the field it belongs to."""
    yield node, where
    for key, part in node.items():
        if key in ("properties", "$defs"):
            for name, inner in part.items():
                yield from _schemas(inner, name)
        elif key in ("allOf", "anyOf", "oneOf", "prefixItems", "items"):
            for inner in part if isinstance(part, list) else [part]:
                yield from _schemas(inner, where)


T = TypeVar("T")

ValueCheck = Callable[[T], Iterable[str] | str | None]
"""Returns what is wrong with a value that fits the schema, in words for the model: several
problems, or one, or ``None``."""


class GeneratorSession(SessionBase, Generic[T]):
    """A conversation that remembers what worked: each turn is asked in the light of those before.

    The system prompt is fixed, so that every turn reads it, and all turns before, from the prompt
    cache. A turn enters the history only once its reply was understood; a failed turn leaves the
    session as it was, except that its tokens are spent.

    Args:
        system: the system prompt, sent as the same bytes in every request.
        response: what each reply is: a pydantic model, any type pydantic knows, a ``TypeAdapter``.
        provider: who answers.
        model: name of the model.
        max_tokens: upper limit of one reply; a longer one is continued.
        max_repairs: times per turn that a wrong reply is sent back with what is wrong with it.
        max_turns: turns after which the session refuses another one.
        token_budget: tokens the session may spend, input, output and cache together.
        shared_budget: a budget that others spend from as well, as ``pytest_regen.turns.Budget``.
        cache: lifetime of the cache breakpoints on the system prompt and the last message, the
            same in every request; ``None`` sets none.
        structured_output: have the API itself enforce the schema. Only for schemas that leave
            nothing open; the hint in the first message works with any.
        on_progress: called with one line per step.

    Raises:
        UsageError: a limit allows nothing, or the schema does not survive structured output.
    """

    STATE: ClassVar[type[SessionState]] = GeneratorState

    def __init__(
        self,
        system: str,
        response: Schema[T],
        *,
        provider: Provider,
        structured_output: bool = False,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._adapter = adapter_of(response)
        super().__init__(system, SessionSettings(provider, **options))
        self._hint = schema_to_prompt_hint(self._adapter)
        self._schema_hash = text_hash(self._hint)
        self._sent_schema = ""
        self._schema = closed_schema(self._adapter) if structured_output else None
        self._inputs = (self._hint, int(structured_output))

    def ask(self, message: str, *, check: ValueCheck[T] | None = None) -> T:
        """Take one turn and return the value of its reply.

        Args:
            message: what to ask. The schema is appended where the history does not tell it: in
                the first turn, and after ``from_json`` with a type that has changed.
            check: returns what is wrong with a value although it fits the schema: problems in
                words, one or several, or ``None``. The model is then asked to repair its reply, as
                it is for a wrong schema.

        Raises:
            UsageError: the message is empty, another turn is under way, or ``check`` returns no
                problems but a truth value, say.
            ReplyFormatError: no reply could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        return self._take(partial(self._steps, message, check))

    async def aask(self, message: str, *, check: ValueCheck[T] | None = None) -> T:
        """Take one turn without blocking the event loop; as ``ask``."""
        return await self._atake(partial(self._steps, message, check))

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``."""
        return {**super().to_json(), "schema_hash": self._sent_schema}

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], response: Schema[T], *, provider: Provider, **settings: Any
    ) -> Self:
        """Return the session that ``to_json`` wrote; it continues where that one stopped.

        Args:
            data: what ``to_json`` returned.
            response: what each reply is. Where it is another type than before, or one that has
                changed, the next message tells the model.
            provider: who answers from now on.
            **settings: the other arguments of the constructor. The model is the session's own
                unless another one is given.

        Raises:
            UsageError: ``data`` is no session, or does not hold together; all that is wrong is
                named.
        """
        return cls._restored(data, response, provider=provider, **settings)

    def _restore(self, stored: Any) -> None:
        super()._restore(stored)
        self._sent_schema = stored.schema_hash

    def _steps(self, message: str, check: ValueCheck[T] | None, turn: Turn) -> Steps[T]:
        if not message.strip():
            raise UsageError(
                "the message is empty", hint="say what is wanted: session.ask('Write …')"
            )
        # Once, because it stands in the history from then on, and would only be paid again.
        hint = "" if self._sent_schema == self._schema_hash else self._hint
        user = Message("user", sendable(message + hint))
        parsed = yield from self._ask(
            (user,),
            lambda text: apply_check(parse_json_with_schema(text, self._adapter), text, check),
            turn,
            response_schema=self._schema,
        )
        self._commit(turn, user, parsed.text)
        self._sent_schema = self._schema_hash
        return parsed.output


def apply_check(value: T, text: str, check: ValueCheck[T] | None) -> T:
    """Return ``value`` if ``check`` finds nothing wrong with it.

    Raises:
        ReplyFormatError: it does.
        UsageError: it returns something else than problems.
    """
    problems = listed_problems(check(value), "check=") if check else []
    if problems:
        list_ = "\n".join(f"- {problem}" for problem in problems)
        raise ReplyFormatError(
            f"the reply fits the schema and not its purpose ({len(problems)} problem(s))",
            text=text,
            problem=f"The reply cannot be used:\n{list_}",
            why=list_,
            hint="say in the prompt what is wanted, or ask again",
        )
    return value


def listed_problems(value: object, who: str) -> list[str]:
    """Return what a check of the caller's found as a list, in whatever form it was returned.

    Raises:
        UsageError: it is no problem in words.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        return [str(problem) for problem in value]
    raise UsageError(
        f"{who} returned {value!r:.200}",
        why="the model is sent what is wrong with the value, in words",
        hint="return a list of problems, one problem as text, or None where there is nothing wrong",
    )
