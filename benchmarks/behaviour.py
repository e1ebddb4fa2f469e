"""What running the types of a store costs: never seen before, changed, one type changed, unchanged.

    python benchmarks/behaviour.py

A Python store of 57 types with 10 fields each, by the template. Each row is the time that
validating takes beyond what reading alone takes, in a fresh process; the last one is what a test
written by hand would take for the same: a process that imports the module, and loads, dumps and
compares the valid instances.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from byte_code import keep_byte_code
from table import print_table

TYPES = 57
RUNS = 5

VALIDATE = """
import sys, time
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store
from pytest_regen.validation.stores import behaviour_of_store
store = RegenStore.open(sys.argv[1])
validate_store(store, behaviour=False)
start = time.perf_counter()
assert len(behaviour_of_store(store).asked) == int(sys.argv[2]), behaviour_of_store(store)
print(time.perf_counter() - start)
"""

BY_HAND = """
import json, sys, time
start = time.perf_counter()
import runpy
from pydantic import TypeAdapter
names = runpy.run_path(sys.argv[1])
for name, instances in json.load(open(sys.argv[2])).items():
    adapter = TypeAdapter(names[name])
    adapter.rebuild(_types_namespace=names)
    for instance in instances:
        value = adapter.validate_json(json.dumps(instance))
        back = json.loads(adapter.dump_json(value, by_alias=True, exclude_unset=True))
        assert back.keys() == instance.keys()
print(time.perf_counter() - start)
"""


def main() -> None:
    """Print the table."""
    keep_byte_code()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        store = _make(root)
        cache = store.parents[1] / ".regen" / "cache"
        source = next(store.glob("*.py"))
        text = source.read_text("utf-8")
        rows = []

        def row(name: str, seconds: float, count: int = TYPES) -> None:
            mean = f"{seconds / count * 1000:.1f} ms"
            rows.append((name, f"{seconds * 1000:.0f} ms", mean))

        def forget(*sections: str) -> None:
            for section in sections:
                shutil.rmtree(cache / section, ignore_errors=True)

        row(
            "never seen: instances are drawn",
            _best(store, lambda: forget("instances", "behaviour")),
        )
        row("all code changed, instances known", _best(store, lambda: forget("behaviour")))
        source.write_text(text, "utf-8")
        count = iter(range(100))

        def change(name: str = "Type7") -> None:
            opening = f"class {name}(ApiModel):\n"
            edited = text.replace(opening, f"{opening}    # {next(count)}\n")
            assert edited != text
            source.write_text(edited, "utf-8")

        row("one type changed, that two others use", _best(store, change), 3)
        row("one type changed, that no other uses", _best(store, partial(change, "Alone")), 1)
        source.write_text(text, "utf-8")
        row("nothing changed", _best(store, lambda: None))
        row("by hand: a process that loads and dumps", _by_hand(root, store, source))
        print_table((f"{TYPES} types of 10 fields", "beyond reading", "per type asked"), rows)


def _make(root: Path) -> Path:
    """Return a store of all schemas."""
    numbers = range(1, TYPES - 1)
    schemas = {f"Type{number}": _schema(number) for number in numbers}
    references = {f"x{n}": {"$ref": f"#/components/schemas/Type{n}"} for n in numbers}
    schemas["Type0"] = {"type": "object", "properties": references}
    schemas["Alone"] = _schema(1)
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Large", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }
    (root / "pyproject.toml").write_text("", "utf-8")
    (root / "large.json").write_text(json.dumps(document), "utf-8")
    words = ["--out", "api", "--language", "python", "--provider", "template"]
    subprocess.run(
        [sys.executable, "-m", "pytest_regen", "generate", "large.json", "--schemas", *words],
        cwd=root,
        check=True,
        capture_output=True,
    )
    return root / "api" / "schemas"


def _schema(number: int) -> dict[str, object]:
    kinds: tuple[dict[str, object], ...] = (
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 0},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "string", "format": "date-time"},
        {"type": "array", "items": {"type": "string"}},
    )
    properties = {f"field_{i}": kinds[i % len(kinds)] for i in range(9)}
    if number % 2 == 0:  # Pairs: a change of one type reaches one other.
        properties["next"] = {"$ref": f"#/components/schemas/Type{number + 1}"}
    return {"type": "object", "required": ["field_0", "field_1"], "properties": properties}


def _best(store: Path, prepare: Callable[[], None]) -> float:
    times = []
    for _ in range(RUNS):
        prepare()
        times.append(_seconds([sys.executable, "-c", VALIDATE, str(store), str(TYPES)]))
    return min(times)


def _by_hand(root: Path, store: Path, source: Path) -> float:
    code = (
        "import json, sys\n"
        "from pytest_regen.strategies import instances_of_store\n"
        "found = instances_of_store(sys.argv[1], 50)\n"
        "print(json.dumps({name: each.valid for name, each in found.items()}))\n"
    )
    drawn = subprocess.run(
        [sys.executable, "-c", code, str(store)], check=True, capture_output=True, text=True
    )
    (root / "instances.json").write_text(drawn.stdout, "utf-8")
    start = time.perf_counter()
    command = [sys.executable, "-c", BY_HAND, str(source), str(root / "instances.json")]
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        _seconds(command)
        times.append(time.perf_counter() - start)
    return min(times)


def _seconds(command: list[str]) -> float:
    completed = subprocess.run(
        command, check=True, capture_output=True, text=True, env=dict(os.environ)
    )
    return float(completed.stdout)


if __name__ == "__main__":
    main()
