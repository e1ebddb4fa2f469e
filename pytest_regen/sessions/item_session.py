"""A session that writes items of any type, and better ones once it is told what was wrong."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, Unpack

from pydantic import ValidationError

from pytest_regen import errors
from pytest_regen.canonical import canonical_hash
from pytest_regen.sessions import state
from pytest_regen.sessions.conversation import SessionBase, SessionOptions, SessionSettings, Turn
from pytest_regen.sessions.items import (
    Finding,
    ItemKind,
    ItemReader,
    Memory,
    Section,
    Task,
    counted,
    listed,
    read_item,
)
from pytest_regen.sessions.prompts import list_item
from pytest_regen.sessions.session import listed_problems
from pytest_regen.text import plural, quoted
from pytest_regen.turns.exchange import extend
from pytest_regen.turns.steps import OnProgress, Steps
from pytest_regen.turns.structured import Schema, adapter_of, describe_schema, stable_schema
from pytest_regen.turns.values import Message, Provider

T = TypeVar("T")


@dataclass(frozen=True)  # No slots, because ``ItemFault[Row](…)`` would not work.
class ItemFault(Generic[T]):
    """An item, and what is wrong with it."""

    item: T
    problem: str


@dataclass(frozen=True)  # No slots, because ``ItemFeedback[Row](…)`` would not work.
class ItemFeedback(Generic[T]):
    """What was found about items, for the next turn of their session."""

    corrections: Sequence[ItemFault[T]] = ()
    """Items to be written again, each with the same key."""
    discarded: Sequence[ItemFault[T]] = ()
    """Items that cannot be; for each of them another one, with another key, is asked for."""
    wanted: Sequence[str] = ()
    """What there is no item for, in words: at least one is asked for about each."""
    probes: Sequence[T] = ()
    """Items that others found, as hints; never a reason for a turn."""
    notes: Sequence[str] = ()
    """Anything else that was wrong, in words."""

    @property
    def asks_for_replacements(self) -> bool:
        """Whether there is something to write, so that a turn is worth its tokens."""
        words = any(text.strip() for text in (*self.wanted, *self.notes))
        return bool(self.corrections or self.discarded or words)

    def with_notes(self, notes: Iterable[str]) -> Self:
        """Return this and further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def lines(self) -> Iterator[str]:
        """Yield it as a reader of a failure sees it."""
        faults = (*self.corrections, *self.discarded)
        yield from (f"{fault.item!r}: {fault.problem}" for fault in faults)
        yield from (*self.wanted, *(f"not there: {probe!r}" for probe in self.probes), *self.notes)


_WRONG = Section(
    "Wrong",
    "These are wrong:",
    "same",
    "{} for the wrong ones, each about the same thing (the same key)",
)
_DISCARDED = Section(
    "Discarded",
    "These cannot be and were removed. Do not write them again:",
    "other",
    "{} for the discarded ones, each another one",
)
_WANTED = Section(
    "Wanted",
    "There is nothing yet about these:",
    "more",
    "{} at least for what is wanted, one for each",
)
_HINTS = Section(
    "Hints", "These were found by others and are there already; consider what is around them:", ""
)
_NOTES = Section("Other Findings", "Moreover:", "note")
_SECTIONS = (_WRONG, _DISCARDED, _WANTED, _HINTS, _NOTES)


class Feedback(Protocol):
    """What any feedback says of itself."""

    @property
    def asks_for_replacements(self) -> bool:
        """Whether there is something to write, so that a turn is worth its tokens."""


