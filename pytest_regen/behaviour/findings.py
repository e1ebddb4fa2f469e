"""What replies to instances say about a type: findings, and the issues that they become."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal, Self

from pytest_regen.behaviour.same import ABSENT, Step, differences
from pytest_regen.documents.ir import FieldIR, Scalar, TypeIR, referenced_names
from pytest_regen.languages.runner import Question, Reply, RunFault, Traits
from pytest_regen.strict_json import strict_loads
from pytest_regen.text import in_quotes, quoted
from pytest_regen.validation.issues import IMPORT_FAILED, Issue

_MAX_VALUE: Final = 160
_MAX_INSTANCE: Final = 320
_MAX_REASON: Final = 300

Kind = Literal["refused", "changed", "swapped", "held", "filled", "accepted", "fault", "outside"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a type does with JSON and should not."""

    kind: Kind
    steps: tuple[Step, ...]
    """From the type that was asked to the property at fault; empty where none is known."""
    instance: Any = None
    expected: str | None = None
    """JSON of the value as it was given; ``None``: it was absent."""
    actual: str | None = None
    """JSON of the value as it came back; ``None``: it was left out."""
    keyword: str = ""
    """What an instance violates that was accepted."""
    member: str = ""
    """The member that holds what it should not."""
    reason: str = ""
    """Why an instance was refused, or why nothing could be run."""
    line: int | None = None
    """Where the code failed; counts from 1 in the code of the type, or ``outside`` in the file."""

    @property
    def key(self) -> tuple[str, ...]:
        """What findings have in common that are reported once."""
        last = self.steps[-1] if self.steps else Step("", "")
        return self.kind, last.type_name, last.field, self.keyword, self.member

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the finding of which ``asdict`` made plain JSON."""
        return cls(**{**data, "steps": tuple(Step(**step) for step in data["steps"])})

    @classmethod
    def of_fault(cls, fault: RunFault, type_name: str | None) -> Self:
        """Return that a type could not be run; none of them, for the lines around, without one."""
        reason = "\n".join(filter(None, (fault.message, fault.detail)))
        if type_name is None:
            return cls("outside", (), reason=reason, line=fault.line)
        return cls("fault", (Step(type_name, ""),), reason=reason, line=fault.line)


def smallest(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding for each key: the one with the shortest instance."""
    best: dict[tuple[str, ...], tuple[int, Finding]] = {}
    for finding in findings:
        # By its JSON, because that is what a person, or a model, has to read.
        size = len(_json(finding.instance))
        if finding.key not in best or size < best[finding.key][0]:
            best[finding.key] = size, finding
    return [finding for _, finding in best.values()]


# --- from replies to findings ---------------------------------------------------------------------


def findings_of_valid(
    question: Question,
    instances: Sequence[Any],
    replies: Sequence[Reply],
    types: Mapping[str, TypeIR],
    traits: Traits,
) -> Iterator[Finding]:
    """Yield what is wrong with replies to instances that the document allows."""
    members = _Members(question)
    changed = set()
    for instance, reply in zip(instances, replies, strict=True):
        if not reply.texts:
            steps = steps_of(reply.path, question.type, types)
            yield Finding("refused", steps, instance, reason=reply.refusal or "no reason given")
            continue
        for text in reply.texts:
            # What has no field is not in the first text, which is made of the fields alone.
            is_whole = text is reply.texts[-1]
            holding = traits if is_whole else replace(traits, keeps_more=False)
            try:
                actual = strict_loads(text, decimals=True)
            except ValueError as error:
                reason = f"what it dumps cannot be read: {error}"
                yield Finding("changed", (), instance, _shown(instance), _cut(text), reason=reason)
                continue
            for difference in differences(instance, actual, question.type, types, holding):
                changed.add(difference.steps[-1:])
                old, new = _shown(difference.expected), _shown(difference.actual)
                yield Finding("changed", difference.steps, instance, old, new)
        members.add(instance, reply)
    for finding in members.findings():
        # What comes back as it is held need not be told twice.
        if finding.kind != "held" or finding.steps not in changed:
            yield finding


def findings_of_invalid(
    type_: TypeIR, violations: Sequence[Any], replies: Sequence[Reply], types: Mapping[str, TypeIR]
) -> Iterator[Finding]:
    """Yield which instances were accepted that the document refuses.

    Args:
        type_: the type that was asked.
        violations: ``strategies.Violation``, one for each reply.
        replies: what became of them.
        types: all types of the store, by name.
    """
    for violation, reply in zip(violations, replies, strict=True):
        if reply.refusal is None:
            steps = steps_of(violation.path, type_, types) or (Step(type_.name, violation.field),)
            value = _shown(value_at(violation.instance, violation.path))
            yield Finding(
                "accepted", steps, violation.instance, actual=value, keyword=violation.keyword
            )


