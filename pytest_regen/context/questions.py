"""Questions and answers as values: strict, bounded, frozen."""

import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
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


def is_empty(value: object) -> bool:
    """Return whether a member has no value: ``null``, blank text, no items."""
    return is_blank(value) if isinstance(value, str) else value is None or value in ([], ())


def _tuple(value: object) -> object:
    # JSON has no tuples, and strict models take nothing else for one.
    return tuple(value) if isinstance(value, list) else value


Id = Annotated[str, Field(max_length=MAX_ID), AfterValidator(not_blank)]
Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(not_blank)]
AsTuple = BeforeValidator(_tuple)


class Value(BaseModel):
    """What the values of a clarification share: strict, frozen, closed, silent about its input."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        populate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=to_camel),
    )


class Option(Value):
    """One answer that a multiple-choice question offers."""

    id: Id
    label: Label


_OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "location_picker": frozenset({"location_level", "prefilled_location", "suggested_locations"}),
    "open_text": frozenset(),
    "multiple_choice": frozenset({"options", "allow_other"}),
}
_TYPED: Final = frozenset[str]().union(*_OF_TYPE.values())
_ALWAYS: Final = frozenset({"id", "question", "type"})
"""What every question has: empty, it is wrong and not left out."""


class ClarificationQuestion(Value):
    """A question that the agent asks; which fields it may carry follows from its ``type``."""

    id: Id
    question: Annotated[str, Field(max_length=MAX_QUESTION), AfterValidator(not_blank)]
    type: QuestionType
    required: bool = False
    """Whether a page waits for an answer before it goes on. Skipping is possible all the same."""
    placeholder: Label | None = None
    location_level: LocationLevel | None = None
    """Of a location picker, which has one always; ``city`` where it was not said."""
    prefilled_location: Label | None = None
    """Of a location picker: what stands in it at first."""
    suggested_locations: Annotated[
        tuple[Label, ...] | None, AsTuple, Field(min_length=1, max_length=MAX_SUGGESTIONS)
    ] = None
    """Of a location picker: guesses, shown as buttons."""
    options: Annotated[
        tuple[Option, ...] | None, AsTuple, Field(min_length=MIN_OPTIONS, max_length=MAX_OPTIONS)
    ] = None
    """Of a multiple choice, which has two to four always."""
    allow_other: bool | None = None
    """Of a multiple choice: whether words of one's own are an answer; true where not said."""

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        given = {
            key: value
            for key, value in data.items()
            if value is not None and (key in _ALWAYS or not is_empty(value))
        }
        kind = given.get("type")
        if kind == "location_picker" and "locationLevel" not in given:
            given.setdefault("location_level", "city")
        if kind == "multiple_choice" and "allowOther" not in given:
            given.setdefault("allow_other", True)
        return given

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        foreign = sorted((_TYPED - _OF_TYPE[self.type]) & self.model_fields_set)
        if foreign:
            raise problem("not_of_type", f"A question of type {self.type} has no {foreign[0]}")
        if self.type == "multiple_choice":
            _check_options(self.options)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}


def _check_options(options: tuple[Option, ...] | None) -> None:
    if options is None:
        raise problem("options_missing", "A multiple choice needs 2 to 4 options")
    for what in ("id", "label"):
        if len({getattr(option, what) for option in options}) < len(options):
            raise problem("options_repeated", f"Two options have the same {what}")


def problem(code: str, message: str) -> PydanticCustomError:
    """Return the error of a validator."""
    # Braces in a message are placeholders; what is filled in stays as it is.
    return PydanticCustomError(code, "{problem}", {"problem": message})


class TextAnswer(Value):
    """An answer in words, to an ``open_text`` question."""

    kind: Literal["text"] = "text"
    text: Annotated[str, Field(max_length=MAX_ANSWER), AfterValidator(not_blank)]


class PlaceAnswer(Value):
    """A place, to a ``location_picker`` question."""

    kind: Literal["place"] = "place"
    label: Label
    """As shown: ``San Francisco, CA``."""
    city: Label | None = None
    state: Label | None = None
    country: Label | None = None


class ChoiceAnswer(Value):
    """Options chosen by id, words of one's own, or both, to a ``multiple_choice`` question."""

    kind: Literal["choice"] = "choice"
    selected: Annotated[tuple[Id, ...], AsTuple, Field(max_length=MAX_OPTIONS)] = ()
    other: Annotated[str, Field(max_length=MAX_ANSWER), AfterValidator(not_blank)] | None = None


Answer = Annotated[TextAnswer | PlaceAnswer | ChoiceAnswer, Field(discriminator="kind")]
