"""The table of the house: how this package is cut, beside packages that people like to read.

    python benchmarks/house.py [--list] [PACKAGE ...]
    python benchmarks/house.py --flows [CHECKOUT ...]

A package is the name of an installed one, or its folder; without any, ours beside some good ones.
``--list`` names the import cycles. A cycle counts modules that import each other in any way: at
once, in a function, or for types only. ``--flows`` counts the files and functions of ours that
three flows enter, from the first test on or from the command's first line, in this checkout or in
others: a unit healed, a type healed, a store generated. A module that is imported meanwhile counts.
"""

import ast
import io
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from table import print_table

DEFAULT = ("pytest_regen", "httpx", "hypothesis", "pluggy")

_SMALL = 100
"""Lines of a file below which one more is more to open than to read."""


@dataclass(slots=True)
class House:
    """What was counted in one package."""

    lines: list[int] = field(default_factory=list)
    """Of each file."""
    code: list[int] = field(default_factory=list)
    """Of these, lines that are neither blank nor docstring nor comment."""
    comments: int = 0
    noqa: int = 0
    cycles: list[list[str]] = field(default_factory=list)
    names: int = 0


def main() -> None:
    """Print the table."""
    args = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    if "--flows" in sys.argv:
        print_flows([Path(arg) for arg in args] or [Path(__file__).parents[1]])
        return
    folders = {name: folder_of(name) for name in args or DEFAULT}
    houses = {Path(name).name: measure(folder) for name, folder in folders.items() if folder}
    rows = [(row, *(cell(house) for house in houses.values())) for row, cell in ROWS.items()]
    print_table(("", *houses), rows)
    for name in (name for name, folder in folders.items() if folder is None):
        print(f"\n{name}: neither a folder nor an installed package")
    if "--list" in sys.argv:
        for name, house in houses.items():
            print(f"\n{name}", *map(" <-> ".join, house.cycles), sep="\n  ")


ROWS: dict[str, Callable[[House], str]] = {
    "files": lambda house: str(len(house.lines)),
    "lines": lambda house: f"{sum(house.lines):,}",
    "code lines": lambda house: f"{sum(house.code):,}",
    "median file, lines (code)": lambda house: (
        f"{statistics.median(house.lines):.0f} ({statistics.median(house.code):.0f})"
    ),
    "files below 100 lines": lambda house: str(sum(n < _SMALL for n in house.lines)),
    "comment lines per 100 of code": lambda house: f"{100 * house.comments / sum(house.code):.1f}",
    "public top-level names": lambda house: str(house.names) if house.names else "-",
    "noqa": lambda house: str(house.noqa),
    "import cycles": lambda house: str(len(house.cycles)),
}
"""What a row is called, and what it shows of a house."""


def folder_of(name: str) -> Path | None:
    """Return the folder of an installed package, or the folder itself; ``None`` without one."""
    folder = Path(name)
    if folder.is_dir():
        return folder.resolve()
    spec = find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def measure(folder: Path) -> House:
    """Return the figures of a package."""
    house = House()
    trees = {}
    for path in sorted(folder.rglob("*.py")):
        if "_vendor" in path.parts or "vendor" in path.parts:
            continue
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        trees[path] = tree
        code, comments = lines_of(text, tree)
        house.lines.append(len(text.splitlines()))
        house.code.append(len(code))
        house.comments += comments
        house.noqa += len(re.findall(r"#.*\bnoqa\b", text))
    house.cycles = cycles_of(folder, trees)
    house.names = public_names(folder)
    return house


def lines_of(text: str, tree: ast.Module) -> tuple[set[int], int]:
    """Return the numbers of the lines that hold code, and how many hold nothing but a comment."""
    code: set[int] = set()
    comments: set[int] = set()
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in layout:
            code.update(range(token.start[0], token.end[0] + 1))
    for text_node in ast.walk(tree):
        # Docstrings, those of attributes too.
        if (
            isinstance(text_node, ast.Expr)
            and isinstance(text_node.value, ast.Constant)
            and isinstance(text_node.value.value, str)
        ):
            code.difference_update(range(text_node.lineno, (text_node.end_lineno or 0) + 1))
    return code, len(comments - code)