class ItemSession(SessionBase, Generic[T]):
    """Writes a list of items in one conversation, turn by turn.

    ``generate()`` is the first turn; each ``regenerate(feedback)`` sends what was found and returns
    replacements. A turn is one committed call of either, however many requests it took.

    Args:
        system: the system prompt, the same bytes in every request: it says what to write.
        item: the type of an item: a pydantic model, any type pydantic knows, a ``TypeAdapter``.
        key: returns the identity of an item; two items of one key are the same item.
        problems: returns what is wrong with an item that fits its type, in words. Only such an item
            is asked for again.
        lacks: returns in words what a set still lacks; the first turn asks for it, once.
        name: what items are called in messages and replies, in the plural.
        provider: who answers.
        options: limits, model and cache, as of ``GeneratorSession``.

    Raises:
        UsageError: a limit allows nothing.
    """

    STATE: ClassVar[type[state.SessionState]] = state.ItemState

    def __init__(
        self,
        system: str,
        item: Schema[T],
        *,
        key: Callable[[T], object],
        provider: Provider,
        problems: Callable[[T], Iterable[str]] | None = None,
        lacks: Callable[[Sequence[T]], Iterable[str]] | None = None,
        name: str = "items",
        **options: Unpack[SessionOptions],
    ) -> None:
        super().__init__(system, SessionSettings(provider, **options))
        adapter = adapter_of(item)
        schema = stable_schema(adapter)

        def to_json(value: T) -> Any:
            return adapter.dump_python(value, mode="json", by_alias=True)

        self._kind = ItemKind(
            adapter,
            name,
            key=lambda value: quoted(key(value)),
            verdict=lambda value: canonical_hash(to_json(value)),
            label=lambda value: f"{name.removesuffix('s')} {quoted(key(value))}",
            problems=lambda value: (
                listed_problems(problems(value), "problems=") if problems else ()
            ),
            to_json=to_json,
        )
        shared = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        self._hint = describe_schema(
            {
                "type": "object",
                "properties": {name: {"type": "array", "items": schema}},
                "required": [name],
                **shared,
            }
        )
        self._inputs = (self._hint,)
        self._lacks = lacks
        self._opening = f"Write the {name} following the instructions above."
        self._memory: Memory[T] = Memory()
        self._reader: ItemReader[T] | None = None

    @property
    def items(self) -> list[T]:
        """All items as they stand, corrections that were answered in place."""
        return copy.deepcopy(list(self._memory.by_key.values()))

    @property
    def unfinished(self) -> tuple[T, ...]:
        """Items of a turn that did not end, which nothing was wrong with."""
        return tuple(copy.deepcopy(list(self._reader.items.values()))) if self._reader else ()

    def key_of(self, item: T) -> str:
        """Return the identity of an item as text."""
        return self._kind.key(item)

    def generate(self, on_progress: OnProgress | None = None) -> list[T]:
        """Take the first turn and return its items.

        Raises:
            UsageError: the first turn was taken; ask for replacements with ``regenerate``.
            ReplyFormatError: no item could be used, repairs included.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        return self._take(self._first_steps, on_progress)

    async def agenerate(self, on_progress: OnProgress | None = None) -> list[T]:
        """Take the first turn without blocking the event loop; as ``generate``."""
        return await self._atake(self._first_steps, on_progress)

    def regenerate(self, feedback: Feedback, on_progress: OnProgress | None = None) -> list[T]:
        """Send what was wrong and return the replacements, and only these.

        What was sent and answered in an earlier turn is not sent again, unless something else was
        sent about it since.

        Raises:
            UsageError: there was no first turn; the feedback asks for nothing (probes alone are no
                reason for a turn), or for what cannot be.
            NoProgressError: all of the feedback was sent before.
            ReplyFormatError: no reply could be used, or what came is not what was asked for.
            RefusedError: the model declined.
            BudgetError: the turns or the tokens are spent.
            ProviderError: there was no reply.
        """
        return self._take(partial(self._next_steps, feedback), on_progress)

    async def aregenerate(
        self, feedback: Feedback, on_progress: OnProgress | None = None
    ) -> list[T]:
        """Send and return without blocking the event loop; as ``regenerate``."""
        return await self._atake(partial(self._next_steps, feedback), on_progress)

    def to_json(self) -> dict[str, Any]:
        """Return the session as plain JSON, for ``from_json``, without type and provider."""
        memory = self._memory
        return {
            **super().to_json(),
            "memory": {
                "items": list(map(self._kind.to_json, memory.by_key.values())),
                "wrong": {key: dict(verdicts) for key, verdicts in memory.wrong.items()},
                "sent": sorted(memory.sent),
            },
        }

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], item: Schema[T], *, provider: Provider, **settings: Any
    ) -> Self:
        """Return the session that ``to_json`` wrote; it continues where that one stopped.

        Args:
            data: what ``to_json`` returned.
            item: the type of an item.
            provider: who answers from now on.
            **settings: the other arguments of the constructor.

        Raises:
            UsageError: ``data`` is no session of such items.
        """
        return cls._restored(data, item, provider=provider, **settings)

    def _restore(self, stored: Any) -> None:
        super()._restore(stored)
        memory: state.StoredMemory = stored.memory
        by_key = dict(self._memory.by_key)
        for number, data in enumerate(memory.items):
            try:
                item = read_item(self._kind.adapter, data)
            except ValidationError as error:
                raise state.not_ours(state.problems_of(error, f"memory.items.{number}")) from error
            # What a session holds before its first turn stays as it is.
            by_key.setdefault(self._kind.key(item), item)
        self._memory = Memory(by_key, memory.wrong, frozenset(memory.sent))

    def _first_steps(self, turn: Turn) -> Steps[list[T]]:
        if self.turn_count:
            raise errors.UsageError(
                f"the {self._kind.name} of this session were generated",
                why=f"its history holds {plural(self.turn_count, 'turn')}",
                hint="call regenerate(feedback) for replacements, or start a new session",
            )
        self._tell(f"Generating {self._kind.name}...")
        lacks = self._lacks
        task: Task[T] = Task(
            self._opening + self._hint,
            lacks=lambda items: listed_problems(lacks(items), "lacks=") if lacks else (),
            is_first=True,
        )
        return (yield from self._steps(task, turn))

    def _next_steps(self, feedback: Feedback, turn: Turn) -> Steps[list[T]]:
        task = self._task(feedback)
        self._tell(f"Regenerating {self._kind.name} (turn {turn.number})...")
        return (yield from self._steps(task, turn))

    def _steps(self, task: Task[T], turn: Turn) -> Steps[list[T]]:
        """Ask for what ``task`` says, keep whatever can be used of the answer, and commit it."""
        reader = self._reader = ItemReader(self._kind, task, self._memory)
        user = Message("user", state.sendable(task.message))
        messages: tuple[Message, ...] = (user,)
        text, count = "", -1
        try:
            while True:
                parsed = yield from self._ask(messages, reader.read, turn, salvage=reader.salvage)
                text = parsed.text
                # A cut reply is gone on with as long as it gets longer, so that no limit of a
                # reply is one of the set.
                missing = (
                    reader.ask_for_rest() if reader.is_cut and len(reader.items) > count else ""
                )
                call = turn.last_call
                if not (missing and call and call.reply):
                    break
                count = len(reader.items)
                self._tell(f"Asking for more than {plural(count, self._kind.noun)}...")
                request = extend(call.request, call.reply.text, state.sendable(missing))
                messages = request.messages[len(self.history) :]
        except (errors.ProviderError, errors.BudgetError) as error:
            # What was answered is kept, because it was paid for. A line that fails while bad items
            # wait for their repair fails the turn, because the next try may mend them.
            is_enough = isinstance(error, errors.ReplyFormatError) or reader.waits_for_more_alone
            if not (is_enough and reader.give_up()):
                raise
            text = ""
        reader.check_answered(text)
        turn.notes += reader.notes
        self._commit(turn, user, reader.text_to_commit(text))
        self._memory = reader.memory()
        self._reader = None
        # Copies, because a caller who changes an item would change what the session remembers.
        return copy.deepcopy(list(reader.items.values()))

    def _task(self, feedback: Feedback) -> Task[T]:
        """Return what ``feedback`` asks for, if it can be asked.

        Raises:
            NoProgressError: all of it was sent before.
            UsageError: there was no first turn, or it asks for nothing, or for what cannot be.
        """
        if not self.turn_count:
            raise errors.UsageError(
                "there is nothing to replace yet",
                why="no turn of this session was committed",
                hint="call generate() first",
            )
        if not feedback.asks_for_replacements:
            raise errors.UsageError(
                "the feedback has nothing to replace",
                why="probes and changed rules are hints; without anything that is wrong or missing "
                "a turn would be paid for nothing",
                hint="pass corrections, discarded items, what is wanted, or notes",
            )
        sent = self._memory.sent
        # Each once, because who finds things may find them twice, and each is paid in every turn.
        new = {f.hash: f for f in self._findings(feedback) if f.is_again or f.hash not in sent}
        if not any(finding.section.asks for finding in new.values()):
            raise errors.NoProgressError(
                "everything in this feedback was sent in an earlier turn",
                why="asking again in the same words would be answered as before",
                hint="stop here, or say what else is wrong",
            )
        findings = list(new.values())
        return Task(self._message(findings), findings)

    def _findings(self, feedback: Any) -> Iterator[Finding[T]]:
        kind = self._kind
        for part, faults in ((_WRONG, feedback.corrections), (_DISCARDED, feedback.discarded)):
            for fault in faults:
                key, verdict = kind.key(fault.item), kind.verdict(fault.item)
                if key not in self._memory.by_key:
                    raise errors.UsageError(
                        f"this session knows no {kind.label(fault.item)}",
                        why="a correction that names nothing would be lost",
                        hint="pass one of session.items, as it was returned; key= is what tells "
                        f"{kind.name} apart",
                    )
                yield Finding(
                    part,
                    f"{quoted(kind.to_json(fault.item))}: {quoted(fault.problem)}",
                    (key, verdict),
                    key,
                    fault.item if part == _WRONG else None,
                    verdict,
                    f"this {kind.noun} was wrong before: {quoted(fault.problem)}",
                )
        for part, texts in ((_WANTED, feedback.wanted), (_NOTES, feedback.notes)):
            yield from (Finding(part, list_item(text), (text,)) for text in texts if text.strip())
        for probe in feedback.probes:
            data = kind.to_json(probe)
            yield Finding(_HINTS, quoted(data), (data,))

    def _message(self, findings: Sequence[Finding[T]]) -> str:
        counts = counted(findings, _SECTIONS)
        closing = [
            f"Write new {self._kind.name}{':' if counts else ' for the findings above.'}",
            *counts,
            "Answer in the same JSON form as before, with the new ones only.",
        ]
        return "\n\n".join([*listed(findings, _SECTIONS), "\n".join(closing)])