def steps_of(
    path: Sequence[str | int], type_: TypeIR, types: Mapping[str, TypeIR]
) -> tuple[Step, ...]:
    """Return the properties that a path goes through; what is no property is passed over.

    Args:
        path: from an instance of the type to a value in it; libraries put words of their own in.
        type_: where it begins.
        types: all types of the store, by name.
    """
    steps: list[Step] = []
    places: list[TypeIR] = [type_]
    # What is passed over is an index, or a word of a library, because fields alone have names.
    for key in path if type_.kind != "alias" else ("", *path):
        for place in places:
            field = _field(place, key)
            if field is not None:
                steps.append(Step(place.name, field.json_name))
                places = [types[ref] for ref in referenced_names(field.type) if ref in types]
                break
    if path and not steps and type_.kind == "enum":
        return (Step(type_.name, ""),)
    return tuple(steps)


def _field(type_: TypeIR, key: str | int) -> FieldIR | None:
    return next((field for field in type_.fields if field.json_name == key), None)


class _Members:
    """Whether members hold the values of the fields that they are called after.

    A class whose members are swapped reads and writes the same JSON; its users are misled.
    """

    def __init__(self, question: Question) -> None:
        self._fields = {field.json_name: field for field in question.type.fields}
        self._question = question
        self._own: set[str] = set()
        """Fields whose member held their value where no other field has it."""
        self._foreign: dict[str, Finding] = {}
        """Fields whose member held the value of another field."""
        self._filled: list[Finding] = []
        self._held: list[Finding] = []

    def add(self, instance: Any, reply: Reply) -> None:
        """Look at the members of one loaded instance."""
        if not reply.members or not isinstance(instance, dict):
            return
        try:
            values = strict_loads(reply.members, decimals=True)
        except ValueError:
            return
        # By name of the field, because two of them may be held by swapped members.
        for name, member in self._question.members.items():
            if member not in values or name not in self._fields:
                continue
            value, expected = values[member], instance.get(name, ABSENT)
            steps = (Step(self._question.type.name, name),)
            finding = Finding(
                "held", steps, instance, _shown(expected), _shown(value), member=member
            )
            if expected is ABSENT:
                default = self._fields[name].constraints.get("default")
                if value is not None and not _is_loosely(value, default):
                    self._filled.append(replace(finding, kind="filled"))
            elif _is_plain(value):
                self._present(value, finding)

    def _present(self, value: Any, finding: Finding) -> None:
        """Note what the member of a field that is there holds."""
        name, instance = finding.steps[-1].field, finding.instance
        alike = [
            other
            for other in instance
            if other != name and other in self._fields and _is_loosely(value, instance[other])
        ]
        type_ = self._fields[name].type
        # Not of a text with a format, because it may have more than one spelling.
        is_bare = isinstance(type_, Scalar) and not (type_.kind == "string" and type_.format)
        if _is_loosely(value, instance[name]):
            if not alike:
                self._own.add(name)
        # Not of what is empty, because many fields are.
        elif alike and value not in ("", False):
            self._foreign.setdefault(name, replace(finding, kind="swapped", reason=alike[0]))
        elif is_bare and type_.kind in {"string", "integer", "number"}:
            self._held.append(finding)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found in all instances together."""
        yield from self._filled
        # A value that is changed both ways comes back in the JSON; whoever uses the type is misled.
        yield from (one for one in self._held if one.steps[-1].field not in self._foreign)
        yield from (one for name, one in self._foreign.items() if name not in self._own)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | Decimal)


def _is_loosely(value: Any, other: Any) -> bool:
    """Return whether two plain values may be meant as the same, a number as text included."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if _is_plain(value) and _is_plain(other) and value != other:
        try:
            return float(str(value)) == float(str(other))
        except (ValueError, OverflowError):
            return False
    return (_is_plain(value) or type(value) is type(other)) and bool(value == other)


# --- from findings to issues ----------------------------------------------------------------------


