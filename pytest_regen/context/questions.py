"""Questions and answers as values: closed, bounded, frozen."""

import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

BLANK_CHARACTERS: Final = frozenset(
    {
        *map(chr, range(0x21)),  # controls and the space
        *map(chr, range(0x7F, 0xA1)),  # delete, C1 controls, no-break space
        *"\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f",
        *map(chr, range(0x2000, 0x2010)),  # spaces, zero-width characters, direction marks
        *map(chr, range(0x2028, 0x2030)),  # line and paragraph separators, embeddings
        *map(chr, range(0x205F, 0x2070)),  # mathematical space, joiners, isolates
        *"\u2800\u3000\u3164\ufeff\uffa0",
        *map(chr, range(0xFE00, 0xFE10)),  # variation selectors
        *map(chr, range(0xFFF9, 0xFFFC)),  # annotations
        *map(chr, range(0x13430, 0x13440)),  # controls that join hieroglyphs
        *map(chr, range(0x1BCA0, 0x1BCA4)),  # controls of shorthand
        *map(chr, (0x1D159, *range(0x1D173, 0x1D17B))),  # a note without head, beams of music
        *map(chr, range(0xE0000, 0xE0200)),  # tags, more variation selectors
    }
)
"""What shows nothing: a text of these alone is blank."""

_BLANK: Final = "".join(sorted(BLANK_CHARACTERS))
DELIMITER: Final = "|||"
"""Between the parts of a multiple choice that was sent as one string."""

# What may not stand in a prompt as it is: whatever ends a line, shows nothing, turns the direction
# of text or is no character (also private ones and halves); the three from which tags, role markers
# and fences are made; and what a normal form of Unicode (NFC to NFKD) turns into one of these, into
# a quote or into a backslash: wide and small forms, Greek varia, crossed-out brackets.
_ESCAPED: Final = re.compile(
    "[<>`\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\uffff\U00013430-\U00013455\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff"
    "\u1fef\u226e\u226f\ufe64\ufe65\ufe68\uff02\uff1c\uff1e\uff3c\uff40]"
)

_BASIC_PLANE = 0x10000


def is_blank(text: str) -> bool:
    """Return whether ``text`` holds nothing but ``BLANK_CHARACTERS``."""
    return not text.strip(_BLANK)


def trim(text: str) -> str:
    """Return ``text`` without ``BLANK_CHARACTERS`` at its ends."""
    return text.strip(_BLANK)


def as_data(text: str) -> str:
    """Return ``text`` as a JSON string on one line that cannot pose as anything else.

    Any JSON reader gives ``text`` back. Whatever it holds, the result has no line end, no invisible
    character, no ``<``, ``>`` or back-tick, and ends only where its quotes do.
    """
    return _ESCAPED.sub(_escape, encode_basestring(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _BASIC_PLANE:
        return f"\\u{code:04x}"
    code -= _BASIC_PLANE
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


MAX_QUESTION: Final = 300
MAX_ANSWER: Final = 1_000
"""Characters; so are the other limits of texts."""
MAX_LABEL: Final = 200
"""Of an option, a place, a placeholder."""
MAX_ID: Final = 64
MAX_SUGGESTIONS: Final = 5
MIN_OPTIONS: Final = 2
MAX_OPTIONS: Final = 4

QuestionType = Literal["location_picker", "open_text", "multiple_choice"]
LocationLevel = Literal["city", "state", "country"]


def not_blank(text: str) -> str:
    """Return ``text``, unless it is blank; a pydantic validator."""
    if is_blank(text):
        raise PydanticCustomError("blank", "Text must not be blank")
    return text


def problem(code: str, message: str) -> PydanticCustomError:
    """Return the error of a validator."""
    # Because braces in a message are placeholders, the message itself is filled in.
    return PydanticCustomError(code, "{problem}", {"problem": message})


Id = Annotated[str, Field(max_length=MAX_ID), AfterValidator(not_blank)]
Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(not_blank)]
Sentence = Annotated[str, Field(max_length=MAX_ANSWER), AfterValidator(not_blank)]
# Strict, because "no" and 0 are slips that a caller should be told.
Flag = Annotated[bool, Field(strict=True)]


class Value(BaseModel):
    """A frozen, closed model that repeats no input in its errors; camelCase is read, too."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,  # because JSON has neither, and a prompt would show them
        hide_input_in_errors=True,  # because errors go to logs
        populate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=to_camel),
    )


class Sparse(Value):
    """A value whose empty members (``null``, blank text, no items) count as absent."""

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        # Because "must not be blank" says more than "is missing", required members stay.
        needed = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {key: item for key, item in data.items() if key in needed or not is_empty(item)}


def is_empty(value: object) -> bool:
    """Return whether a member has no value: ``null``, blank text, no items."""
    return is_blank(value) if isinstance(value, str) else value is None or value in ([], ())


class Question(Sparse):
    """A question of any agent's: derive from it, and add what yours carry.

    Args:
        id: the key under which its answer stands.
        question: the text that a person reads.
    """

    id: Id
    question: Annotated[str, AfterValidator(not_blank)]

    def read_answer(self, value: object) -> object:
        """Return an answer as its type reads it; ``None`` where the question was skipped."""
        skipped = is_empty(value) or value == {"kind": "skipped"}
        return None if skipped else value

    def answer_problem(self, answer: Any) -> str | None:
        """Return why a valid answer does not fit this question, or ``None``."""
        del answer
        return None


class Option(Value):
    """One answer that a multiple-choice question offers."""

    id: Id
    label: Label


class TextAnswer(Sparse):
    """An answer in words, to an ``open_text`` question."""

    kind: Literal["text"] = "text"
    text: Sentence


class PlaceAnswer(Sparse):
    """A place, to a ``location_picker`` question."""

    kind: Literal["place"] = "place"
    label: Label
    """As shown: ``San Francisco, CA``."""
    city: Label | None = None
    state: Label | None = None
    country: Label | None = None


class ChoiceAnswer(Sparse):
    """Options chosen by id, words of one's own, or both, to a ``multiple_choice`` question."""

    kind: Literal["choice"] = "choice"
    selected: Annotated[tuple[Id, ...], Field(max_length=MAX_OPTIONS)] = ()
    other: Sentence | None = None


Answer = Annotated[TextAnswer | PlaceAnswer | ChoiceAnswer, Field(discriminator="kind")]

_ANSWER_KINDS: Final = {
    "open_text": "text",
    "location_picker": "place",
    "multiple_choice": "choice",
}
_OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "location_picker": frozenset({"location_level", "prefilled_location", "suggested_locations"}),
    "open_text": frozenset(),
    "multiple_choice": frozenset({"options", "allow_other"}),
}
_TYPED: Final = frozenset[str]().union(*_OF_TYPE.values())


