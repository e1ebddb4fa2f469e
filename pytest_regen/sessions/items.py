"""Items of any type, written by a model in one conversation and replaced one by one.

The engine of ``ItemSession`` and, with it, of ``ScenarioGeneratorSession``: replies are read item
by item, so that one bad item costs one item, and held against what was asked for.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from pytest_regen.errors import ReplyFormatError
from pytest_regen.sessions.state import sendable
from pytest_regen.text import flatten, plural
from pytest_regen.turns.reply_text import complete_items, json_texts
from pytest_regen.turns.structured import likely_answer, parse_json_with_schema

T = TypeVar("T")

_MOST_PROBLEMS = 20
MOST_PER_WISH = 3
"""Items taken for each thing that is still wanted: a model writes more than one about a tool."""


@dataclass(frozen=True, slots=True)
class ItemKind(Generic[T]):
    """What is known of items, whatever a turn asks for."""

    adapter: TypeAdapter[T]
    name: str
    """In the plural: the name of the list in a reply, too."""
    key: Callable[[T], str]
    """The identity of an item: a replacement has that of the item it replaces."""
    verdict: Callable[[T], str]
    """What of an item can be wrong, and is wrong again where a reply repeats it."""
    label: Callable[[T], str]
    """How messages name an item."""
    problems: Callable[[T], Iterable[str]]
    to_json: Callable[[T], dict[str, Any]]
    members: frozenset[str]
    """Names by which an object of a reply is taken for an item without a list around it."""

    @property
    def noun(self) -> str:
        """The name of one item."""
        return self.name.removesuffix("s")

    def text(self, items: Iterable[T]) -> str:
        """Return items in the form in which a model gives them."""
        data = {self.name: [self.to_json(item) for item in items]}
        return json.dumps(data, ensure_ascii=False, indent=1)


@dataclass(frozen=True, slots=True)
class Memory(Generic[T]):
    """What a session knows between turns. Immutable: a turn that fails has changed nothing."""

    by_key: Mapping[str, T] = field(default_factory=dict)
    """The items; corrections in place."""
    wrong: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By key, the verdicts that were corrected or discarded, each with what the model is told."""
    sent: frozenset[str] = frozenset()
    """Hashes of what was sent in committed turns, because it stands in the history by then."""


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """What a turn asks for: its reply is held against it, and it is remembered afterwards."""

    message: str
    is_first: bool = False
    corrected: Mapping[str, T] = field(default_factory=dict)
    """By key, what waits for a replacement of the same key, as it stands after its correction."""
    wrong: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """As ``Memory.wrong`` after the turn."""
    discarded: frozenset[str] = frozenset()
    """Keys of what is gone."""
    other_items: int = 0
    """How many items of new keys are asked for: one for each that was discarded or is wanted."""
    most_others: int | None = None
    """How many are taken; ``None`` for any number."""
    sent: Mapping[str, str] = field(default_factory=dict)
    """Hashes of what the message says, each with the key of the correction that it is."""
    lacks: Callable[[Sequence[T]], Iterable[str]] = lambda _: ()
    """Returns in words what the set still lacks, given the items of the reply."""

    def remember(self, memory: Memory[T], items: Mapping[str, T]) -> Memory[T]:
        """Return what is known once ``items`` have answered this.

        A correction without an answer is not taken as sent: it can be asked about again.
        """
        sent = {hash_ for hash_, key in self.sent.items() if key in items or not key}
        standing = {
            key: self.corrected.get(key, item)
            for key, item in memory.by_key.items()
            if key not in self.discarded
        }
        return Memory({**standing, **items}, self.wrong or memory.wrong, memory.sent | sent)


def read_item(adapter: TypeAdapter[T], data: JsonValue) -> T:
    """Return an item from plain JSON.

    Raises:
        ValidationError: it is none.
    """
    text = json.dumps(data, ensure_ascii=False)
    if text != sendable(text):
        return adapter.validate_python(data)  # Because the reader of JSON takes no half characters.
    return adapter.validate_json(text)


