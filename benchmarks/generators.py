"""Types of whole API descriptions, beside datamodel-code-generator and openapi-typescript.

    python benchmarks/generators.py SPEC…

The others are installed by pip and npm into a temporary folder, which is removed at the end. Each
generator writes the types of all schemas with names. Then the same instances are tried on the types
of the same name: valid ones, which ``pytest_regen.strategies`` draws and ``jsonschema`` allows by
the document, must come back as they were; of invalid ones, each with one thing wrong that the
document forbids, is counted how many are refused. For TypeScript both are literals, and ``tsc`` is
asked whether their types allow them. What a schema says that a generator chose not to keep counts
against it, ours included.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from table import print_table

from pytest_regen.behaviour.same import differences, prune
from pytest_regen.documents.ir import TypeIR, without_aliases
from pytest_regen.languages.runner import Traits
from pytest_regen.stores import RegenStore
from pytest_regen.strategies import Instances, instances_of_store
from pytest_regen.strict_json import strict_loads

TRIP = """
import importlib.util, json, re, sys
from pydantic import TypeAdapter

def plain(name):
    return re.sub(r"[^0-9a-z]", "", name.lower())

spec = importlib.util.spec_from_file_location("types_of_api", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["types_of_api"] = module
spec.loader.exec_module(module)
names = {plain(name): value for name, value in vars(module).items()}
work = json.load(sys.stdin)
answers = {}
for name, texts in work.items():
    type_ = names.get(plain(name))
    if type_ is None:
        continue
    try:
        adapter = TypeAdapter(type_)
    except Exception:
        continue
    answers[name] = []
    for text in texts:
        try:
            value = adapter.validate_json(text)
            dumped = adapter.dump_json(value, by_alias=True, exclude_unset=True).decode()
        except Exception:
            dumped = None
        answers[name].append(dumped)
json.dump(answers, sys.stdout)
"""
"""Loads and dumps each instance, as the pages of both generators tell their users to."""

OPTIONS = {
    "strict": True,
    "noEmit": True,
    "skipLibCheck": True,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": [],
}


@dataclass
class Tally:
    """What one generator made of one document."""

    seconds: float = 0.0
    megabytes: int = 0
    failure: str = ""
    types: int = 0
    """Schemas with instances that it has a type for."""
    sound: int = 0
    """Of them, those that every valid instance comes back from, or is allowed by."""
    refused: int = 0
    invalid: int = 0

    def cells(self, count: int) -> list[str]:
        """Return the cells of a row."""
        if self.failure:
            cells = [f"fails: {self.failure}", f"0 of {count}", "-"]
        else:
            cells = ["works", f"{self.sound} of {count}", f"{self.refused} of {self.invalid}"]
        return [*cells, f"{self.seconds:.1f}", str(self.megabytes)]


@dataclass
class Tools:
    """The programs of a run."""

    folder: Path
    count: int
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ, "NO_COLOR": "1"})

    @property
    def datamodel_codegen(self) -> list[str]:
        """The other generator of Python."""
        return [str(self.folder / "python" / "bin" / "datamodel-codegen")]

    def npm(self, program: str) -> str:
        """Return a program that npm installed."""
        return str(self.folder / "node" / "node_modules" / ".bin" / program)

    def install(self) -> None:
        """Install what is compared with."""
        python = self.folder / "python"
        subprocess.run([sys.executable, "-m", "venv", python], check=True)
        pip = [str(python / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        # Its models of e-mail addresses import what this extra brings.
        subprocess.run([*pip, "datamodel-code-generator", "pydantic[email]"], check=True)
        (self.folder / "node").mkdir()
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "node"]
        # It names TypeScript 5 as what it works with.
        packages = ["openapi-typescript", "typescript@5"]
        subprocess.run([*npm, *packages], check=True, cwd=self.folder)

    def measured(self, argv: Sequence[str], cwd: Path | None = None) -> Tally:
        """Run a generator; return its time and memory, and what went wrong in a line."""
        begin = time.perf_counter()
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                argv, stdout=output, stderr=subprocess.STDOUT, env=self.environment, cwd=cwd
            )
            # Not Popen.wait, because only wait4 tells the memory of this one child.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - begin
            output.seek(0)
            failure = self.failure(output.read()) if process.returncode else ""
        return Tally(seconds, usage.ru_maxrss // 1024, failure)

    def call(self, argv: Sequence[str], **options: Any) -> tuple[str, str]:
        """Run a program; return what went wrong in a line, and what it printed."""
        completed = subprocess.run(
            argv, capture_output=True, text=True, env=self.environment, check=False, **options
        )
        failure = self.failure(completed.stderr or completed.stdout) if completed.returncode else ""
        return failure, completed.stdout

    @staticmethod
    def failure(printed: str) -> str:
        """Return the line that tells why a program ended."""
        lines = [line for line in printed.splitlines() if line.strip()]
        # Programs end a traceback, or begin one, with what it is about.
        telling = [line for line in lines if re.search(r"(?i)error|not supported", line)]
        [failure] = (telling or lines or ["no reason"])[-1:]
        return failure.strip()[:80]

    def ours(self, spec: Path, language: str, project: Path) -> tuple[Tally, Path]:
        """Generate with the template, the types not run: that is measured apart."""
        project.mkdir(parents=True)
        (project / "pyproject.toml").write_text('[tool.pytest-regen]\nbehaviour = "off"\n', "utf-8")
        words = ["--schemas", "--language", language, "--provider", "template", "--out", "api"]
        argv = [sys.executable, "-m", "pytest_regen", "generate", str(spec), *words]
        tally = self.measured(argv, cwd=project)
        # Warnings of a store end the command with 1: its types are there all the same.
        stores = [path.parent for path in project.glob("api/**/ir.json")]
        if stores:
            tally.failure = ""
        return tally, stores[0] if stores else project


def schema_name(type_: TypeIR) -> str | None:
    """Return the name that a schema has in its document; ``None``: it stands inside another."""
    start, _, name = type_.schema_id.rpartition("/")
    return name if start in {"#/components/schemas", "#/definitions"} else None


def asked(
    store: RegenStore, types: Mapping[str, TypeIR], count: int
) -> dict[str, tuple[TypeIR, Instances]]:
    """Return the schemas with names that have instances, by the name in the document."""
    drawn = instances_of_store(store.path, count)
    return {
        name: (type_, drawn[type_.name])
        for type_ in types.values()
        if (name := schema_name(type_)) and drawn[type_.name].valid
    }


def try_python(
    tools: Tools,
    module: Path,
    subjects: Mapping[str, tuple[TypeIR, Instances]],
    types: Mapping[str, TypeIR],
    tally: Tally,
) -> None:
    """Load and dump all instances with the types of a module."""
    work = {
        name: [json.dumps(value) for value in [*drawn.valid, *(v.instance for v in drawn.invalid)]]
        for name, (_, drawn) in subjects.items()
    }
    argv = [str(tools.folder / "python" / "bin" / "python"), "-c", TRIP, str(module)]
    tally.failure, printed = tools.call(argv, input=json.dumps(work))
    if tally.failure:
        return
    for name, texts in json.loads(printed).items():
        type_, drawn = subjects[name]
        valid, invalid = texts[: len(drawn.valid)], texts[len(drawn.valid) :]
        tally.types += 1
        tally.sound += all(
            text is not None
            and not [
                *differences(
                    value,
                    strict_loads(text, decimals=True),
                    type_,
                    types,
                    Traits(keeps_offset=False),
                )
            ]
            for value, text in zip(drawn.valid, valid, strict=True)
        )
        tally.refused += sum(text is None for text in invalid)
        tally.invalid += len(invalid)


def try_typescript(
    tools: Tools,
    folder: Path,
    head: str,
    subjects: Mapping[str, tuple[str, Instances]],
    tally: Tally,
) -> None:
    """Ask ``tsc`` about each instance as a literal; its line tells which it refuses."""
    lines, places = [head], []
    for name, (spelled, drawn) in subjects.items():
        for is_valid, value in [
            *((True, value) for value in drawn.valid),
            *((False, violation.instance) for violation in drawn.invalid),
        ]:
            places.append((name, is_valid))
            lines.append(f"{{ const it: {spelled} = {json.dumps(value)}; void it; }}")
    (folder / "cases.ts").write_text("\n".join([*lines, "export {};"]), "utf-8")
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}), "utf-8")
    failure, printed = tools.call([tools.npm("tsc"), "-p", "."], cwd=folder)
    messages = [line for line in printed.splitlines() if not line.startswith(("cases.ts(", " "))]
    if messages or (failure and not printed):
        tally.failure = (messages or [failure])[0][:80]
        return
    first = head.count("\n") + 2
    wrong = {
        int(line.partition("(")[2].partition(",")[0]) - first
        for line in printed.splitlines()
        if line.startswith("cases.ts(")
    }
    faulty = {places[at][0] for at in wrong if places[at][1]}
    tally.types = len(subjects)
    tally.sound = len(subjects) - len(faulty)
    tally.refused = sum(not places[at][1] for at in wrong)
    tally.invalid = sum(not is_valid for _, is_valid in places)


def compare(tools: Tools, spec: Path) -> list[list[str]]:
    """Return the rows of one document."""
    place = tools.folder / spec.stem
    ours, theirs = place / "ours", place / "theirs"
    # Before anything is tried, because a child is told to have the memory of its parent at least.
    python, path = tools.ours(spec, "python", place / "ours-python")
    typescript, typed_path = tools.ours(spec, "typescript", place / "ours-typescript")
    ours.mkdir()
    theirs.mkdir()
    words = ["--input", str(spec), "--input-file-type", "openapi", "--output", "models.py"]
    words += ["--output-model-type", "pydantic_v2.BaseModel"]
    their_python = tools.measured([*tools.datamodel_codegen, *words], cwd=theirs)
    words = [tools.npm("openapi-typescript"), str(spec), "--output", "api.d.ts"]
    their_typescript = tools.measured(words, cwd=theirs)

    store = RegenStore.open(path)
    types = without_aliases(store.ir.types)
    subjects = asked(store, types, tools.count)
    if not python.failure:
        try_python(tools, Path(store.source_path), subjects, types, python)
    if not their_python.failure:
        try_python(tools, theirs / "models.py", subjects, types, their_python)

    typed = RegenStore.open(typed_path)
    # A literal may not have what its type does not name, though a value of the type may.
    literals = {
        name: replace(drawn, valid=tuple(prune(value, type_, types) for value in drawn.valid))
        for name, (type_, drawn) in subjects.items()
    }
    named = {
        name: (f"api.{type_.name}", literals[name])
        for type_ in typed.ir.types
        if (name := schema_name(type_)) in subjects and name
    }
    (ours / "api.ts").write_text(typed.source, "utf-8")
    if not typescript.failure:
        try_typescript(tools, ours, 'import type * as api from "./api";', named, typescript)
    spelled = {
        name: (f"components['schemas'][{json.dumps(name)}]", drawn)
        for name, drawn in literals.items()
    }
    if not their_typescript.failure:
        head = 'import type { components } from "./api";'
        try_typescript(tools, theirs, head, spelled, their_typescript)
    tallies = {
        "pytest-regen, Python": python,
        "datamodel-code-generator": their_python,
        "pytest-regen, TypeScript": typescript,
        "openapi-typescript": their_typescript,
    }
    return [[spec.name, name, *tally.cells(len(subjects))] for name, tally in tallies.items()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", nargs="+", type=Path, help="API descriptions")
    parser.add_argument("--count", type=int, default=20, help="valid instances (default: 20)")
    options = parser.parse_args()
    # A large document takes minutes; its rows are shown when they are there.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(Path(folder), options.count)
        tools.install()
        head = ("document", "generator", "", "types sound", "invalid refused", "seconds", "MB")
        # A process for each document, because its memory counts for the programs that it starts.
        spawn = get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
            specs = [spec.resolve() for spec in options.spec]
            print_table(
                head, (row for rows in pool.map(compare, repeat(tools), specs) for row in rows)
            )


if __name__ == "__main__":
    main()
