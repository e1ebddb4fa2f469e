"""The table of the house: how this package is cut, beside packages that people like to read.

    python benchmarks/house.py [--list] [PACKAGE ...]

A package is the name of an installed one, or its folder; without any, ours beside some good ones.
``--list`` names what was counted in each: functions called by a participle, import cycles. A
cycle counts modules that import each other in any way: at once, in a function, or for types only.
"""

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from table import print_table

DEFAULT = ("pytest_regen", "httpx", "hypothesis", "pluggy")

_IRREGULAR = re.compile(
    "begun|bound|bought|broken|brought|built|caught|chosen|done|drawn|driven|fallen|felt|forgotten|"
    "found|given|gone|gotten|grown|heard|held|hidden|kept|known|laid|learnt|led|left|lent|lost|"
    "made|meant|met|paid|said|seen|sent|shaken|shown|sold|sought|spent|spoken|stood|sworn|taken|"
    "taught|thought|thrown|told|torn|understood|unsaid|untold|won|worn|woven|written"
)
_REGULAR = re.compile(r"\w{3,}ed")
_NOT_PARTICIPLES = re.compile(
    "bleed|breed|creed|embed|exceed|feed|greed|heed|hundred|indeed|need|proceed|speed|succeed"
)

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
    functions: int = 0
    participles: list[str] = field(default_factory=list)
    cycles: list[list[str]] = field(default_factory=list)
    names: int = 0


def main() -> None:
    """Print the table."""
    asked = [arg for arg in sys.argv[1:] if arg != "--list"] or DEFAULT
    houses = {Path(name).name: measure(folder_of(name)) for name in asked}
    rows = [(row, *(cell(house) for house in houses.values())) for row, cell in ROWS.items()]
    print_table(("", *houses), rows)
    if "--list" in sys.argv:
        for name, house in houses.items():
            print(f"\n{name}", *house.participles, *map(" <-> ".join, house.cycles), sep="\n  ")


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
    "functions named by a participle": lambda house: (
        f"{100 * len(house.participles) / house.functions:.1f} %"
    ),
    "noqa": lambda house: str(house.noqa),
    "import cycles": lambda house: str(len(house.cycles)),
}
"""What a row is called, and what it shows of a house."""


def folder_of(name: str) -> Path:
    """Return the folder of an installed package, or the folder itself."""
    folder = Path(name)
    if folder.is_dir():
        return folder.resolve()
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name}: neither a folder nor an installed package")
    return Path(spec.origin).parent


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
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                house.functions += 1
                if begins_with_participle(node.name):
                    house.participles.append(f"{path.relative_to(folder)}: {node.name}")
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


def begins_with_participle(name: str) -> bool:
    """Return whether a function is called by what it returns, as ``checked(value)`` is."""
    word, _, rest = name.strip("_").partition("_")
    if _NOT_PARTICIPLES.fullmatch(word) or (word == "left" and rest):
        return False
    return bool(_IRREGULAR.fullmatch(word) or _REGULAR.fullmatch(word))


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
    found: list[list[str]] = []

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
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in modules:
        if name not in index:
            visit(name)
    return found


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


if __name__ == "__main__":
    main()
