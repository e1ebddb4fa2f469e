"""Names of the wire as Python identifiers: legal, different, and safe where annotations are read.

An annotation of a class is read in the namespace of that class. A field that is called as a name
that annotations use (``str``, ``list``, ``dt``) would be found there in its place, so that fields
never are; other builtins (``id``, ``type``) are fine.
"""

import builtins
import keyword
import re
import unicodedata
from typing import Final

from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.names import SYMBOLS, capitalise, shorten, split_words, word_set

BASE_MODEL: Final = "ApiModel"
"""The base class of all models; it stands in the header."""

MODEL: Final = "pydantic model"
DATACLASS: Final = "dataclass"
KEYS: Final = "TypedDict"
"""Kinds of classes, one for each profile, and of their members."""

HEADER_CLASSES: Final = frozenset({BASE_MODEL, "Unset"})
"""What the headers declare themselves."""

_STANDARD: Final = word_set(
    """
    Annotated Any ApiModel BaseModel Callable ClassVar ConfigDict Decimal DecimalNumber Dict Enum
    Field Final FrozenSet Generic IntEnum Iterable Iterator List Literal Mapping MutableMapping
    NotRequired Optional PlainSerializer Protocol Required Self Sequence Set StrEnum Tuple Type
    TypeAlias TypeVar TypedDict UNSET UUID Union Unset
    """
)
"""What the headers of all profiles have, and what code may import beside."""

RESERVED_TYPE_NAMES: Final = (
    _STANDARD
    | frozenset(name for name in dir(builtins) if name[:1].isupper())
    | frozenset(name for name in keyword.kwlist if name[:1].isupper())
)
"""Names a generated type must not take: code that means the standard one would mean it instead."""

_IN_ANNOTATIONS: Final = word_set("bool dataclasses dict dt float int list str")
_OF_MODELS: Final = word_set(
    """
    construct copy dict from_orm json model_computed_fields model_config model_construct model_copy
    model_dump model_dump_json model_extra model_fields model_fields_set model_json_schema
    model_parametrized_name model_post_init model_rebuild model_validate model_validate_json
    model_validate_strings parse_file parse_obj parse_raw schema schema_json update_forward_refs
    validate
    """
)
"""What pydantic's ``BaseModel`` has already: a field of that name would hide it."""

_RESERVED: Final = frozenset(keyword.kwlist) | _IN_ANNOTATIONS | _OF_MODELS | {"self"}
_MAX_LENGTH: Final = 100
"""Longer names are cut and told apart by a hash."""
_LEADING_SIGN: Final = re.compile(r"[+-](?=\w)")
_PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*")
_PASCAL: Final = re.compile(r"[A-Z][A-Za-z0-9]*")


def type_name(schema_name: str, *, is_root: bool) -> str:
    """Return a legal name for the type of a schema, in PascalCase; a root is called like others."""
    del is_root
    text = unicodedata.normalize("NFKC", schema_name)
    if not _PASCAL.fullmatch(text):
        words = _words(text) or map(_symbol, text)
        text = "".join(capitalise(word, str.isidentifier) for word in words) or "Empty"
    text = text if text[0].isidentifier() else f"Type{text}"
    text = shorten(text, schema_name, _MAX_LENGTH)
    if not text[0].isupper():
        text = f"Type{text}"  # of a script without capitals: a field could be called so, too
    return f"{text}Model" if text in RESERVED_TYPE_NAMES else text


def member_names(type_: TypeIR) -> dict[str | int, str]:
    """Return an identifier for each field or enum value of ``type_``, all of them different.

    What is a good name as it stands keeps it, whatever the others are called: with
    ``populate_by_name`` a field is found by its identifier, so that no field may have the JSON name
    of another for its own. Where several would be called the same, the later ones are numbered.
    """
    if type_.kind == "object":
        taken = set(map(str, type_.units))
        plain = {unit: member_name(unit) for unit in type_.units}
        return {unit: name if name == unit else _free(name, taken) for unit, name in plain.items()}
    labels: dict[str | int, str | int] = {unit: unit for unit in type_.units}
    if type_.enum_names and len(type_.enum_names) == len(type_.enum_values):
        labels.update(zip(type_.enum_values, type_.enum_names, strict=True))
    taken, names = set(), {}
    for unit, label in labels.items():
        if isinstance(label, int):
            name = f"VALUE_MINUS_{-label}" if label < 0 else f"VALUE_{label}"
        else:
            # Again, because capitals of a normal text need not be normal.
            name = unicodedata.normalize("NFKC", _snake(label).upper())
            name = name if name[0].isidentifier() else f"VALUE_{name}"
        names[unit] = _free(name, taken)
    return names


def _free(name: str, taken: set[str]) -> str:
    """Return ``name``, with a number where it is taken, and take it."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name.rstrip('_')}_{number}", number + 1
    taken.add(free)
    return free


def member_name(wire_name: str | int) -> str:
    """Return a legal identifier for a field: ``tail_colour`` for ``tail-colour``."""
    text = str(wire_name)
    if is_field_name(text):
        return text
    name = _snake(text)
    if not name[0].isidentifier():
        name = f"field_{name}"
    return f"{name}_" if name in _RESERVED else name


def is_field_name(text: str) -> bool:
    """Return whether a JSON name can be the identifier as it stands, without an alias."""
    return bool(_PLAIN.fullmatch(text)) and text not in _RESERVED and len(text) <= _MAX_LENGTH


def is_identifier(text: str) -> bool:
    """Return whether ``text`` is an identifier and no keyword."""
    # Python reads other forms of an identifier as this one, so that they would be other keys.
    is_plain = text == unicodedata.normalize("NFKC", text)
    return text.isidentifier() and is_plain and not keyword.iskeyword(text)


def _snake(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    words = ["minus" if text[0] == "-" else "plus"] if _LEADING_SIGN.match(text) else []
    words += [word.lower() for word in _words(text)]
    words = words or [_symbol(char) for char in text] or ["empty"]
    # A lower-case form may have marks that stand for themselves: only what is legal is kept.
    name = unicodedata.normalize("NFKC", "_".join(words))
    legal = "".join(char for char in name if f"a{char}".isidentifier())
    return shorten(legal, text, _MAX_LENGTH) or "empty"


def _words(text: str) -> list[str]:
    """Return the words of ``text``, without a character that identifiers do not have."""
    return split_words(text, lambda char: f"a{char}".isidentifier())


def _symbol(char: str) -> str:
    return SYMBOLS.get(char) or f"u{ord(char):04x}"
