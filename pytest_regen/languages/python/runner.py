"""Runs generated Python: pydantic loads and dumps what each type is asked about.

Models are asked as their users do, by ``model_validate_json`` and ``model_dump_json``; dataclasses
and typed dicts through ``TypeAdapter``. Whether an invalid instance is refused is asked strictly:
that pydantic makes 12 of ``"12"`` unless it is strict is no fault of a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from platform import python_version
from typing import Final

import pydantic
import pydantic_core

from pytest_regen import sandbox
from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.frames import make_work, read_replies
from pytest_regen.languages.python.reflection import completed
from pytest_regen.languages.python.spelling import kept_constraints, spell_value
from pytest_regen.languages.runner import Answers, Question, Reply, RunFault, Traits

FORMAT: Final = 4
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
_FOREIGN: Final = "its answer is not one of ours"

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
        libraries = f"pydantic {pydantic.VERSION} {pydantic_core.__version__}"
        return f"{FORMAT} python {python_version()}, {libraries}"

    def refuses(
        self, type_: TypeIR, keyword: str, path: Sequence[str | int], value: object
    ) -> bool:
        """Return whether the prompts order what refuses the violation of a keyword."""
        if type_.kind == "enum":
            return keyword in {"type", "coercion", "enum", "nullable"}
        if not path:  # the object itself
            return keyword == "type"
        field = next((field for field in type_.fields if field.json_name == path[0]), None)
        if field is None:
            return False
        spelled = spell_value(field, profile=self.profile)
        limits = kept_constraints(field, self.profile)
        if keyword == "format":
            return len(path) == 1 and spelled in _READ_STRICTLY
        if keyword == "coercion":
            # It is asked strictly; but a decimal takes text all the same, Literal[1] takes True.
            return "type" in limits and "Decimal" not in spelled and "Literal" not in spelled
        if keyword == "nullableItems":
            return True  # Where items may be null, none is made.
        # The IR keeps no limits of items, and a part of the values of an enum has no type.
        is_kept = len(path) == 1 or keyword in {"type", "enum"}
        return is_kept and keyword in limits

    def run(
        self,
        code: str,
        questions: Sequence[Question],
        folder: Path,
        blocks: Mapping[str, tuple[int, int]],
    ) -> Answers:
        """Load the types in one process and ask them; answers before one that ends it count."""
        # The handler runs the source piece by piece, so that the module itself is empty.
        module = sandbox.Module(_MODULE, "", f"{_MODULE}.py")
        handler = (files("pytest_regen") / "languages" / "python" / "handler.py").read_text("utf-8")
        places = sorted((first, last, name) for name, (first, last) in blocks.items())
        work = make_work("", questions)["questions"]
        job = sandbox.Job(module, ({"source": code, "blocks": places}, *work))
        seconds = _SECONDS + (len(questions) + len(blocks)) / _PER_SECOND
        limits = sandbox.Limits(seconds=seconds, cpu_seconds=int(seconds))
        # Behind the handler, because the last assignment counts.
        options = f"\nOPTIONS = {dict(_OPTIONS[self.profile])}\n"
        (result,) = sandbox.ask([job], handler=handler + options, limits=limits)
        loaded, *answers = result.answers
        if loaded is None or not isinstance(loaded.value, dict):
            return Answers({}, (RunFault(result.why or _FOREIGN),))
        around = loaded.value.get("")
        if isinstance(around, dict):
            line = around.get("line")
            fault = RunFault(str(around.get("fault")), line=line if isinstance(line, int) else None)
            return Answers({}, (fault,))
        facts = {
            name: loaded.value[name] for name in blocks if isinstance(loaded.value.get(name), dict)
        }
        replies: dict[str, tuple[Reply, ...]] = {}
        faults: list[RunFault] = []
        for question, answer in zip(questions, answers, strict=True):
            name = question.type.name
            if facts.get(name, {}).keys() & {"blocked", "fault"}:
                continue
            if answer is None:
                faults.append(RunFault(result.why, name))
                break  # Those after it were not asked.
            read = read_replies({"replies": answer.value}, len(question.instances), Reply.of)
            if raised := answer.raised:
                message = f"{raised.type}: {raised.message}".partition("\n")[0]
                faults.append(RunFault(message, name, raised.line, raised.traceback))
            elif read is None:
                faults.append(RunFault(_FOREIGN, name))
            else:
                replies[name] = read
        return Answers(replies, tuple(faults), facts)
