"""The house rules that prose alone would not keep: layers, cycles, doors."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tables import each

PACKAGE = Path(__file__).parents[2] / "pytest_regen"

# A module imports only from lower levels, from inside its own folder, or along a drawn edge.
VALUES = {
    "turns.values": 1,
    "documents.ir": 1,
    "validation.issues": 1,
    "prompts.values": 1,
    "context.conversation": 1,
    "context.questions": 1,
    "context.values": 1,
    "settings": 2,
    "settings_files": 1,
    "units.kind": 2,
}
LEVELS = {
    "behaviour": 3,
    "errors": 0,
    "facade": 0,
    "canonical": 0,
    "github": 2,
    "modes": 0,
    "strict_json": 0,
    "suppressions": 0,
    "text": 0,
    "regions": 1,
    "cache": 1,
    "sandbox": 1,
    "extras": 1,
    "files": 0,
    "store_folders": 1,
    "commit": 1,
    "network": 1,
    "credentials": 1,
    "turns": 2,
    "languages": 2,
    "links": 2,
    "sources": 2,
    "context": 2,
    "documents": 2,
    "prompts": 3,
    "stores": 3,
    "strategies": 3,
    "validation": 3,
    "cassettes": 3,
    "emulator": 3,
    "regeneration": 4,
    "sessions": 4,
    "units": 4,
    "kinds": 5,
    "testing": 5,
    "cli": 6,
    "pytest_plugin": 6,
    "__main__": 7,
}
DRAWN = {
    ("behaviour", "strategies"),
    ("context", "turns"),
    ("sandbox", "cache"),
    ("sources", "languages"),
    ("strategies", "stores"),
    ("strict_json", "errors"),
    ("units", "regeneration"),
    ("validation", "behaviour"),
    ("validation", "stores"),
    ("validation", "strategies"),
}
DOORS = {
    "pytest": ("pytest_plugin", "testing"),
    "_pytest": ("sandbox.examples", "settings_files"),
    "pluggy": ("pytest_plugin",),
    "vcr": ("cassettes.clients.vcr_",),
    "anthropic": ("emulator.shapes", "turns.anthropic"),
    "openai": ("turns.chat_providers",),
    "genai_prices": ("turns.models",),
    "typer": ("cli",),
    "rich": ("cli",),
    "tomlkit": ("cli.config_files",),
    "tree_sitter": ("languages.trees",),
    "tree_sitter_c_sharp": ("languages.csharp.tree",),
    "tree_sitter_typescript": ("languages.typescript.tree",),
    "jinja2": ("pytest_plugin.report_page",),
    "yaml": ("documents", "cassettes", "emulator", "testing"),
    "filelock": (
        "commit",
        "files",
        "stores",
        "turns.batch_files",
        "turns.budget",
        "turns.limits",
        "turns.replies",
        "cassettes",
        "units",
        "validation.behaviour",
    ),
    "h11": ("emulator.server",),
    "hypothesis": ("strategies", "testing"),
    "jsonschema": (
        "emulator.messages",
        "sessions.arguments",
        "strategies.dialects",
        "strategies.violations",
    ),
    "starlette": (),
    "uvicorn": (),
}


def module_of(path: Path) -> str:
    """Return the dotted name below the package, without ``__init__``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(tree: ast.AST, *, types: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield what a module imports, in functions too, and whether only types need it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}"
                path = PACKAGE.parent / Path(*dotted.split("."))
                is_module = path.with_suffix(".py").exists() or path.is_dir()
                yield dotted if is_module else node.module, types
        elif isinstance(node, ast.If):
            is_typing = "TYPE_CHECKING" in {getattr(node.test, name, "") for name in ("id", "attr")}
            yield from imports_of(node, types=types or is_typing)
        elif not isinstance(node, ast.expr):
            yield from imports_of(node, types=types)


@cache
def modules() -> dict[str, ast.Module]:
    """Return the modules of the package, by their names in it."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {module_of(path): ast.parse(path.read_text("utf-8")) for path in paths}


@cache
def all_imports(module: str) -> tuple[tuple[str, bool], ...]:
    """Return what a module of the package imports; see ``imports_of``."""
    return tuple(imports_of(modules()[module]))


def imported(module: str) -> list[str]:
    """Return what a module of the package imports while it runs."""
    return [name for name, is_for_types in all_imports(module) if not is_for_types]


def level(module: str) -> int:
    """Return the level a module stands on."""
    return VALUES.get(module, LEVELS.get(module.split(".", maxsplit=1)[0], -1))


def homeless() -> list[str]:
    """Return the modules that no level of the tables has: add them to LEVELS."""
    return [module for module in modules() if module and level(module) < 0]


def pointing_up() -> list[str]:
    """Return imports that come from no lower level, no own folder and no drawn edge."""
    wrong = []
    for module in filter(None, modules()):
        folder = module.partition(".")[0]
        for name in imported(module):
            package, _, target = name.partition(".")
            other = target.partition(".")[0]
            is_near = folder == other or (folder, other) in DRAWN
            if package == "pytest_regen" and not (is_near or level(target) < level(module)):
                wrong.append(f"{module} imports {name}")
    return wrong


def beside_the_doors() -> list[str]:
    """Return imports of dependencies where the table of doors does not have them."""
    return [
        f"{module} imports {target}"
        for module in modules()
        for target in imported(module)
        if not module.startswith(DOORS.get(target.partition(".")[0], ""))
    ]


def cycles() -> list[str]:
    """Return the ways on which a module comes back to itself, now, later, or in its types."""
    graph = {
        module: {
            target.removeprefix("pytest_regen.")
            for target, _ in all_imports(module)
            if target.startswith("pytest_regen.")
        }
        for module in modules()
    }

    def visit(module: str, trail: tuple[str, ...]) -> list[str]:
        if module in trail:
            return [" -> ".join((*trail[trail.index(module) :], module))]
        if module in done:
            return []
        done.add(module)
        return [
            found for to in sorted(graph.get(module, ())) for found in visit(to, (*trail, module))
        ]

    done: set[str] = set()
    return [found for module in graph for found in visit(module, ())]


@each("broken", [homeless, pointing_up, beside_the_doors, cycles])
def test_the_package_is_built_as_drawn(broken: Callable[[], list[str]]) -> None:
    """Each module has a level, and imports from below and by the doors."""
    assert not broken()
