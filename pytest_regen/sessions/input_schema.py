"""What the input schema of a tool says about names and values of arguments, at any depth.

Servers publish schemas that programs wrote: choices behind ``$ref``, optional ones as ``anyOf``
with ``null``, objects in objects. Looked at are names, required names, choices and types. A false
alarm costs a paid reply: what cannot be known (a remote ``$ref``, ``if``, ``not``, a type that JSON
Schema does not have) has no objections.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from pytest_regen.canonical import canonical_json
from pytest_regen.sessions.scenarios import (
    ConditionalRoles,
    ScenarioRequest,
    ToolAnnotation,
    plain_numbers,
)

_SHOWN: Final = 60
"""Characters of a value that are shown."""
_FORMS: Final = ("anyOf", "oneOf")
_UNKNOWABLE: Final = frozenset(
    {"if", "dependentSchemas", "$dynamicRef", "$recursiveRef", "unevaluatedProperties"}
)
"""Keywords that may bring in names that are not looked for here."""

Seen = frozenset[int]
"""Identities of the schemas that are being looked at: some refer to themselves."""


class InputSchema:
    """A JSON Schema of arguments.

    Args:
        schema: as a tool's server publishes it; local references are followed.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments that it names, in their order."""
        found = (part.get("properties") for part in self._parts(self._root, with_forms=True))
        return tuple(dict.fromkeys(name for members in found for name in _mapping(members)))

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that must be there."""
        found = [name for part in self._parts(self._root) for name in _names(part.get("required"))]
        return tuple(dict.fromkeys(found))

    def choices(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield each argument, or place in one, that takes certain values only, with these."""
        yield from self._choices("", self._root, frozenset())

    def types(self) -> dict[str, str]:
        """Return what each argument that is named takes, in words; empty where all may be taken."""
        found: dict[str, str] = {}
        for part in self._parts(self._root, with_forms=True):
            for name, inner in _mapping(part.get("properties")).items():
                found.setdefault(name, self._kind(inner, frozenset()))
        return found

    def _kind(self, schema: Any, seen: Seen) -> str:
        """Return the type of a schema in words: ``array of string``, ``integer or null``."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return ""
        seen |= {id(schema)}
        for part in self._parts(schema):
            names = _names(part.get("type")) or _names([part.get("type")])
            if names:
                items = self._kind(part.get("items"), seen) if "array" in names else ""
                kinds = [
                    f"{name} of {items}" if items and name == "array" else name for name in names
                ]
                return " or ".join(kinds)
            forms = [self._kind(form, seen) for key in _FORMS for form in _list(part.get(key))]
            if forms:
                return " or ".join(dict.fromkeys(forms)) if all(forms) else ""
        return ""

    def problems(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong with ``arguments``, in words."""
        yield from self._unknown_names("", arguments, self._root, is_closed=True)
        # What a schema refers to may say the same once more.
        yield from dict.fromkeys(self._problems("", arguments, self._root, frozenset()))

    def _problems(self, name: str, value: Any, schema: Any, seen: Seen) -> Iterator[str]:
        """Yield what is wrong with one value, except names at the top."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        if name and isinstance(value, Mapping):
            yield from self._unknown_names(f"{name}.", value, schema, is_closed=False)
        for part in self._parts(schema):
            allowed = _allowed_values(part)
            if allowed is not None and not among(value, allowed):
                choices = ", ".join(canonical_json(choice) for choice in allowed)
                yield f"the argument {name!r} is {canonical_json(value)}; it takes {choices}"
            elif allowed is None and "type" in part and not _is_of(value, part["type"]):
                kind = self._kind(part, frozenset())
                yield f"the argument {name!r} is {_shown(value)}; its type is {kind}"
            if isinstance(value, Mapping):
                yield from self._object_problems(f"{name}." if name else "", value, part)
            if isinstance(value, list):
                for number, (item, items) in enumerate(_items(value, part)):
                    yield from self._problems(f"{name}[{number}]", item, items, frozenset())
            for key in _FORMS:
                yield from self._form_problems(name, value, part.get(key), seen | {id(schema)})

    def _object_problems(
        self, prefix: str, value: Mapping[str, Any], part: Mapping[str, Any]
    ) -> Iterator[str]:
        for name in _names(part.get("required")):
            if name not in value:
                yield f"the argument {prefix + name!r} is required"
        for name, inner in value.items():
            for schema in _schemas_of(name, part):
                yield from self._problems(prefix + name, inner, schema, frozenset())

    def _form_problems(self, name: str, value: Any, forms: Any, seen: Seen) -> Iterator[str]:
        """Yield what is wrong with a value by each form it can be meant as; nothing if one fits."""
        meant = [form for form in _list(forms) if self._can_mean(value, form)]
        found = [list(self._problems(name, value, form, seen)) for form in meant]
        if name and not meant and _list(forms):
            kind = self._kind({"anyOf": forms}, frozenset())
            yield f"the argument {name!r} is {_shown(value)}; its type is {kind or 'another'}"
        if found and all(found):
            yield " or ".join(dict.fromkeys("; ".join(problems) for problems in found))

    def _can_mean(self, value: Any, schema: Any) -> bool:
        """Return whether a value is of the schema's type; choices speak for themselves."""
        if not isinstance(schema, Mapping):
            return bool(schema)
        parts = list(self._parts(schema))
        types = [part["type"] for part in parts if "type" in part]
        has_choice = any(_allowed_values(part) is not None for part in parts)
        return has_choice or all(_is_of(value, type_) for type_ in types)

    def _unknown_names(
        self, prefix: str, value: Mapping[str, Any], schema: Mapping[str, Any], *, is_closed: bool
    ) -> Iterator[str]:
        """Yield the names that a schema does not know.

        Args:
            prefix: of the names, for the reader.
            value: an object.
            schema: its schema.
            is_closed: whether other names are refused where it does not speak of them.
        """
        parts = list(self._parts(schema, with_forms=True))
        others = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
        known = list(dict.fromkeys(n for part in parts for n in _mapping(part.get("properties"))))
        patterns = [
            pattern for part in parts for pattern in _mapping(part.get("patternProperties"))
        ]
        is_unknowable = any(_UNKNOWABLE & set(part) or self._is_lost(part) for part in parts)
        is_refusing = False in others or (is_closed and bool(known or patterns))
        if is_unknowable or any(other is not False for other in others) or not is_refusing:
            return
        others_known = f"there are {', '.join(sorted(known))}" if known else "there are none"
        for name in value:
            if name not in known and not any(_matches(schema, name) for schema in patterns):
                yield f"the argument {prefix + name!r} does not exist; {others_known}"

    def _choices(self, name: str, schema: Any, seen: Seen) -> Iterator[tuple[str, list[Any]]]:
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        allowed = self._values(schema, seen)
        if name and allowed is not None:
            yield name, allowed
            return
        prefix, inside = f"{name}." if name else "", seen | {id(schema)}
        for part in self._parts(schema, with_forms=True):
            for key, inner in _mapping(part.get("properties")).items():
                yield from self._choices(prefix + key, inner, inside)
            yield from self._choices(f"{name}[]", part.get("items"), inside)

    def _values(self, schema: Any, seen: Seen) -> list[Any] | None:
        """Return the only values that a schema takes, ``None`` where there are others."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return None
        for part in self._parts(schema):
            allowed = _allowed_values(part)
            if allowed is not None:
                return allowed
            if part.get("type") == "null":
                return [None]
            for forms in (_list(part.get(key)) for key in _FORMS):
                found = [self._values(form, seen | {id(schema)}) for form in forms]
                if found and all(values is not None for values in found):
                    return [value for values in found for value in values or ()]
        return None

    def _parts(
        self, schema: Mapping[str, Any], seen: Seen = frozenset(), *, with_forms: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        """Yield ``schema`` and what it refers to and is composed of: all of it holds at once.

        Args:
            schema: where to begin.
            seen: what need not be yielded again.
            with_forms: also the forms of which one holds.
        """
        if id(schema) in seen:
            return
        seen |= {id(schema)}
        yield schema
        inner = [self._target(schema), *_list(schema.get("allOf"))]
        for key in _FORMS if with_forms else ():
            inner += _list(schema.get(key))
        for part_schema in inner:
            if isinstance(part_schema, Mapping):
                yield from self._parts(part_schema, seen, with_forms=with_forms)

    def _target(self, schema: Mapping[str, Any]) -> Any:
        """Return what ``$ref`` refers to, ``None`` where there is none in this schema."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                found = _mapping(found).get(key)
        return found

    def _is_lost(self, schema: Mapping[str, Any]) -> bool:
        return "$ref" in schema and not isinstance(self._target(schema), Mapping)


