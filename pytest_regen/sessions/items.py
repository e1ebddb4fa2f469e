"""Items of any type: what is asked for, and replies that are read item by item."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from pytest_regen.canonical import canonical_hash
from pytest_regen.errors import ReplyFormatError
from pytest_regen.sessions.prompts import section
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
class Section:
    """A part of a message with feedback, and what is asked for because of each finding in it."""

    title: str
    explanation: str
    asks: Literal["same", "other", "more", "note", ""]
    """The same item again, another in its place, one for what there is none, anything; or nothing,
    because it is a hint."""
    count: str = ""
    """How the message says how many are wanted: the number stands for ``{}``."""


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """One thing that some feedback says, in the form that any feedback is sent and remembered."""

    section: Section
    line: str
    """How the message says it."""
    facts: tuple[Any, ...]
    """What makes two the same to a reader: not their wording."""
    key: str = ""
    """Of the item that it is about, if it is about one."""
    item: T | None = None
    """What stands for a corrected item until a replacement comes."""
    verdict: str = ""
    """What was wrong with the item."""
    answer_to_repeat: str = ""
    """What the model is told that gives that verdict again."""
    is_again: bool = False
    """Whether it is sent even where it was sent before."""

    @property
    def hash(self) -> str:
        """Identity, by which it is remembered as sent."""
        return canonical_hash([self.section.title, *self.facts])


def listed(findings: Sequence[Finding[T]], sections: Sequence[Section]) -> list[str]:
    """Return the sections of a message that have findings."""
    texts = (
        section(part.title, part.explanation, [f.line for f in findings if f.section == part])
        for part in sections
    )
    return [text for text in texts if text]


def counted(findings: Sequence[Finding[T]], sections: Sequence[Section]) -> list[str]:
    """Return how many items are wanted for each section, as a list."""
    numbers = Counter(finding.section for finding in findings)
    return [
        f"- {part.count.format(numbers[part])}" for part in sections if part.count and numbers[part]
    ]


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """What a turn asks for: its reply is held against it, and it is remembered afterwards."""

    message: str
    findings: Sequence[Finding[T]] = ()
    lacks: Callable[[Sequence[T]], Iterable[str]] = lambda _: ()
    """Returns in words what the set still lacks, given the items of the reply."""
    is_first: bool = False

    def asking(self, *asks: str) -> list[Finding[T]]:
        """Return the findings that ask for something of these kinds."""
        return [finding for finding in self.findings if finding.section.asks in asks]


def read_item(adapter: TypeAdapter[T], data: JsonValue) -> T:
    """Return an item from plain JSON.

    Raises:
        ValidationError: it is none.
    """
    # As JSON, because a strict type takes a date, say, from a text there and nowhere else.
    return adapter.validate_json(json.dumps(data))


# Item by item, because one bad item of 200 is to cost one item, and not all of them again.
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
        self._memory = memory
        self._corrected = {f.key: f.item for f in task.asking("same") if f.item is not None}
        self._wrong = {key: dict(verdicts) for key, verdicts in memory.wrong.items()}
        for finding in task.asking("same", "other"):
            verdicts = self._wrong.setdefault(finding.key, {})
            if finding.item is not None:
                # Because what is right now may be what was corrected before.
                verdicts.pop(kind.verdict(finding.item), None)
            if finding.verdict:
                verdicts[finding.verdict] = finding.answer_to_repeat
        self._others = len(task.asking("other", "more"))
        # A note may be about anything, so that no more is taken than there was.
        about_notes = max(len(memory.by_key), 1) if task.asking("note") else 0
        self._most_others = (
            self._others + (MOST_PER_WISH - 1) * len(task.asking("more")) + about_notes
        )
        self._texts: list[str] = []
        self._problems: list[str] = []
        self._is_asked_again = False
        self._notes: list[str] = []
        self.items: dict[str, T] = {}
        """What can be used, by key."""
        self.is_cut = False
        self._was_cut = False

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
        noun, fresh = self._kind.noun, self._fresh
        missing = [
            f"no {noun} came for the corrected {self._kind.label(item)}"
            for key, item in self._corrected.items()
            if key not in self.items
        ]
        if len(fresh) < self._others:
            missing.append(f"{len(fresh)} of {plural(self._others, f'other {noun}')} came")
        if self._are_too_many:
            missing.append(
                f"{plural(len(fresh), f'other {noun}')} came, and {self._most_others} at most were "
                "asked for"
            )
        return [*missing, *self._task.lacks(list(self.items.values()))]

    @property
    def _fresh(self) -> list[str]:
        return [key for key in self.items if key not in self._corrected]

    @property
    def _are_too_many(self) -> bool:
        return not self._task.is_first and len(self._fresh) > self._most_others

    def check_answered(self, text: str) -> None:
        """Check that what was asked for came, or a part of it.

        Raises:
            ReplyFormatError: too much came, or nothing of it.
        """
        # A part is enough, because what is missing can be sent again.
        fresh = len(self._fresh)
        answers = len(self.items) - fresh + min(fresh, self._others)
        asks = bool(self._corrected or self._others)
        if self._are_too_many or (asks and not answers):
            shortfall = self.shortfall()
            came = ", ".join(map(self._kind.label, list(self.items.values())[:5])) or "nothing"
            raise ReplyFormatError(
                f"the {self._kind.name} that came are not those that were asked for",
                text=text,
                problem="\n".join(shortfall),
                why="; ".join([*shortfall, *self._notes, f"what came: {came}"]),
                hint="ask again: the feedback counts as not sent; or drop the items concerned",
            )

    def memory(self) -> Memory[T]:
        """Return what is known after the turn."""
        # A correction without an answer can be asked about again, because nothing came of it.
        sent = {
            finding.hash
            for finding in self._task.findings
            if finding.section.asks != "same" or finding.key in self.items
        }
        # Also without an answer, because nothing can satisfy what was discarded.
        gone = {finding.key for finding in self._task.asking("other")}
        standing = {
            key: self._corrected.get(key, item)
            for key, item in self._memory.by_key.items()
            if key not in gone
        }
        return Memory({**standing, **self.items}, self._wrong, self._memory.sent | sent)

    def read(self, text: str) -> dict[str, T]:
        """Collect the items of a reply that can be used.

        Raises:
            ReplyFormatError: the reply is no list of items, some of them cannot be used, or others
                than those asked for came; then only what is missing is asked for.
        """
        items = self._answer(text)
        self.is_cut = False
        self._texts.append(text)
        self._problems = problems = self._take(items)
        if self._task.is_first and not (items or self.items):
            raise ReplyFormatError(
                f"the reply holds no {self._kind.noun}",
                text=text,
                problem="\n".join(["the list is empty", *self._task.lacks(())]),
                why="its list is empty, and an empty set would pass whatever is tested",
                hint=f"say in the system prompt which {self._kind.name} are wanted",
            )
        # Once in a turn, because a model that forgets a thing twice forgets it again.
        shortfall = [] if self._is_asked_again else self.shortfall()
        if problems or shortfall:
            raise self._unusable(text, problems, len(items), shortfall)
        return self.items

    def salvage(self, pieces: Sequence[str]) -> dict[str, T] | None:
        """Take the whole items of a reply that was cut, also of lists that it began again.

        Returns:
            The items; ``None`` where there are none.

        Raises:
            ReplyFormatError: some of them cannot be used; only those are asked for again.
        """
        name = self._kind.name
        # A list that a continuation begins anew is read from its beginning, because the one before
        # it has no end.
        texts = re.split(rf'(?=\{{\s*"{name}"\s*:)', "".join(pieces))
        items = [item for text in texts for item in complete_items(text, name)]
        self._problems = problems = self._take(items)
        if not self.items:
            return None
        self.is_cut = self._was_cut = True
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
        lines = "\n".join(f"- {line}" for line in missing)
        return (
            f"Your reply was cut; its whole {self._kind.name} are kept. Still missing:\n{lines}"
            "\n\nAnswer in the same JSON form with what is missing only."
        )

    def give_up(self) -> bool:
        """Leave out what could not be repaired; return whether anything is left."""
        self._notes += [f"left out after repairs: {problem}" for problem in self._problems]
        return bool(self.items)

    def text_to_commit(self, text: str) -> str:
        """Return the text for the history: the reply itself if all items are from it."""
        # Its own words where they can stay, because the next turn then reads them from the cache.
        is_whole = self._texts == [text] and not (self._problems or self._was_cut)
        return text if is_whole else self._kind.text(self.items.values())

    def _answer(self, text: str) -> list[JsonValue]:
        """Return the list of items in a reply; one without the object around it counts.

        Raises:
            ReplyFormatError: there is none.
        """
        name = self._kind.name
        texts, lists = [], []
        # Not by a schema, because pydantic's reader of JSON refuses all of a text with half a
        # character in it, and one bad item is to cost one item.
        for candidate in json_texts(text):
            value = candidate.value
            is_bare = isinstance(value, list) and any(isinstance(item, dict) for item in value)
            items = value.get(name) if isinstance(value, dict) else value if is_bare else None
            if isinstance(items, list):
                texts.append(candidate.text)
                lists.append(items)
        if lists:
            return lists[likely_answer(texts)]
        members = parse_json_with_schema(text, TypeAdapter(dict[str, JsonValue]))
        raise ReplyFormatError(
            f"the reply has no list of {name}",
            text=text,
            problem=f'the reply has no list "{name}"; it has {", ".join(members) or "nothing"}',
            why="its form was given in the first message",
            hint=f"say in the system prompt which {name} are wanted",
        )

    def _take(self, items: Sequence[JsonValue]) -> list[str]:
        problems, seen = [], dict[str, tuple[int, T]]()
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
        # The first of a list, because a later one may have been left out as its repetition.
        first, other = seen.setdefault(key, (number, item))
        standing = None if key in self._corrected else self._memory.by_key.get(key)
        earlier = standing or self.items.get(key)
        if kind.verdict(other) != verdict and earlier in (None, other):
            # Neither is taken, because nothing says which of them was meant.
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
        parts, asks = [], []
        if problems:
            lines = "\n".join(f"- {problem}" for problem in problems[:_MOST_PROBLEMS])
            parts.append(f"{len(self._problems)} of your {count} {name} cannot be used:\n{lines}")
            asks.append("corrected versions of these")
        if shortfall:
            self._is_asked_again = True
            lines = "\n".join(f"- {flatten(line)}" for line in shortfall)
            parts.append(f"This is not what was asked for:\n{lines}")
            asks.append("what is missing")
            if self._are_too_many:
                # None of them, because which were meant is for the model to say.
                self.items = {k: item for k, item in self.items.items() if k in self._corrected}
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
