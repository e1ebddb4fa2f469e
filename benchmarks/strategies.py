"""Instances of the types of a real API: how long, beside what else draws them.

    python benchmarks/strategies.py ../shared/specs/discord.openapi-3.1.json --types 20

For each type of a few operations: a hundred instances for the gate, the same from the cache, and
by ``valid`` under ``@given``; beside hypothesis's own ``.example()`` on the same strategy and,
where it is installed and works at all, ``from_schema`` of hypothesis-jsonschema.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from pytest_regen.cache import Cache
from pytest_regen.documents import build_ir, read_document
from pytest_regen.documents.ir import DocumentRef
from pytest_regen.errors import DocumentDefectError
from pytest_regen.languages import find_language
from pytest_regen.strategies.instances import Instances, Source
from pytest_regen.strategies.public import strategy_of

COUNT = 100


def timed(work: Callable[[], object]) -> float:
    """Return the processor time of some work in milliseconds."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def read(cache: Cache, key: str) -> Instances | None:
    """Return what the cache keeps."""
    return Instances.from_json(cache.get("instances", key))


def drawn(strategy: Any) -> None:
    """Draw a hundred values as a test would."""

    @settings(
        max_examples=COUNT,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(_: object) -> None:
        return

    collect()


def by_example(strategy: Any) -> None:
    """Draw a hundred values one by one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(COUNT):
            strategy.example()


def by_other(schema: Any) -> str:
    """Draw a hundred values by hypothesis-jsonschema; return the time, or why there is none."""
    try:
        from hypothesis_jsonschema import from_schema
    except ImportError:
        return "not installed: pip install hypothesis-jsonschema"
    try:
        return f"{timed(lambda: drawn(from_schema(schema))):.0f} ms"
    except Exception as error:  # noqa: BLE001 - whatever it raises is the result
        return f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"


def sources(path: Path, types: int) -> list[tuple[Source, str]]:
    """Return types of a document, from operations all over it."""
    document = read_document(path)
    listed: list[tuple[Source, str]] = []
    for operation in document.operations[:: max(1, len(document.operations) // types)]:
        try:
            ir = build_ir(document, operation, language=find_language("csharp")).ir
        except DocumentDefectError:
            continue
        ir = ir.model_copy(update={"document": DocumentRef(path=path.name, sha256="")})
        like: Any = SimpleNamespace(ir=ir, path=path.parent)
        listed.append((Source(like), ir.types[0].name))
    return listed[:types]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=Path)
    parser.add_argument("--types", type=int, default=20)
    options = parser.parse_args()
    totals = dict.fromkeys(("gate", "cache", "given", "example"), 0.0)
    chosen = sources(options.document, options.types)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        for number, (source, name) in enumerate(chosen):
            totals["gate"] += timed(partial(source.instances, name, COUNT))
            cache.put("instances", str(number), source.instances(name, COUNT).to_json())
            totals["cache"] += timed(partial(read, cache, str(number)))
            strategy = strategy_of(partial(source.plan, name), name)
            totals["given"] += timed(partial(drawn, strategy))
            totals["example"] += timed(partial(by_example, strategy))
    for what, total in totals.items():
        ratio = total / totals["gate"]
        print(f"{what:8} {total / len(chosen):8.1f} ms per type of {COUNT}  {ratio:7.2f} x gate")
    plain = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    print(f"hypothesis-jsonschema on {json.dumps(plain)}: {by_other(plain)}")


if __name__ == "__main__":
    main()