def among(value: Any, allowed: list[Any]) -> bool:
    """Return whether a value is one of these; in JSON 1.0 is 1, and ``true`` is not."""
    wanted = canonical_json(plain_numbers(value))
    return any(wanted == canonical_json(plain_numbers(choice)) for choice in allowed)


def _shown(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _allowed_values(part: Mapping[str, Any]) -> list[Any] | None:
    allowed = [part["const"]] if "const" in part else part.get("enum")
    return allowed if isinstance(allowed, list) else None


def _schemas_of(name: str, part: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas that a part has for the value of one name."""
    properties = _mapping(part.get("properties"))
    patterns = _mapping(part.get("patternProperties")).items()
    named = [properties[name]] if name in properties else []
    named += [schema for pattern, schema in patterns if _matches(pattern, name)]
    yield from named or [part.get("additionalProperties")]


def _items(value: list[Any], part: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each item with its schema."""
    items = part.get("items")
    first = [*_list(part.get("prefixItems")), *_list(items)]
    for number, item in enumerate(value):
        yield item, first[number] if number < len(first) else items


def _is_of(value: Any, types: Any) -> bool:
    names = types if isinstance(types, list) else [types]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "string": isinstance(value, str),
        "integer": is_number and (isinstance(value, int) or value.is_integer()),
        "number": is_number,
        "array": isinstance(value, list),
        "object": isinstance(value, Mapping),
    }
    return any(fits.get(name, True) for name in names if isinstance(name, str))


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True  # Of another dialect; what it means cannot be known.


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: Any) -> list[str]:
    return [item for item in _list(value) if isinstance(item, str)]


