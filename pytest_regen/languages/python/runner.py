"""Runs generated Python: pydantic loads and dumps what each type is asked about.

Models are asked as their users do, by ``model_validate_json`` and ``model_dump_json``; dataclasses
and typed dicts through ``TypeAdapter``. Whether an invalid instance is refused is asked strictly:
that pydantic makes 12 of ``"12"`` unless it is strict is no fault of a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from platform import python_version
from typing import Any, Final

from pytest_regen import sandbox
from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.python.reflection import completed
from pytest_regen.languages.python.spelling import kept_constraints, spell_value
from pytest_regen.languages.runner import Answers, Question, Reply, RunFault, Traits

FORMAT: Final = 3
"""Of the questions; raised when the same code may answer otherwise."""

_OPTIONS: Final[Mapping[str, Mapping[str, bool]]] = {
    "default": {"by_alias": True, "exclude_unset": True},
    "dataclass": {"by_alias": True, "exclude_defaults": True},
    "typeddict": {},
}
"""How a profile says that values are dumped."""

_SECONDS: Final = 10.0
_PER_SECOND: Final = 5
"""Types that answer within a second, at the very least."""
_MODULE: Final = "generated"

_READ_STRICTLY: Final = {"dt.datetime": "date-time", "dt.date": "date", "UUID": "uuid"}
"""Types that stand for a format, and refuse other texts."""


@dataclass(frozen=True, slots=True)
class PythonRunner:
    """See ``Runner``."""

    profile: str
    is_rare: bool = False

    @property
    def traits(self) -> Traits:
        """What values of the code can hold: the base class of models keeps what has no field."""
        return Traits(keeps_more=self.profile == "default", complete=completed)

    def missing(self, folder: Path) -> str | None:
        """Return why no process can be started; pydantic is always there."""
        return sandbox.missing()

    def version(self, folder: Path) -> str:
        """Return the versions of what answers."""
        return f"{FORMAT} {_versions()}"

    def refuses(
        self, type_: TypeIR, keyword: str, path: Sequence[str | int], value: object
    ) -> bool:
        """Return whether the prompts order what refuses the violation of a keyword."""
        del value
        if type_.kind == "enum":
            return keyword in {"type", "coercion", "enum", "nullable"}
        if not path:  # the object itself
            return keyword == "type"
        field = next((field for field in type_.fields if field.json_name == path[0]), None)
        if field is None:
            return False
        spelled = spell_value(field, profile=self.profile)
        if keyword == "format":
            return len(path) == 1 and spelled in _READ_STRICTLY
        if keyword == "coercion":
            # It is asked strictly; but a decimal takes text all the same, Literal[1] takes True.
            return "type" in kept_constraints(field, self.profile) and not (
                "Decimal" in spelled or "Literal" in spelled
            )
        if len(path) > 1 and keyword not in {"type", "enum"}:
            return False  # The IR keeps no limits of items.
        if keyword == "enum" and "enum" in field.constraints:
            return False  # A part of the values of an enum has no type of its own.
        return keyword in kept_constraints(field, self.profile)

    def run(
        self,
        code: str,
        questions: Sequence[Question],
        folder: Path,
        blocks: Mapping[str, tuple[int, int]],
    ) -> Answers:
        """Load the types in one process and ask them; answers before one that ends it count."""
        # The source is run piece by piece by the handler: the module itself is empty.
        module = sandbox.Module(_MODULE, "", f"{_MODULE}.py")
        handler = f"{_handler()}\nOPTIONS = {dict(_OPTIONS[self.profile])}\n"
        places = sorted((first, last, name) for name, (first, last) in blocks.items())
        load = {"source": code, "blocks": places}
        job = sandbox.Job(module, (load, *map(_as_json, questions)))
        seconds = _SECONDS + (len(questions) + len(blocks)) / _PER_SECOND
        limits = sandbox.Limits(seconds=seconds, cpu_seconds=int(seconds))
        (result,) = sandbox.ask([job], handler=handler, limits=limits)
        loaded, *answers = result.answers
        if loaded is None or loaded.raised is not None:
            why = result.why or "its answer is not one of ours"
            return Answers({}, (RunFault(why),))
        facts, outside = _read_facts(loaded.value, blocks)
        if outside is not None:
            return Answers({}, (outside,))
        replies: dict[str, tuple[Reply, ...]] = {}
        faults: list[RunFault] = []
        for question, answer in zip(questions, answers, strict=True):
            name = question.type.name
            if facts.get(name, {}).keys() & {"blocked", "fault"}:
                continue
            if answer is None:
                faults.append(RunFault(result.why, name))
                break  # Those after it were not asked.
            read = _read_replies(answer.value, len(question.instances))
            if answer.raised is not None:
                faults.append(_fault(answer.raised, name))
            elif read is None:
                faults.append(RunFault("its answer is not one of ours", name))
            else:
                replies[name] = read
        return Answers(replies, tuple(faults), facts)


def _read_facts(
    value: Any, names: Iterable[str]
) -> tuple[dict[str, Mapping[str, Any]], RunFault | None]:
    """Return what each type is, and why what stands around them cannot be loaded."""
    told = value if isinstance(value, dict) else {}
    around = told.get("")
    if isinstance(around, dict):
        line = around.get("line")
        fault = RunFault(str(around.get("fault")), line=line if isinstance(line, int) else None)
        return {}, fault
    return {name: told[name] for name in names if isinstance(told.get(name), dict)}, None


@cache
def _handler() -> str:
    return (files("pytest_regen") / "languages" / "python" / "handler.py").read_text("utf-8")


@cache
def _versions() -> str:
    return f"python {python_version()}, pydantic {version('pydantic')} {version('pydantic-core')}"


def _as_json(question: Question) -> dict[str, Any]:
    return {
        "type": question.type.name,
        "members": list(question.members.values()),
        "instances": list(question.instances),
    }


def _read_replies(value: Any, count: int) -> tuple[Reply, ...] | None:
    """Return the replies in an answer, if they are what the handler sends."""
    if not isinstance(value, list) or len(value) != count:
        return None
    try:
        return tuple(
            Reply(tuple(map(str, texts)), refusal, tuple(path), str(members))
            for texts, refusal, path, members in value
        )
    except (TypeError, ValueError):
        return None


def _fault(raised: sandbox.Raised, type_name: str | None = None) -> RunFault:
    message = f"{raised.type}: {raised.message}".partition("\n")[0]
    return RunFault(message, type_name, raised.line, raised.traceback)
