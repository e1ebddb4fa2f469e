"""Conversations with a token of its own in every text, and the turns that agents take of them."""

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache, cached_property
from string import ascii_lowercase
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from pytest_regen.context import ConversationContext, InferredContext, parse_context, parse_request
from pytest_regen.errors import UsageError
from pytest_regen.testing import agents

Keys = tuple[str | int, ...]

_INFERRED: Final[dict[str, Any]] = {
    "detected_location": "Elko",
    "detected_scope": "local",
    "detected_target_type": "government",
    "reasoning": "it names a street",
    "detected_urgency": "recent",
    "detected_ask": "a limit",
}
_PLACE: Final = {
    "id": "where",
    "question": "Which city?",
    "type": "location_picker",
    "location_level": "city",
    "required": True,
    "placeholder": "A city",
    "prefilled_location": "Reno",
    "suggested_locations": ["Austin", "Tampa"],
}
_CHOICE: Final = {
    "id": "who",
    "question": "Who decides?",
    "type": "multiple_choice",
    "placeholder": "One or more",
    "options": [{"id": f"option {n}", "label": f"Label {n}"} for n in (1, 2, 3)],
    "allow_other": True,
}
_OPEN: Final = {"id": "why", "question": "Why?", "type": "open_text", "placeholder": "A reason"}
_SINCE: Final = {**_OPEN, "id": "since", "question": "Since when?", "placeholder": "A year"}
_SPARKS: Final = {
    "kind": "place",
    "label": "Sparks",
    "city": "Sparks City",
    "state": "Nevada",
    "country": "America",
}
AN_ID: Final = "an id"
"""Stands for an ``interaction_id``, which has the mark of the tokens."""
_MOST: Final = 20_000
"""Characters of a text that is as long as it may be, at most."""


def leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield the leaves of a JSON value with the keys that lead to them."""
    if not isinstance(value, dict | list):
        yield keys, value
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(part, (*keys, key))


def value_at(value: Any, keys: Keys) -> Any:
    """Return the part of a JSON value to which keys lead."""
    for key in keys:
        value = value[key]
    return value


def with_value(value: Any, keys: Keys, new: object) -> Any:
    """Return a copy of a JSON value with something else at one place."""
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[keys[0]] = with_value(copy[keys[0]], keys[1:], new) if keys[1:] else new
    return copy


def swap_texts(value: Any, texts: Mapping[str, str]) -> Any:
    """Return a copy of a JSON value with other texts, also where they are names of members."""
    if isinstance(value, dict):
        # Keys as well, because answers stand under the ids of their questions.
        return {texts.get(key, key): swap_texts(part, texts) for key, part in value.items()}
    if isinstance(value, list):
        return [swap_texts(part, texts) for part in value]
    return texts.get(value, value) if isinstance(value, str) else value


class Sample:
    """A second turn in which every question is answered, taken apart into its leaves.

    Args:
        value: of any model whose JSON has a member ``answers``, by the ids of the questions. Its
            texts differ, but for ids.
        letter: in its tokens, which differ from those of other samples.
    """

    def __init__(self, value: BaseModel, letter: str = "a") -> None:
        self.letter = letter
        self.model = type(value)
        self.wire: Any = json.loads(value.model_dump_json(exclude_none=True))
        places = [
            keys[:end]
            for keys, _ in leaves(self.wire)
            for end in range(1, len(keys))
            if keys[end - 1] == "answers" and isinstance(keys[end], str)
        ]
        # The outermost and of these the last, because earlier rounds have answers of their own.
        self.answers_at: Keys = min(reversed(places), key=len, default=())
        if not self.answers_at:
            what = f"the {self.model.__name__} given as conversation has no answers by question id"
            raise UsageError(what, hint="give one in which every question is answered")
        self.ids = list(value_at(self.wire, self.answers_at))
        self._names = {question: str(n) for n, question in enumerate(self.ids)}
        # By the first place of a text, because ids are repeated where answers stand.
        first = {leaf: keys for keys, leaf in reversed([*leaves(self.wire)]) if type(leaf) is str}
        self.keys = {
            self.path(first[leaf]): first[leaf]
            for leaf in reversed(first)
            if self.accepts(swap_texts(self.wire, {leaf: f"{leaf}Ä"}))
        }
        """The place of each text by its path."""
        self.texts = {path: str(value_at(self.wire, keys)) for path, keys in self.keys.items()}
        self.longest = {path: self._longest(text) for path, text in self.texts.items()}
        """How many characters each may have."""

    def path(self, keys: Keys) -> str:
        """Return the path of a leaf; ids of questions are told by their number."""
        return ".".join(self._names.get(str(key), str(key)) for key in keys)

    def accepts(self, wire: Any) -> bool:
        """Return whether a JSON value is a conversation, and is kept as it is."""
        try:
            value = self.model.model_validate_json(json.dumps(wire))
        except ValidationError:
            return False
        # Kept as it is, because what a validator normalizes would not be looked for.
        return bool(json.loads(value.model_dump_json(exclude_none=True)) == wire)

    def role(self, path: str) -> tuple[str, str]:
        """Return what a text belongs to, an ``answer`` or a ``question``, and its number."""
        keys = self.keys[path]
        depth = len(self.answers_at)
        if keys[:depth] == self.answers_at:
            return "answer", self._names[str(keys[depth])]
        for end in range(len(keys)):
            part = value_at(self.wire, keys[:end])
            if isinstance(part, dict) and part.get("id") in self.ids:
                return "question", self._names[part["id"]]
        return "", ""

    def _longest(self, text: str) -> int:
        # Tried, because a limit may stand in a validator that no schema shows.
        low, high = 1, _MOST
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.accepts(swap_texts(self.wire, {text: "x" * middle}))
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    @property
    def turn(self) -> "Shape":
        """The turn as it was given."""
        return Shape(self, self.wire)

    def variants(self) -> Iterator[tuple[str, "Shape"]]:
        """Yield conversations that differ in one leaf that is no text, and its path."""
        schema = self.model.model_json_schema()
        words = [leaf for keys, leaf in leaves(schema) if {"enum", "const"} & set(keys)]
        for keys, leaf in leaves(self.wire):
            at, others = keys, list[Any](words)
            if isinstance(leaf, int | float):
                others = [not leaf] if isinstance(leaf, bool) else [leaf / 2, leaf + 1, leaf - 1]
            elif leaf in self.texts.values():
                is_chosen = isinstance(keys[-1], int) and keys[: len(self.answers_at)] == (
                    self.answers_at
                )
                at = keys[:-1]
                others = [[it for it in value_at(self.wire, at) if it != leaf]] if is_chosen else []
            else:
                with suppress(ValueError):
                    others.append(str(date.fromisoformat(leaf) + timedelta(days=1)))
            wires = (with_value(self.wire, at, other) for other in others if other != leaf)
            if wire := next(filter(self.accepts, wires), None):
                yield self.path(at), Shape(self, wire)


@dataclass(frozen=True, eq=False)
class Shape:
    """A turn of a sample, with a token in every text as soon as it is given a mark."""

    sample: Sample
    wire: Any
    """The conversation as JSON, with the texts of the sample."""
    is_long: bool = False
    """Whether its texts are as long as they may be."""
    members: Mapping[str, Any] = field(default_factory=dict)
    """What the request has beside the conversation, or in its place, as JSON with such texts."""

    def answering(self, *numbers: int) -> "Shape":
        """Return the turn of somebody who answered these questions alone."""
        answers = value_at(self.wire, self.sample.answers_at)
        some = {key: answers[key] for n, key in enumerate(self.sample.ids) if n in numbers}
        return replace(self, wire=with_value(self.wire, self.sample.answers_at, some))

    def answering_one(self) -> list["Shape"]:
        """Return the turns of people who answered one of several questions, by the question."""
        numbers = range(len(self.sample.ids)) if len(self.sample.ids) > 1 else ()
        return [self.answering(number) for number in numbers]

    def tokens(self, mark: str) -> dict[str, str]:
        """Return the token of each text by its path.

        It has what is lost where a prompt is changed on the way: letters of both cases, one that
        is not ASCII, a comma, braces.
        """
        paths, letter = enumerate(self.sample.texts), self.sample.letter
        return {path: f"K{mark}Ä{letter}{number:02d},{{z}}" for number, path in paths}

    def sent_tokens(self) -> dict[str, str]:
        """Return the tokens of texts that are seen of this turn, ids left out."""
        sent = {leaf for _, leaf in leaves(self.wire) if isinstance(leaf, str)}
        return {
            path: token
            for path, token in self.tokens(agents.ANY_MARK).items()
            # Ids only name something, so that no model needs them.
            if self.sample.texts[path] in sent and self.sample.keys[path][-1] != "id"
        }

    def missing(self, prompt: str) -> list[str]:
        """Return the paths of the texts whose tokens do not stand in a prompt."""
        text = agents.readable(prompt)
        return [path for path, token in self.sent_tokens().items() if token not in text]

    def request(self, mark: str, texts: Mapping[str, str] | None = None) -> Any:
        """Return the request with tokens of a mark, but for some texts by their path."""
        tokens = self.tokens(mark) | dict(texts or {})
        for path, token in tokens.items() if self.is_long else ():
            room = self.sample.longest[path] - len(token)
            # More bytes than characters, and the token last, because that is where a cut is.
            tokens[path] = ("täxt " * (room // 5 + 1))[:room] + token
        swapped = {text: tokens[path] for path, text in self.sample.texts.items()}
        # Of other models nobody knows what a request around the conversation looks like.
        if self.sample.model is not ConversationContext:
            return self.sample.model.model_validate_json(json.dumps(swap_texts(self.wire, swapped)))
        members = {"message": self.wire["original_description"], "conversationContext": self.wire}
        names = {**swapped, AN_ID: f"i{mark}"}
        return parse_request(swap_texts({**members, **self.members}, names))


@cache
def default_samples() -> tuple[Sample, ...]:
    """Return second turns that hold questions of every type between them."""
    names = [name for name in InferredContext.model_fields if name.endswith("_confidence")]
    whole = {
        "original_description": "rent is out of control",
        "questions_asked": [_PLACE, _CHOICE],
        # Where inferences are sure, some agents let them win; where not, some drop them.
        "inferred_context": _INFERRED | dict.fromkeys(names, 0.98),
        "answers": {"where": _SPARKS, "who": "Label 1|||Label 2|||The landlords"},
    }
    unsure = whole | {
        "questions_asked": [_OPEN, _SINCE],
        "inferred_context": _INFERRED | dict.fromkeys(names, 0.02),
        "answers": {"why": "It rose", "since": "May"},
    }
    return Sample(parse_context(whole), "a"), Sample(parse_context(unsure), "b")


def new_mark() -> str:
    """Return a part of tokens that no agent has seen before."""
    return secrets.token_hex(4)


TOKEN: Final = re.compile(r"K[0-9a-f]{8}Ä[a-z]\d\d,\{z\}")


@dataclass(frozen=True)
class Lab:
    """Turns of one agent, each taken by a new instance and with tokens never seen before.

    Whatever an agent remembers, by description, answers or process, it remembers of other tokens:
    what these turns show is what the agent makes of a request. Prompts are compared with the tokens
    of one mark put in the place of those of the other.
    """

    make: agents.AgentFactory
    replies: agents.Replies = field(default_factory=agents.Replies)
    checks: Iterable[str] | None = None
    conversation: BaseModel | Sequence[BaseModel] = ()
    ignore: Collection[str] = ()
    max_calls: int = 3
    skeleton: Callable[[str], object] | None = None

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The conversations that were given, or those of the built-in agent."""
        turns = self.conversation
        turns = (turns,) if isinstance(turns, BaseModel) else turns
        samples = tuple(map(Sample, turns, ascii_lowercase))
        return samples or default_samples()

    def observe(
        self,
        shape: Shape,
        first: Sequence[str] = (),
        *,
        mark: str = "",
        agent: agents.Agent | None = None,
    ) -> agents.Observed:
        """Return what happens in a turn, with ``ANY_MARK`` in every token.

        Args:
            shape: the turn.
            first: what the model replies before it writes.
            mark: of the tokens; by default one that no agent has seen.
            agent: who takes it; a new instance by default.
        """
        mark = mark or new_mark()
        agent = agent or self.new_agent()
        return agent.take(shape.request(mark), first, mark)

    def new_agent(self) -> agents.Agent:
        """Return a new instance of the agent."""
        return agents.Agent(self.make, self.replies)

    def same(self, one: Shape, other: Shape) -> bool:
        """Return whether an agent makes the same of two requests with the same tokens."""
        # One mark for both, because an agent may keep what it made by ids that hold tokens.
        mark = new_mark()
        return bool(self.observe(one, mark=mark).plain == self.observe(other, mark=mark).plain)