def cycles_of(folder: Path, trees: dict[Path, ast.Module]) -> list[list[str]]:
    """Return groups of modules that import each other, whether at once, later or for types."""
    modules = {module_name(folder, path): path for path in trees}
    graph = {
        name: set(_imports(trees[path], name, path, modules)) - {name}
        for name, path in modules.items()
    }
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                cycles.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in modules:
        if name not in index:
            visit(name)
    return cycles


def module_name(folder: Path, path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imports(tree: ast.Module, name: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            for alias in node.names:
                dotted = f"{base}.{alias.name}"
                if dotted in modules:
                    yield dotted
                elif base in modules:
                    yield base


def public_names(folder: Path) -> int:
    """Return how many names the package offers at its top."""
    code = f"import {folder.name} as package; print(len(getattr(package, '__all__', ())))"
    result = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=folder.parent,
        capture_output=True,
        text=True,
    )
    return int(result.stdout) if result.returncode == 0 else 0


_TRACER = """
import collections, json, os, sys, threading
target, package = sys.argv.pop(1), sys.argv.pop(1) + os.sep
entered = collections.Counter()
def trace(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package):
        entered[code.co_filename, code.co_qualname] += 1
def start():
    threading.setprofile(trace)
    sys.setprofile(trace)
class Plugin:
    def pytest_runtestloop(self, session):
        start()
try:
    if sys.argv[1] == "pytest":
        import pytest
        pytest.main(sys.argv[2:], plugins=[Plugin()])
    else:
        from pytest_regen.cli.app import main
        start()
        sys.argv.pop(1)
        main()
finally:
    sys.setprofile(None)
    with open(target, "w") as file:
        json.dump([[*key, calls] for key, calls in entered.items()], file)
"""

_FLOWS = {
    "a unit healed": ("functions", "break_one_function(here)", "pytest --regen"),
    "a type healed": ("csharp_dto", "break_one_type(here / demo.STORE)", "pytest --regen"),
    "a store generated": (
        "csharp_dto",
        "COPY",
        "command generate api.yaml 'GET /v1/tides' --provider template --out made",
    ),
}
"""The example, what its demo breaks, and what is run there."""


def print_flows(checkouts: Sequence[Path]) -> None:
    """Print what each flow enters in each checkout, whose package is run from there."""
    rows = []
    for flow, (example, change, command) in _FLOWS.items():
        cells = []
        for checkout in checkouts:
            root = checkout.resolve()
            entered = trace_flow(root, example, change, shlex.split(command))
            files = {file for file, _, _ in entered}
            calls = sum(count for _, _, count in entered)
            cells.append(f"{len(files)} files, {len(entered):,} functions, {calls:,} calls")
        rows.append((flow, *cells))
    print_table(("", *(checkout.resolve().name for checkout in checkouts)), rows)


def trace_flow(
    root: Path, example: str, change: str, command: Sequence[str]
) -> list[tuple[str, str, int]]:
    """Return the file, the function and the calls of all that a flow enters in a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with tempfile.TemporaryDirectory() as folder:
        copy, record = Path(folder, "copy"), Path(folder, "told.json")
        shutil.copytree(root / "examples" / example, copy, ignore=shutil.ignore_patterns("cache"))
        code = f"import demo, pathlib; here = pathlib.Path.cwd(); demo.{change}"
        subprocess.run([sys.executable, "-c", code], cwd=copy, env=environment, check=True)
        traced = [sys.executable, "-c", _TRACER, str(record), str(root / "pytest_regen"), *command]
        subprocess.run(traced, cwd=copy, env=environment, check=False, capture_output=True)
        entered: list[tuple[str, str, int]] = json.loads(record.read_text("utf-8"))
        return entered


if __name__ == "__main__":
    main()
