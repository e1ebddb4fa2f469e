"""What it takes to regenerate one page of a large store, beside what cannot be left out.

    python benchmarks/one_page.py

The model answers at once. Each time is of one process: opening, validating and writing the store
once; regenerating one page of it; healing one page of it. Also how many types are validated, and
through how many files of the package a reply goes on its way into the source.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from big_store import make_store
from byte_code import keep_byte_code
from table import print_table

SIZES = (100, 1000)
RUNS = 5


def main() -> None:
    """Print a row per size."""
    keep_byte_code()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            base = Path(folder) / f"store{size}"
            make_store(base, size)
            once, page, heal = (fastest(base, work) for work in ("once", "page", "heal"))
            path = measured(base, "path")
            rows.append(
                (
                    f"{size:,} types",
                    f"{once:.2f} s",
                    f"{page / once:.2f} times",
                    f"{heal / once:.2f} times",
                    f"{path['types']:,}",
                    f"{path['files']}",
                )
            )
    head = (
        "store",
        "open, validate, write once",
        "regenerate one page",
        "heal one page",
        "types validated",
        "files a reply goes through",
    )
    print_table(head, rows)


def fastest(base: Path, work: str) -> float:
    """Return the shortest time of several processes, imports left out."""
    return min(float(measured(base, work)["seconds"]) for _ in range(RUNS))


def measured(base: Path, work: str) -> dict[str, Any]:
    """Do one piece of work on a fresh copy of a store, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        shutil.copytree(base, path)
        command = [sys.executable, __file__, work, str(path)]
        completed = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(completed.stdout)
    return figures


def child(work: str, path: Path) -> dict[str, Any]:
    """Do one piece of work and return what it took."""
    from pytest_regen.regeneration import heal_store, partial_regenerate
    from pytest_regen.stores import RegenStore
    from pytest_regen.turns import CallableProvider
    from pytest_regen.validation import validate_store

    name = "Type50"
    good = RegenStore.open(path).pages_of(name)[0]
    reply = CallableProvider(lambda _messages: f"```csharp\n{good.output}\n// again\n```")

    def once() -> None:
        store = RegenStore.open(path)
        validate_store(store)
        with RegenStore.update(path) as tx:
            page = replace(good, output=f"{good.output}\n// again")
            tx.write(pages=[page], source=f"{store.source}// again\n")

    def page() -> None:
        assert partial_regenerate(path, [name], provider=reply).regenerated

    def heal() -> None:
        from pytest_regen.regeneration import TurnSettings

        result = heal_store(path, settings=TurnSettings(reply), attempts=1)
        assert result.stop_reasons == {name: "clean"}, result

    if work == "heal":
        spoil(path, name)
    if work == "path":
        with path_of_a_reply(reply) as seen:
            page()
        return seen
    start = time.perf_counter()
    {"once": once, "page": page, "heal": heal}[work]()
    return {"seconds": time.perf_counter() - start}


def spoil(path: Path, name: str) -> None:
    """Leave a page with a misspelt field, in this process nobody has read."""
    code = (
        "import sys; from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from pytest_regen.regeneration import partial_regenerate\n"
        "from pytest_regen.stores import RegenStore\n"
        "from pytest_regen.turns import CallableProvider\n"
        "path, name = Path(sys.argv[1]), sys.argv[2]\n"
        "worse = RegenStore.open(path).pages_of(name)[0].output.replace('field_1\"', 'feild_1\"')\n"
        "partial_regenerate(path, [name], provider=CallableProvider(lambda _: worse),"
        " accept_any=True)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path), name], check=True)


@contextmanager
def path_of_a_reply(provider: Any) -> Iterator[dict[str, Any]]:
    """Count the package's files with a frame between the reply and its being stored."""
    from pytest_regen.validation import rules

    package = str(Path(rules.__file__).parents[1])
    seen: dict[str, Any] = {"types": 0, "files": 0}
    files: set[str] = set()
    answered: list[bool] = []

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "return" and code is provider.send.__func__.__code__:
            answered.append(True)
        if event != "call" or not code.co_filename.startswith(package):
            return
        if code is rules.validate_split.__code__:
            seen["types"] += len(frame.f_locals["ir"].types)
        if answered and code.co_name != "<module>":
            files.add(code.co_filename)

    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        seen["files"] = len(files)
        seen["names"] = sorted(name.removeprefix(package) for name in files)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(child(sys.argv[1], Path(sys.argv[2]))))
    else:
        main()