class ItemReader(Generic[T]):
    """Collects the items of one turn over its replies.

    Args:
        kind: what items are.
        task: what was asked for.
        memory: what was known before.
    """

    def __init__(self, kind: ItemKind[T], task: Task[T], memory: Memory[T]) -> None:
        self._kind = kind
        self._task = task
        self._wrong = task.wrong or memory.wrong
        self._standing = {
            key: item for key, item in memory.by_key.items() if key not in task.corrected
        }
        self._texts: list[str] = []
        self._problems: list[str] = []
        self._is_asked_again = False
        self._is_merged = False
        self._notes: list[str] = []
        self.items: dict[str, T] = {}
        """What can be used, by key."""
        self.is_cut = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, and what is still missing."""
        return (*self._notes, *self.shortfall())

    @property
    def waits_for_more_alone(self) -> bool:
        """Whether nothing is wrong with what came, and only more was still asked for."""
        return bool(self.items) and self._is_asked_again and not self._problems

    def shortfall(self) -> list[str]:
        """Return in words how what came differs from what was asked for."""
        task, noun = self._task, self._kind.noun
        fresh = [key for key in self.items if key not in task.corrected]
        missing = [
            f"no {noun} came for the corrected {self._kind.label(item)}"
            for key, item in task.corrected.items()
            if key not in self.items
        ]
        if len(fresh) < task.other_items:
            missing.append(f"{len(fresh)} of {plural(task.other_items, f'other {noun}')} came")
        if task.most_others is not None and len(fresh) > task.most_others:
            missing.append(
                f"{plural(len(fresh), f'other {noun}')} came, and {task.most_others} at most were "
                "asked for"
            )
        return [*missing, *task.lacks(list(self.items.values()))]

    def check_answered(self, text: str) -> None:
        """Check that what was asked for came, or a part of it.

        Raises:
            ReplyFormatError: too much came, or nothing of it.
        """
        shortfall = self.shortfall()
        fresh = len(self.items.keys() - self._task.corrected.keys())
        most = self._task.most_others
        asks = bool(self._task.corrected or self._task.other_items)
        answers = len(self.items) - fresh + min(fresh, self._task.other_items)
        if (most is not None and fresh > most) or (asks and not answers):
            came = ", ".join(map(self._kind.label, list(self.items.values())[:5])) or "nothing"
            raise ReplyFormatError(
                f"the {self._kind.name} that came are not those that were asked for",
                text=text,
                problem="\n".join(shortfall),
                why="; ".join([*shortfall, *self._notes, f"what came: {came}"]),
                hint="ask again: the feedback counts as not sent; or drop the items concerned",
            )

    def read(self, text: str) -> dict[str, T]:
        """Collect the items of a reply that can be used.

        Raises:
            ReplyFormatError: the reply is no list of items, some of them cannot be used, or others
                than those asked for came; then only what is missing is asked for.
        """
        name = self._kind.name
        lists = self._lists(text)
        if not lists:
            envelope = TypeAdapter(dict[str, list[JsonValue]])
            members = parse_json_with_schema(text, envelope)
            raise ReplyFormatError(
                f"the reply has no list of {name}",
                text=text,
                problem=f'the reply has no list "{name}"; it has {", ".join(members) or "nothing"}',
                why="its form was given in the first message",
                hint=f"say in the system prompt which {name} are wanted",
            )
        self.is_cut = False
        self._texts.append(text)
        self._problems = problems = self._take(lists[0])
        if len(lists) > 1:
            self._is_merged = True
            self._notes.append(f"the reply holds {len(lists)} lists of {name}; all were taken")
            drafts = [problem for items in lists[1:] for problem in self._take(items)]
            self._notes += [f"left out of another list: {problem}" for problem in drafts]
        if self._task.is_first and not (lists[0] or self.items):
            raise ReplyFormatError(
                f"the reply holds no {self._kind.noun}",
                text=text,
                problem="\n".join(["the list is empty", *self._task.lacks(())]),
                why="its list is empty, and an empty set would pass whatever is tested",
                hint=f"say in the system prompt which {name} are wanted",
            )
        shortfall = [] if self._is_asked_again else self.shortfall()
        if problems or shortfall:
            raise self._unusable(text, problems, len(lists[0]), shortfall)
        return self.items

    def salvage(self, pieces: Sequence[str]) -> dict[str, T] | None:
        """Take the whole items of a reply that was cut, also of lists that it began again.

        Returns:
            The items; ``None`` where there are none.

        Raises:
            ReplyFormatError: some of them cannot be used; only those are asked for again.
        """
        name = self._kind.name
        first = "|".join(sorted(self._kind.members))
        begun_list = re.compile(rf'\{{\s*"{name}"\s*:|\A[^\[{{"]*(?=\[\s*\{{\s*"(?:{first})")')
        texts = [pieces[0]]
        for piece in pieces[1:]:
            begun = begun_list.search(piece)
            start = begun.start() if begun else len(piece)
            texts[-1] += piece[:start]
            texts += [piece[start:]] if begun else []
        items = [item for text in texts for item in complete_items(text, name)]
        self._problems = problems = self._take(items)
        if not self.items:
            return None
        self.is_cut = self._is_merged = True
        self._notes.append(f"the reply was cut off: {len(self.items)} whole {name} were kept")
        if problems:
            raise self._unusable("".join(pieces), problems, len(items), [])
        return self.items

    def ask_for_rest(self) -> str:
        """Return what is to be asked after a reply that was cut, empty where nothing is missing."""
        missing = self.shortfall()
        self._is_asked_again = True
        if not missing:
            return ""
        listed = "\n".join(f"- {line}" for line in missing)
        return (
            f"Your reply was cut; its whole {self._kind.name} are kept. Still missing:\n{listed}"
            "\n\nAnswer in the same JSON form with what is missing only."
        )

    def give_up(self) -> bool:
        """Leave out what could not be repaired; return whether anything is left."""
        self._notes += [f"left out after repairs: {problem}" for problem in self._problems]
        return bool(self.items)

    def text_to_commit(self, text: str) -> str:
        """Return the text for the history: the reply itself if all items are from it."""
        is_changed = self._problems or self._is_merged
        return (
            text
            if self._texts == [text] and not is_changed
            else self._kind.text(self.items.values())
        )

    def _lists(self, text: str) -> list[list[JsonValue]]:
        """Return the lists of items in a reply, the answer first, then drafts and further parts.

        Lists without the object around them, and items without a list, count.
        """
        name = self._kind.name

        def is_item(value: object) -> bool:
            members = self._kind.members
            return isinstance(value, dict) and bool(members) and value.keys() >= members

        lists: list[tuple[str, list[JsonValue]]] = []
        single: list[JsonValue] = []
        for candidate in json_texts(text):
            value = candidate.value
            is_envelope = isinstance(value, dict) and isinstance(value.get(name), list)
            items = value[name] if is_envelope else value
            if isinstance(items, list) and (is_envelope or any(map(is_item, items))):
                lists.append((candidate.text, items))
            elif is_item(value):
                single.append(value)
        if single:
            lists.append((json.dumps(single), single))
        if not lists:
            return []
        answer = likely_answer([text for text, _ in lists])
        return [lists[answer][1], *(items for n, (_, items) in enumerate(lists) if n != answer)]

    def _take(self, items: Sequence[JsonValue]) -> list[str]:
        problems = []
        seen: dict[str, tuple[int, T]] = {}
        for number, data in enumerate(items, start=1):
            try:
                problem = self._take_one(read_item(self._kind.adapter, data), number, seen)
            except ValidationError as error:
                problem = "; ".join(
                    f"{'.'.join(map(str, detail['loc'])) or 'it'}: {detail['msg']}"
                    for detail in error.errors(include_url=False, include_context=False)
                )
            if problem:
                name = data.get("description") if isinstance(data, dict) else None
                where = f" ({name!r})" if isinstance(name, str) else ""
                problems.append(f"{self._kind.noun} {number}{where}: {problem}")
        return problems

    def _take_one(self, item: T, number: int, seen: dict[str, tuple[int, T]]) -> str:
        """Take one item, and return what is wrong with it, if anything is.

        Args:
            item: the item.
            number: its place in the list.
            seen: those of the same list before it, by key.
        """
        kind = self._kind
        problems = kind.problems(item)
        if problems := "; ".join(problems):
            return problems
        key, verdict = kind.key(item), kind.verdict(item)
        repeated = self._wrong.get(key, {}).get(verdict)
        if repeated:
            return repeated
        first, other = seen.setdefault(key, (number, item))
        earlier = self._standing.get(key) or self.items.get(key)
        if kind.verdict(other) != verdict and earlier in (None, other):
            # Neither can be taken for what was meant.
            self.items.pop(key, None)
            return (
                f"is the same as {kind.noun} {first} ({kind.label(other)}) and says something "
                "else; give the one that is right"
            )
        if earlier is None and first == number:
            self.items[key] = item
        else:
            self._notes.append(
                f"{kind.label(item)} asks what {kind.label(earlier or other)} asks; left out"
            )
        return ""

    def _unusable(
        self, text: str, problems: list[str], count: int, shortfall: Sequence[str]
    ) -> ReplyFormatError:
        name = self._kind.name
        if len(problems) > _MOST_PROBLEMS:
            more = f"and {len(problems) - _MOST_PROBLEMS} more"
            problems = [*problems[:_MOST_PROBLEMS], more]
        parts, asks = [], []
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            parts.append(f"{len(self._problems)} of your {count} {name} cannot be used:\n{listed}")
            asks.append("corrected versions of these")
        if shortfall:
            self._is_asked_again = True
            listed = "\n".join(f"- {flatten(line)}" for line in shortfall)
            parts.append(f"This is not what was asked for:\n{listed}")
            asks.append("what is missing")
            fresh = self.items.keys() - self._task.corrected.keys()
            if self._task.most_others is not None and len(fresh) > self._task.most_others:
                # Which of them were meant is for the model to say.
                self.items = {k: item for k, item in self.items.items() if k not in fresh}
                asks[-1] = "those that were asked for, and no others"
        number = len(self.items)
        ask = ""
        if number or shortfall:
            ask = f"The other {number} are kept. " if number else ""
            ask += f"Answer in the same JSON form with {' and '.join(asks)} only."
        return ReplyFormatError(
            f"{len(self._problems)} of {count} {name} cannot be used"
            if problems
            else f"the {name} are not those that were asked for",
            text=text,
            problem="\n\n".join(parts),
            asks=ask,
            why="\n".join(parts),
            hint="say in the system prompt what is wanted",
        )