def to_issue(finding: Finding, type_: TypeIR, first_line: int) -> Issue:
    """Return the issue for a finding.

    Args:
        finding: its last step is the field at fault.
        type_: the type that it is put on.
        first_line: of the code of that type in the source.
    """
    if finding.kind == "outside":
        reason = [_cut(line, _MAX_REASON) for line in finding.reason.splitlines() if line.strip()]
        return Issue.of(
            IMPORT_FAILED,
            "no type can be run: the lines around them fail",
            type_name=type_.name,
            line=finding.line,
            detail="\n".join([*reason, "correct the file: no type is at fault"]),
        )
    field = finding.steps[-1].field if finding.steps else ""
    message, plural = _words(finding, field, type_)
    lines = []
    if finding.kind != "fault":
        lines.append(f"instance: {_cut(_json(finding.instance), _MAX_INSTANCE)}")
    if finding.kind != "swapped":
        lines += [_cut(line, _MAX_REASON) for line in finding.reason.splitlines() if line.strip()]
    unit = field or None
    if type_.kind == "enum" and finding.instance in type_.enum_values:
        unit = str(finding.instance)
    return Issue.of(
        "ACCEPTS_INVALID" if finding.kind == "accepted" else "ROUND_TRIP",
        message,
        type_name=type_.name,
        line=finding.line and finding.line + first_line - 1,
        field=unit,
        detail="\n".join(lines),
        finding=plural,
    )


_LIMITS: Final = {
    "minimum": "below the minimum",
    "maximum": "above the maximum",
    "exclusiveMinimum": "not above",
    "exclusiveMaximum": "not below",
    "multipleOf": "no multiple of",
    "minLength": "shorter than",
    "maxLength": "longer than",
    "minItems": "with fewer items than",
    "maxItems": "with more items than",
    "minProperties": "with fewer properties than",
    "maxProperties": "with more properties than",
    "pattern": "which does not match",
    "const": "which is not",
    "format": "which is not a valid",
    "type": "which is of another type",
    "uniqueItems": "with items that are equal",
    **dict.fromkeys(("enum", "discriminator", "union"), "which is none of its values"),
}

_WORDS: Final = {
    "fault": ("{type} cannot be run", None),
    "refused": (
        "{name} is refused in an instance that the document allows",
        "these are refused in instances that the document allows",
    ),
    "refuses": ("{type} refuses an instance that the document allows", None),
    "filled": (
        "{name} is absent, but {member} holds {new}: absence must show",
        "these hold a value where they are absent in the JSON",
    ),
    "held": (
        "{member} holds {new} where the JSON has {old}",
        "these hold other values than the JSON has",
    ),
    "swapped": ("{member} holds the value of {other}, not that of {name}", None),
    "accepted": ("{name} is accepted as {new}, {limit}", None),
    "required": (
        "an instance without {name} is accepted; it is required",
        "instances without these are accepted; they are required",
    ),
    "nullable": (
        "{name} is accepted as null, which the document does not allow",
        "these are accepted as null, which the document does not allow",
    ),
    "nullableItems": (
        "null inside {name} is accepted, which the document does not allow",
        "null inside these is accepted, which the document does not allow",
    ),
    "lost": ("{name} is lost: {old} is not dumped again", "these are lost when dumped"),
    "added": (
        "{name} is dumped as {new}, although it was absent",
        "these are dumped although they were absent",
    ),
    "changed": (
        "{name} comes back as {new}, not as {old}",
        "these do not come back as they were",
    ),
}
"""Messages, and the same of several fields without their names."""


def _words(finding: Finding, field_name: str, type_: TypeIR) -> tuple[str, str | None]:
    """Return the message, and the same of several fields without their names."""
    old, new, keyword = finding.expected, finding.actual, finding.keyword
    case: str = finding.kind
    if case == "accepted" and keyword in _WORDS:
        case = keyword
    elif case == "refused" and not finding.steps:
        case = "refuses"
    elif case == "changed" and None in (old, new):
        case = "lost" if new is None else "added"
    field = _field(type_, field_name)
    limit = _LIMITS.get(keyword, f"against {keyword}")
    if field is not None and keyword == "format":
        limit += f" {getattr(field.type, 'format', None) or 'such text'}"
    elif field is not None and field.constraints.get(keyword, True) is not True:
        limit += f" {quoted(field.constraints[keyword])}"
    one, several = _WORDS[case]
    return one.format(
        type=type_.name,
        name=in_quotes(field_name) if field_name else type_.name,
        member=in_quotes(finding.member),
        other=in_quotes(finding.reason) if case == "swapped" else "",
        old=old,
        new=new,
        limit=limit,
    ), several


def value_at(instance: Any, path: Sequence[str | int]) -> Any:
    """Return the value of an instance at a path; ``ABSENT`` where it is missing."""
    for key in path:
        try:
            instance = instance[key]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return instance


def _json(value: Any) -> str:
    def plain(other: Any) -> Any:
        # As a float, because JSON shows the number then and not a text.
        return float(other) if isinstance(other, Decimal) else repr(other)

    return json.dumps(value, ensure_ascii=False, default=plain)


def _shown(value: Any) -> str | None:
    return None if value is ABSENT else _cut(_json(value))


def _cut(text: str, most: int = _MAX_VALUE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
