"""Scripts in YAML: pydantic says by their dataclasses what is wrong with one, and where."""

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import yaml
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, ValidationInfo

from pytest_regen.emulator.script import Count, Match, Rule, Script, Step
from pytest_regen.emulator.values import FORBID, BatchStep, EmulatedReply, Fault
from pytest_regen.errors import UsageError

_HINT = "correct the file; the shortest script is {version: 1, rules: [{replies: [Hello.]}]}"
_Kind = TypeVar("_Kind", EmulatedReply, BatchStep)


def _reply_in_full(data: Any, info: ValidationInfo) -> Any:
    """Return the fields of a reply: a text is one, and a file beside the script may hold it."""
    if isinstance(data, str):
        return {"text": data}
    if isinstance(data, dict) and "fault" in data and not {"fault", "times"}.issuperset(data):
        raise ValueError("only times stands beside a fault")
    if not isinstance(data, dict) or "file" not in data:
        return data
    if "text" in data:
        raise ValueError("it has both text and file")
    whole = dict(data)
    try:
        whole["text"] = Path(str(info.context), str(whole.pop("file"))).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"its file cannot be read: {error}") from error
    return whole


def _fault_in_full(data: Any, info: ValidationInfo) -> Any:
    """Return the fields of a fault; a bare number is its status."""
    if isinstance(data, int):
        return {"status": data}
    if isinstance(data, dict) and "reply" in data:
        return {**data, "reply": _reply_in_full(data["reply"], info)}
    return data


_Fault = Annotated[Fault, BeforeValidator(_fault_in_full)]


# Subclasses, because whatever a reply or a batch gains can then stand in a file as well.


@dataclass(frozen=True, slots=True)
class _StepData(EmulatedReply):
    times: Annotated[int, Field(ge=1)] = 1
    fault: _Fault | None = None


@dataclass(frozen=True, slots=True)
class _BatchData(BatchStep):
    fault: _Fault | None = None


@dataclass(frozen=True, slots=True)
class _RuleData:
    __pydantic_config__: ClassVar = FORBID
    replies: Annotated[
        list[Annotated[_StepData, BeforeValidator(_reply_in_full)]], Field(min_length=1)
    ]
    match: Match = field(default_factory=Match)
    name: str = ""
    count: Count = "rule"


@dataclass(frozen=True, slots=True)
class _ScriptData:
    __pydantic_config__: ClassVar = FORBID
    version: Literal[1]
    rules: list[_RuleData]
    batches: list[_BatchData] = field(default_factory=list)


def load_script(path: Path) -> Script:
    """Read a script.

    Args:
        path: a YAML file, ``version: 1``; files it names are relative to it.

    Raises:
        UsageError: it cannot be read, or a key or value is wrong, with its place.
    """
    try:
        # As JSON, because pydantic then takes mappings for dataclasses and no 1 for "1".
        data = json.dumps(yaml.safe_load(path.read_text("utf-8")), default=str)
        reader = TypeAdapter(_ScriptData)
        script = reader.validate_json(data, strict=True, context=path.parent)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read the script {path}", why=str(error), hint=_HINT) from error
    except ValidationError as error:
        first = error.errors()[0]
        places = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        place = "".join(places).lstrip(".") or "the file"
        is_unknown = first["type"] == "unexpected_keyword_argument"
        what = "is unknown" if is_unknown else f"is {first['input']!r:.80}: {first['msg']}"
        raise UsageError(f"{path}: {place} {what}", hint=_HINT) from error
    rules = []
    for rule in script.rules:
        steps = [Step(s.fault or _plain(EmulatedReply, s), s.times) for s in rule.replies]
        rules.append(Rule(steps, rule.match, rule.name, rule.count))
    return Script(rules, path=path, batches=[_plain(BatchStep, step) for step in script.batches])


def _plain(kind: type[_Kind], data: _Kind) -> _Kind:
    """Return what was read without the keys that only files have."""
    return kind(**{field.name: getattr(data, field.name) for field in fields(kind)})