class ClarificationQuestion(Question):
    """A question that the agent asks; which fields it may carry follows from its ``type``."""

    question: Annotated[str, Field(max_length=MAX_QUESTION), AfterValidator(not_blank)]
    type: QuestionType
    required: Flag = False
    """Whether a page waits for an answer before it goes on. Skipping is possible all the same."""
    placeholder: Label | None = None
    location_level: LocationLevel | None = None
    """Of a location picker, which has one always; ``city`` where it was not said."""
    prefilled_location: Label | None = None
    """Of a location picker: what stands in it at first."""
    suggested_locations: Annotated[
        tuple[Label, ...] | None, Field(min_length=1, max_length=MAX_SUGGESTIONS)
    ] = None
    """Of a location picker: guesses, shown as buttons."""
    options: Annotated[
        tuple[Option, ...] | None, Field(min_length=MIN_OPTIONS, max_length=MAX_OPTIONS)
    ] = None
    """Of a multiple choice, which has two to four always."""
    allow_other: Flag | None = None
    """Of a multiple choice: whether words of one's own are an answer; true where not said."""

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        # By what was set, because a level on a choice is a slip even where it is the default.
        foreign = sorted((_TYPED - _OF_TYPE[self.type]) & self.model_fields_set)
        if foreign:
            raise problem("not_of_type", f"A question of type {self.type} has no {foreign[0]}")
        if self.type == "multiple_choice" and self.options is None:
            raise problem("options_missing", "A multiple choice needs 2 to 4 options")
        options = self.options or ()
        for name in ("id", "label"):
            if len({getattr(option, name) for option in options}) < len(options):
                raise problem("options_repeated", f"Two options have the same {name}")
        # Past the setters, because the model is frozen.
        if self.type == "location_picker" and self.location_level is None:
            object.__setattr__(self, "location_level", "city")
        if self.type == "multiple_choice" and self.allow_other is None:
            object.__setattr__(self, "allow_other", True)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}

    def read_answer(self, value: object) -> object:
        """Return a typed answer also for a string, as the requirement's callers send one."""
        if isinstance(value, str) and not is_blank(value):
            value = {
                "open_text": {"kind": "text", "text": value},
                "location_picker": {"kind": "place", "label": value},
            }.get(self.type) or self._choice(value)
        if isinstance(value, BaseModel):
            value = value.model_dump()
        if isinstance(value, Mapping):
            # Only its kind: skipped, because pages send the form of an answer with nothing in it.
            members = {key for key, item in value.items() if not is_empty(item)}
            known_kind = value.get("kind") in ("skipped", *_ANSWER_KINDS.values())
            if not members or (members == {"kind"} and known_kind):
                return None
        return super().read_answer(value)

    def _choice(self, text: str) -> Mapping[str, object]:
        if len(text) > MAX_OPTIONS * MAX_LABEL + MAX_ANSWER:
            return {"kind": "choice", "other": text}  # too long for anything but a refusal
        by_name = {option.id: option.id for option in self.options or ()}
        by_name |= {option.label: option.id for option in self.options or ()}
        parts = [trim(part) for part in text.split(DELIMITER) if not is_blank(part)]
        return {
            "kind": "choice",
            "selected": list(dict.fromkeys(by_name[part] for part in parts if part in by_name)),
            # Because a person's words may hold the delimiter, it is put back between them.
            "other": f" {DELIMITER} ".join(part for part in parts if part not in by_name),
        }

    def answer_problem(self, answer: Answer) -> str | None:
        """Return why ``answer`` does not fit: another kind, or options that are not offered."""
        if answer.kind != _ANSWER_KINDS[self.type]:
            return (
                f"is of kind {answer.kind!r}; a question of type {self.type} takes "
                f"{_ANSWER_KINDS[self.type]!r}"
            )
        if not isinstance(answer, ChoiceAnswer):
            return None
        if not {option.id for option in self.options or ()}.issuperset(answer.selected):
            return "selects an option that was not offered"
        if len(set(answer.selected)) < len(answer.selected):
            return "selects an option twice"
        if answer.other is not None and not self.allow_other:
            return "has words of its own, which the question does not allow"
        return None
