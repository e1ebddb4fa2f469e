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
from pytest_regen.languages.frames import Frame, collect_answers, make_work, read_frame
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
    "types": [],
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
    "noCheck": True,
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
        lacking = [name for name in self._packages if _find_package(folder, name) is None]
        why = sandbox.missing()
        if lacking:
            option = " --save-dev" if lacking[0] == "typescript" else ""
            why = f"the package {lacking[0]} is not installed: npm install{option} {lacking[0]}"
        if _node() is None:
            why = "node is not on the PATH"
        return f"types were only read: {why}" if why else None

    def version(self, folder: Path) -> str:
        """Return the versions of what answers."""
        node = _node()
        state = node.stat() if node else None
        versions = [str(state and (node, state.st_size, state.st_mtime_ns))]
        for name in self._packages:
            package = _find_package(folder, name)
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
        del blocks
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
    names = ", ".join(f"{asked.type.name} as T{at}" for at, asked in enumerate(questions))
    lines = [f'import type {{ {names} }} from "./store"; {_PLAIN}']
    cases: list[tuple[str, str]] = []
    places: list[tuple[int, tuple[str | int, ...]]] = [(-1, ())]
    for at, question in enumerate(questions):
        for text in question.instances:
            keys: list[str | int] = []
            lines.append(f"export const c{len(cases)}: {kind.format(at)} =")
            places.append((len(cases), ()))
            # One value a line, so that the line of an error tells which one is meant.
            for line in json.dumps(json.loads(text), indent=1).split("\n"):
                depth, key = len(line) - len(line.lstrip(" ")), _KEY.match(line)
                keys[depth:] = [json.loads(key[1]) if key else depth]
                lines.append(line)
                places.append((len(cases), tuple(keys[1:])))
            cases.append((question.type.name, text))
    outcome = sandbox.run(
        [*_compiler(folder), "-p", "tsconfig.json"],
        readable=_readable(folder),
        files={
            "store.ts": code.encode("utf-8", "surrogatepass"),
            "cases.ts": "\n".join(lines).encode("utf-8", "surrogatepass"),
            "tsconfig.json": _config(_STRICT, "store.ts", "cases.ts"),
        },
        limits=_limits(questions),
    )
    output = outcome.stdout.decode("utf-8", "replace")
    if outcome.stopped or (outcome.returncode and not _ERROR.search(output)):
        return Answers({}, (RunFault(_why(outcome, "tsc")),))
    refusals: dict[int, Reply] = {}
    faults: list[RunFault] = []
    for file, line, message in _ERROR.findall(output):
        if file == "store":
            faults.append(RunFault(message, line=int(line)))
        else:
            case, path = places[int(line) - 1]
            refusals.setdefault(case, Reply((), message, path))
    if faults:
        return Answers({}, tuple(faults))  # Beside an illegal type tsc may not look at the cases.
    replies: dict[str, list[Reply]] = {question.type.name: [] for question in questions}
    for case, (name, text) in enumerate(cases):
        # Types leave no trace at run time: what was read is what is written.
        replies[name].append(refusals.get(case, Reply((text,))))
    return Answers({name: tuple(answers) for name, answers in replies.items()})


# --- zod -----------------------------------------------------------------------------------------

_PLACE: Final = re.compile(r"store\.ts[:(](\d+)")


def _run_zod(code: str, questions: Sequence[Question], folder: Path) -> Answers:
    """Ask the schemas in one process; the answers before one that ends it count."""
    word = secrets.token_hex(16)
    program = files("pytest_regen") / "languages" / "typescript" / "zod_runner.mjs"
    work = {
        **make_work(word, questions),
        "compiler": [*_compiler(folder), "-p", "tsconfig.json"],
        "packages": str(_find_package(folder, "zod").parent),  # type: ignore[union-attr] # missing
    }
    outcome = sandbox.run(
        [str(_node()), "--enable-source-maps", "run.mjs"],
        stdin=json.dumps(work).encode(),
        readable=_readable(folder),
        files={
            "run.mjs": program.read_bytes(),
            "package.json": b'{"type": "module"}',
            "store.ts": code.encode("utf-8", "surrogatepass"),
            "tsconfig.json": _config(_EMIT, "store.ts"),
        },
        limits=_limits(questions),
    )
    frames: list[Frame] = []
    for line in outcome.report.split(b"\n"):
        frame = read_frame(line, word)
        if frame is None:
            break  # Code that writes to our pipe does not know the word.
        frames.append(frame)
    why = _why(outcome, "node")
    first = frames[0] if frames else {}
    if "loaded" not in first:
        return Answers({}, (_fault(str(first.get("raised", why))),))
    return collect_answers(questions, frames[1:], why=why, read=_reply, fault=_fault)


def _reply(texts: Sequence[object], refusal: str | None, path: Sequence[str | int]) -> Reply:
    return Reply(tuple(map(str, texts)), refusal, tuple(path))


def _fault(text: str, type_name: str | None = None) -> RunFault:
    """Return the fault that the compiler or a traceback tells."""
    place = _PLACE.search(text)
    lines = text.split("\n")
    message = next((line for line in lines if "rror" in line), lines[0])
    message = message.rpartition("error TS")[2].strip()[:1000]
    return RunFault(message, type_name, int(place[1]) if place else None)


# --- programs and packages -----------------------------------------------------------------------


def _node() -> Path | None:
    program = shutil.which("node")
    return Path(program).resolve() if program else None


def _find_package(folder: Path, name: str) -> Path | None:
    """Return the folder of a package: of the project's, or of those that the variable names."""
    above = [parent / "node_modules" for parent in folder.resolve().joinpath("x").parents]
    named = os.environ.get(VARIABLE, "")
    for modules in [*above, *([Path(named)] if named else [])]:
        if (modules / name / "package.json").is_file():
            return modules.resolve() / name
    return None


def _compiler(folder: Path) -> tuple[str, ...]:
    """Return how tsc is called: as a program of its own where the package brings one."""
    package = _find_package(folder, "typescript")
    assert package is not None  # asked before
    real = package.resolve()
    for modules in dict.fromkeys((package.parent, real.parent)):
        for program in sorted(modules.glob("@typescript/typescript-*/lib/tsc")):
            if os.access(program, os.X_OK):
                return (str(program.resolve()),)
    return (str(_node()), str(real / "bin" / "tsc"))


def _readable(folder: Path) -> tuple[Path, ...]:
    """Return the folders with packages, by their real names, and that of node."""
    packages = [_find_package(folder, name) for name in ("typescript", "zod")]
    real = [place for package in packages if package for place in (package, package.resolve())]
    readable = {place.parent for place in real}
    node = _node()
    if node is not None and not node.is_relative_to("/usr"):
        readable.add(node.parent.parent)
    return tuple(sorted(readable))


def _config(options: Mapping[str, Any], *names: str) -> bytes:
    return json.dumps({"compilerOptions": options, "files": names}).encode()


def _limits(questions: Sequence[Question]) -> sandbox.Limits:
    seconds = _SECONDS + len(questions) / _PER_SECOND
    return replace(_LIMITS, seconds=seconds, cpu_seconds=int(seconds))


def _why(outcome: sandbox.Outcome, program: str) -> str:
    if outcome.stopped == "seconds":
        return "it took too long"
    words = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
    return f"{program} ended with exit code {outcome.returncode} {' '.join(words)}"[:500]