def argument_problems(request: ScenarioRequest, annotation: ToolAnnotation) -> tuple[str, ...]:
    """Return what is wrong with the arguments of ``request`` by the input schema of the tool.

    Unknown names, required names, choices and types are looked at, in objects inside as well. A
    name that the schema does not list is unknown unless it says that others may be there; in
    objects inside only where it says that they may not. A tool without a schema of its arguments
    has no objections.
    """
    return tuple(InputSchema(annotation.input_schema or {}).problems(request.arguments))


def undecided_roles(request: ScenarioRequest, annotation: ToolAnnotation) -> tuple[str, ...]:
    """Return for which arguments of ``request`` default roles count, in words.

    That is where roles depend on the value of another argument, and it is missing or a value that
    no condition speaks of. The request is not wrong for that: default roles are the strictest, and
    whoever reads why it was decided so needs to know. Conditions on yes or no have two sides, the
    default one of them, and leave nothing undecided.
    """
    roles = {name: role for name, role in annotation.args.items() if name in request.arguments}
    return tuple(
        f"the roles of {name!r} depend on {missing}: the default ones count"
        for name, role in roles.items()
        if isinstance(role, ConditionalRoles)
        for missing in _missing_conditions(role, request.arguments)
    )


def _missing_conditions(roles: ConditionalRoles, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the argument that a choice of roles is missing; nothing where a condition holds."""
    conditions = [choice.condition for choice in roles.when]
    if any(_holds(condition, arguments) for condition in conditions):
        return
    for condition in conditions:
        values = _values(condition)
        if values and not any(isinstance(item, bool) for item in values):
            name, value = condition["arg"], arguments.get(str(condition["arg"]))
            state = "missing" if value is None else canonical_json(value)
            yield f"{name!r}, which is {state}"
            return


def _values(condition: Mapping[str, Any]) -> list[Any]:
    found = condition.get("in", [condition["equals"]] if "equals" in condition else [])
    return list(found) if isinstance(found, list | tuple) else []


def _holds(condition: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    value = arguments.get(str(condition["arg"]))
    if "is" not in condition:
        return among(value, _values(condition))
    is_there, is_truthy = value is not None, isinstance(value, list | dict) or bool(value)
    answers = {"present": is_there, "absent": not is_there, "truthy": is_truthy}
    return answers.get(str(condition["is"]), not is_truthy)
