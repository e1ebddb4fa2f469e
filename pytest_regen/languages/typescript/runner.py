"""Runs generated TypeScript: zod loads and dumps; interfaces are held against literals by tsc.

Node and the packages are those of the project: the folders ``node_modules`` above the store are
searched, then the one that ``REGEN_NODE_MODULES`` names.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pytest_regen import sandbox
from pytest_regen.documents.ir import TypeIR
from pytest_regen.languages.frames import Frame, collect_answers, make_work, read_frame, why_ended
from pytest_regen.languages.runner import Answers, Question, Reply, RunFault, Traits
from pytest_regen.languages.typescript.spelling import kept_constraints
from pytest_regen.strict_json import json_or_none

VARIABLE: Final = "REGEN_NODE_MODULES"
"""Names a folder ``node_modules`` with the packages, where the project has none."""

FORMAT: Final = 2
"""Of the questions; raised when the same code may answer otherwise."""

_SAFE: Final = 2**53 - 1
_SECONDS: Final = 20.0
_PER_SECOND: Final = 5
_LIMITS: Final = sandbox.Limits(
    memory=None,  # both reserve address space by the gigabyte
    processes=128,
    file_size=64 << 20,
    folder_size=256 << 20,
    output=32 << 20,
)
_OPTIONS: Final[Mapping[str, Any]] = {
    "module": "esnext",
    "moduleResolution": "bundler",
    "target": "es2022",
    "types": [],  # because types of other packages might declare what the code lacks
    "skipLibCheck": True,
}
_STRICT: Final = {
    **_OPTIONS,
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "isolatedModules": True,
    "noEmit": True,
}
_EMIT: Final = {
    **_OPTIONS,
    "noCheck": True,  # because schemas are run: what they infer counts for nothing here
    "noResolve": True,
    "inlineSourceMap": True,
    "outDir": "out",
}


@dataclass(frozen=True, slots=True)
class TypeScriptRunner:
    """See ``Runner``."""

    profile: str
    is_rare: bool = False

    @property
    def traits(self) -> Traits:
        """Numbers are doubles; a literal must not have a property that its interface lacks."""
        return Traits(largest_integer=_SAFE, takes_more=self.profile == "zod")

    def missing(self, folder: Path) -> str | None:
        """Return which program or package is not there, and what that means."""
        name = next((name for name in self._packages if _find(folder, name) is None), None)
        option = " --save-dev" if name == "typescript" else ""
        why = sandbox.missing()
        if name is not None:
            why = f"the package {name} is not installed: npm install{option} {name}"
        if not shutil.which("node"):
            why = "node is not on the PATH"
        return f"types were only read: {why}" if why else None

    def version(self, folder: Path) -> str:
        """Return the versions of what answers."""
        node = _node()
        state = node.stat()
        versions = [f"{node} {state.st_size} {state.st_mtime_ns}"]
        for name in self._packages:
            package = _find(folder, name)
            data = json_or_none((package / "package.json").read_bytes()) if package else None
            versions.append(f"{name} {data.get('version') if isinstance(data, dict) else ''}")
        return f"{FORMAT} {', '.join(versions)}"

    @property
    def _packages(self) -> tuple[str, ...]:
        return ("typescript", "zod") if self.profile == "zod" else ("typescript",)

    def refuses(
        self, type_: TypeIR, keyword: str, path: Sequence[str | int], value: object
    ) -> bool:
        """Return whether the prompts order what refuses the violation of a keyword."""
        if keyword == "coercion":
            keyword = "type"  # Nothing is converted.
        if isinstance(value, float) and (self.profile != "zod" or value.is_integer()):
            return False  # To tsc an integer is a number like any other; and 1.0 is 1.
        if type_.kind == "enum":
            return keyword in {"type", "enum", "nullable"}
        if not path:  # the object itself
            return keyword == "type"
        field = next((field for field in type_.fields if field.json_name == path[0]), None)
        if field is None or (len(path) > 1 and keyword not in {"type", "enum"}):
            return False  # Of what is inside an array or a map, types alone are kept.
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
        """Compile the code once and ask all types."""
        run = _run_zod if self.profile == "zod" else _run_interfaces
        return run(code, questions, folder)


# --- interfaces ----------------------------------------------------------------------------------

_ERROR: Final = re.compile(r"^(\w+)\.ts\((\d+),\d+\): error TS\d+: (.*)$", re.MULTILINE)
_KEY: Final = re.compile(r' *("(?:[^"\\]|\\.)*"): ')
_PLAIN: Final = (
    "type Plain<T> = T extends string ? (string extends T ? T : `${T}`)"
    " : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;"
)
"""A type with texts in place of its enums: no literal is assigned to an enum."""


def _run_interfaces(code: str, questions: Sequence[Question], folder: Path) -> Answers:
    """Declare each instance as a constant of its type: those that do not compile are refused."""
    kind = "Plain<T{}>" if re.search(r"\benum\b", code) else "T{}"
    names = ", ".join(f"{question.type.name} as T{at}" for at, question in enumerate(questions))
    lines = [f'import type {{ {names} }} from "./store"; {_PLAIN}']
    places: list[tuple[int, tuple[str | int, ...]]] = [(-1, ())]
    texts = [(at, text) for at, question in enumerate(questions) for text in question.instances]
    for case, (at, text) in enumerate(texts):
        keys: list[str | int] = []
        lines.append(f"export const c{case}: {kind.format(at)} =")
        places.append((case, ()))
        # One value a line, because the line of an error then tells which one is meant.
        for line in json.dumps(json.loads(text), indent=1).split("\n"):
            depth, key = len(line) - len(line.lstrip(" ")), _KEY.match(line)
            keys[depth:] = [json.loads(key[1]) if key else depth]
            lines.append(line)
            places.append((case, tuple(keys[1:])))
    config = {"compilerOptions": _STRICT, "files": ["store.ts", "cases.ts"]}
    sources = {"store.ts": code, "cases.ts": "\n".join(lines), "tsconfig.json": json.dumps(config)}
    outcome = _run(_compiler(folder), sources, questions, folder)
    output = outcome.stdout.decode("utf-8", "replace")
    errors = _ERROR.findall(output)
    if outcome.stopped or (outcome.returncode and not errors):
        return Answers({}, (RunFault(why_ended(outcome, "tsc")),))
    # Beside an illegal type tsc may not look at the cases.
    faults = [RunFault(why, line=int(line)) for file, line, why in errors if file == "store"]
    if faults:
        return Answers({}, tuple(faults))
    refusals: dict[int, Reply] = {}
    for _, line, message in errors:
        case, path = places[int(line) - 1]
        refusals.setdefault(case, Reply((), message, path))
    replies: dict[str, tuple[Reply, ...]] = {question.type.name: () for question in questions}
    for case, (at, text) in enumerate(texts):
        # Types leave no trace at run time: what was read is what is written.
        replies[questions[at].type.name] += (refusals.get(case, Reply((text,))),)
    return Answers(replies)


# --- zod -----------------------------------------------------------------------------------------

_PLACE: Final = re.compile(r"store\.ts[:(](\d+)")


def _run_zod(code: str, questions: Sequence[Question], folder: Path) -> Answers:
    """Ask the schemas in one process; the answers before one that ends it count."""
    word = secrets.token_hex(16)
    program = files("pytest_regen") / "languages" / "typescript" / "zod_runner.mjs"
    work = {
        **make_work(word, questions),
        "compiler": _compiler(folder),
        "packages": str(_find(folder, "zod").parent),  # type: ignore[union-attr] # missing() asked
    }
    sources = {
        "run.mjs": program.read_text("utf-8"),
        "package.json": '{"type": "module"}',
        "store.ts": code,
        "tsconfig.json": json.dumps({"compilerOptions": _EMIT, "files": ["store.ts"]}),
    }
    command = [str(_node()), "--enable-source-maps", "run.mjs"]
    outcome = _run(command, sources, questions, folder, json.dumps(work).encode())
    frames: list[Frame] = []
    for line in outcome.report.split(b"\n"):
        frame = read_frame(line, word)
        if frame is None:
            break  # Code that writes to our pipe does not know the word.
        frames.append(frame)
    why = why_ended(outcome, "node")
    if not frames or "loaded" not in frames[0]:
        raised = frames[0].get("raised", why) if frames else why
        return Answers({}, (_fault(str(raised)),))
    return collect_answers(questions, frames[1:], why=why, read=Reply.of, fault=_fault)


def _fault(text: str, type_name: str | None = None) -> RunFault:
    """Return the fault that the compiler or a traceback tells."""
    place = _PLACE.search(text)
    lines = text.split("\n")
    message = next((line for line in lines if "rror" in line), lines[0])
    message = message.rpartition("error TS")[2].strip()[:1000]
    return RunFault(message, type_name, int(place[1]) if place else None)


# --- programs and packages -----------------------------------------------------------------------


def _node() -> Path:
    """Return the program; where there is none, nothing is run."""
    return Path(shutil.which("node") or os.devnull).resolve()


def _find(folder: Path, name: str) -> Path | None:
    """Return the folder of a package: of the project's, or of those that the variable names."""
    above = [parent / "node_modules" for parent in folder.resolve().joinpath("x").parents]
    variable = os.environ.get(VARIABLE)
    for modules in [*above, *([Path(variable)] if variable else [])]:
        if (modules / name / "package.json").is_file():
            return modules.resolve() / name
    return None


def _compiler(folder: Path) -> list[str]:
    return [str(_node()), f"{_find(folder, 'typescript')}/bin/tsc"]


def _run(
    command: Sequence[str],
    sources: Mapping[str, str],
    questions: Sequence[Question],
    folder: Path,
    stdin: bytes = b"",
) -> sandbox.Outcome:
    """Run a command among some files, which can read the packages and nothing else of the project.

    Args:
        command: its words.
        sources: names and texts of the files.
        questions: what is asked; more may take longer.
        folder: of the store.
        stdin: what the command reads.
    """
    node, packages = _node(), filter(None, (_find(folder, name) for name in ("typescript", "zod")))
    # By their real names too, because package managers put links in place of packages.
    readable = {place.parent for package in packages for place in (package, package.resolve())}
    if not node.is_relative_to("/usr"):
        readable.add(node.parent.parent)
    seconds = _SECONDS + len(questions) / _PER_SECOND
    return sandbox.run(
        command,
        stdin=stdin,
        readable=tuple(sorted(readable)),
        files={name: text.encode("utf-8", "surrogatepass") for name, text in sources.items()},
        limits=replace(_LIMITS, seconds=seconds, cpu_seconds=int(seconds)),
    )
