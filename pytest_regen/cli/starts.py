"""What a project can begin with: types of an API, functions of a module, or translations.

Each is found without writing anything, says which settings it needs, and is made when asked to.
"""

import ast
import glob
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_regen import errors
from pytest_regen.cli import places
from pytest_regen.cli.operations import StoreResults, StoreWork
from pytest_regen.cli.output import fact
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.selection import PartOptions, PartSelection, select_operations
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Components, Document, Part, read_document
from pytest_regen.extras import needs
from pytest_regen.kinds.catalogues import FORMATS, NEW_CATALOGUE
from pytest_regen.kinds.functions.source import FunctionRegion, parse
from pytest_regen.kinds.tongues import language_of
from pytest_regen.kinds.translation import Translation
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.modes import TEMPLATE
from pytest_regen.regeneration import verbs
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.strict_json import json_or_none
from pytest_regen.text import join_names, plural, shorten
from pytest_regen.units.naming import command
from pytest_regen.units.place import UnitFile

_NEW_LANGUAGE: Final = "python"
"""Of the stores of a project that has none yet."""

Choose = Callable[[str, Sequence[str]], int]
"""Returns which of several a person wants; the first one where nobody is asked."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is to be made."""

    operation: str | None
    language: str | None
    out: Path | None
    """Of a catalogue, the one that is to be made."""
    provider: str


@dataclass(frozen=True)
class Start:
    """One thing to begin with: what it needs, whether that is there, and what makes it."""

    title: str
    settings: Mapping[str, Any]
    """What it adds to ``[tool.pytest-regen]``, beside the globs of its stores."""
    is_made: bool
    make: Callable[[Project], int]
    """Makes it in the project as it is to be; returns the exit code."""
    following: Callable[[], str] = lambda: "pytest"
    """Returns the command to run once it is there."""
    attributes: Sequence[str] = (".regen/** linguist-generated", ".regen/hand/** merge=union")
    """Lines of ``.gitattributes``: a review shows nothing that is recorded, and lines that two
    branches add to what people wrote by hand all stay."""
    stores: Sequence[Path] = ()


# Types of an API


def _find_description(project: Project, path: Path, options: StoreOptions) -> Start:
    """Return what a description is to begin with: all its schemas, or the operation that is wanted.

    Raises:
        RegenError: it cannot be read, or nothing of it has a type.
    """
    document = read_description(path)
    is_first = not project.store_globs
    default = _NEW_LANGUAGE if is_first else DEFAULT_LANGUAGE
    name = options.language or project.settings.language or default
    language = find_language(name).name
    out = options.out or Path("generated")
    how = {"language": language, "force": False, "allow_defects": False}
    work = StoreWork(project, document, PartSelection([]), out, how)
    stores = [] if options.operation else _stores_of(document, out)
    types = 0
    if not stores:
        work, results = _plan(work, options)
        stores = [result.plan.path for result in results.done]
        types = sum(len(result.plan.ir.types) for result in results.done)
    parts = work.selection.chosen

    what = "is there already"
    if parts:
        of = str(parts[0])
        if len(parts) > 1:
            of = f"{len(parts):,} operations, a store each, because no schema has a name"
        by = options.provider
        who = "by the template, without a model" if by == TEMPLATE else f"by {by}"
        what = f"{plural(types, 'type')} of {of}, in {language}, {who}"
    folders = {Path(os.path.relpath(store.parent, project.root)).as_posix() for store in stores}
    # In the root itself, the line would be about every JSON file of the project.
    patterns = [f"{folder}/**/*.json" for folder in sorted(folders) if folder != "."]

    def make(project: Project) -> int:
        if not parts:
            return 0
        turns = TurnOptions(project, provider=options.provider)
        results, _ = replace(work, project=project).ask(turns)
        return results.exit_code

    return Start(
        f"{shorten([short_path(store).as_posix() for store in stores])}: {what}",
        {"language": language} if is_first and not project.settings.language else {},
        not parts,
        make,
        attributes=[f"{json.dumps(p) if ' ' in p else p} linguist-generated" for p in patterns],
        stores=stores,
    )


def _plan(work: StoreWork, options: StoreOptions) -> tuple[StoreWork, StoreResults]:
    """Return what there is to make: an operation, else the schemas, else all operations.

    Raises:
        RegenError: the description is broken, or nothing of it has a type.
    """
    settings = TurnOptions(work.project, provider=options.provider).planning()

    def plan(parts: Sequence[Part]) -> tuple[StoreWork, StoreResults]:
        chosen = replace(work, selection=PartSelection(parts))
        planning = {"dry_run": True, "settings": settings}
        results = chosen.generate(planning, goes_on=len(parts) > 1)
        endpoints = [
            result.plan.ir.endpoint for result in results.done if not result.plan.is_current
        ]
        names = {f"{endpoint.method} {endpoint.path}" for endpoint in endpoints}
        # Of many, those that can be made; others were told of.
        able = [part for part in parts if len(parts) == 1 or str(part) in names]
        return replace(work, selection=PartSelection(able if names else [])), results

    document = work.document
    if options.operation is not None:
        return plan([document.find(options.operation)])
    if document.named_schemas:
        try:
            return plan([Components()])
        except errors.NothingToGenerateError:
            pass  # They are plain values; types stand in the operations.
        except errors.DocumentDefectError as error:
            words = ("--schemas", "--allow-defects", "--provider", TEMPLATE)
            again = command("generate", short_path(document.path).as_posix(), None, *words)
            raise errors.UsageError(
                error.what, why=error.why, hint=f"correct it, or {again}"
            ) from None
    return plan(select_operations(document, PartOptions()).chosen)


def read_description(path: Path) -> Document:
    """Return the API description in a file.

    Raises:
        DocumentUnreadableError: it is none; of a file that may be a catalogue, which ones are read.
    """
    try:
        return read_document(path)
    except errors.DocumentUnreadableError as error:
        is_yaml = path.suffix in {".yaml", ".yml"}
        if path.suffix == ".json" or not path.is_file() or (is_yaml and not language_of(path)):
            raise
        reason = f"{error.why}; " if is_yaml else ""
        raise errors.DocumentUnreadableError(
            f"{short_path(path)} is neither an API description nor a catalogue that is read",
            why=f"{reason}descriptions are JSON or YAML, catalogues are {FORMATS}",
            hint="convert the file, or describe it in a kind of your own: pytest-regen init --help",
        ) from None


def _stores_of(document: Document, out: Path) -> list[Path]:
    """Return the stores in a folder that were made of a document."""
    stores = []
    for folder in filter(is_store, sorted(out.glob("*/"))):
        # One that cannot be read is what the tests fail with.
        with suppress(errors.RegenError):
            reference = RegenStore.open(folder).ir.document
            if reference and (folder / reference.path).resolve() == document.path.resolve():
                stores.append(folder)
    return stores


# Functions


def functions_in(path: Path) -> tuple[list[str], list[str]]:
    """Return the functions and methods of a module whose docstrings have examples, and all.

    Raises:
        UsageError: it is not legal Python.
    """
    text = path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        tree = parse(text)
    except SyntaxError as error:
        place = f"{short_path(path).as_posix()}:{error.lineno}"
        raise errors.UsageError(
            f"{place} is not legal Python", why=error.msg, hint="correct the file"
        ) from None
    # By name, because of overloads, and of a property and its setter, the last one counts.
    with_examples: dict[str, None] = {}
    names: dict[str, None] = {}

    def visit(body: Sequence[ast.stmt], outer: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{outer}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names[f"{outer}{node.name}"] = None
                if ">>>" in (ast.get_docstring(node, clean=False) or ""):
                    with_examples[f"{outer}{node.name}"] = None

    visit(tree.body, "")
    return [*with_examples], [*names]


def _refuse_module(project: Project, path: Path, name: str, place: str) -> None:
    """Raise a UsageError for a module whose functions no kind could claim."""
    if place.startswith("../"):
        raise errors.UsageError(
            f"{name} is not in the project",
            why=f"its root is {project.root}",
            hint="name a file below it, or run the command in the project of that file",
        )
    if project.kinds.is_collected(PurePosixPath(place)):
        raise errors.UsageError(
            f"{name} is a test module",
            why="what is imported by a run of pytest is not judged by it",
            hint="pytest-regen init FILE, with the module that it tests",
        )
    if project.kinds.kind_of(path) is not None and project.kinds.kind_to_enclose(path) is None:
        raise errors.UsageError(
            f"{name} has units of another kind",
            why='one of the "kinds" in [tool.pytest-regen] claims it',
            hint="narrow the globs of that kind, or name another file",
        )


def _find_functions(project: Project, path: Path, units: Sequence[str], choose: Choose) -> Start:
    """Return the functions of a module that are named, or those with examples.

    Raises:
        RegenError: the module cannot be read, has no such function, or does not say which one.
    """
    name = short_path(path).as_posix()
    place = Path(os.path.relpath(path.absolute(), project.root)).as_posix()
    _refuse_module(project, path, name, place)
    with_examples, every = functions_in(path)
    region, text = FunctionRegion(), path.read_bytes().decode("utf-8", "replace")
    names = list(units) or with_examples or every
    if not units and len(with_examples) > 1:
        number = choose("Which function?", [f"all {len(names)} with examples", *names])
        names = names[number - 1 : number] if number else names
    elif not units and not with_examples and len(every) != 1:
        raise errors.UsageError(
            f"{name} has no function{' with examples in its docstring' if every else ''}",
            why=f"it has {shorten(every)}: name those that have a test" if every else "",
            hint=command("init", name, None, "--unit", every[0]) if every else "name another file",
        )
    enclosed = region.find(text) if "[REGEN:BEGIN" in text else {}
    if new := [name for name in names if name not in enclosed]:
        try:
            region.enclose_all(text, new)  # Refused before anything is written.
        except errors.RegenError as error:
            raise errors.UsageError(
                f"{name}: {error.what}", why=error.why, hint=error.hint
            ) from None
    settings = {}
    units_of_file = None
    if project.kinds.kind_to_enclose(path) is None:
        folder = Path(place).parent.as_posix()
        settings = {"functions": ["*.py" if folder == "." else f"{glob.escape(folder)}/*.py"]}
    elif project.kinds.kind_of(path) is not None:
        units_of_file = project.place(path).open()
    is_made = units_of_file is not None and all(
        units_of_file.output(name, 1) is not None and units_of_file.author(name).model
        for name in names
    )
    title = f"marker lines around the code of {join_names(names, 'and')}, recorded"
    if is_made:
        title = f"{shorten(names)}: recorded already"
    return Start(f"{name}: {title}", settings, is_made, partial(_make_functions, path, names))


def _make_functions(path: Path, names: Sequence[str], project: Project) -> int:
    """Put the markers around functions, and record them."""
    enclose(project, path, names)
    place = project.place(path)
    view = place.open()
    new = [name for name in names if not (view.author(name).model or view.ledger.fault(name))]
    recorded = verbs.adopt(place, new).names
    view = place.open()
    if recorded:
        fact("recorded", f"{plural(len(recorded), 'unit')}: {shorten(recorded)}")
    issues = [issue for name in recorded for issue in view.issues(name)]
    places.tell_issues((i for i in issues if i.severity == "error"), place.source)
    places.tell_only_read(place, view, recorded)
    return 0  # Because an error in the user's code is what pytest is to fail with.


def only_function(project: Project, path: Path) -> list[str] | None:
    """Return the one function of a module without markers; ``None`` of any other file."""
    real = Path.cwd() / path
    if project.kinds.kind_to_enclose(real) is None or project.kinds.kind_of(real) is not None:
        return None
    try:
        every = functions_in(path)[1]
    except errors.RegenError:
        return None  # Said where the file is opened.
    return every if len(every) == 1 else None


def enclose(project: Project, path: Path, names: Sequence[str]) -> None:
    """Put markers around functions that have none yet, so that they become units.

    Raises:
        UsageError: the settings do not name the file.
        SourceError: the file has no such function.
    """
    kinds, path = project.kinds, Path.cwd() / path
    kind, place = kinds.kind_to_enclose(path), kinds.place(kinds.absolute(path))
    if kind is None and kinds.kind_of(path) is None:
        listed = project.settings.shipped.get("functions")
        files = [*listed, place] if isinstance(listed, list) else [place]
        raise errors.UsageError(
            f"{short_path(path)} is not among the files whose functions are gated",
            why=f"it takes `functions = {json.dumps(files)}` below [tool.pytest-regen] in "
            f"{short_path(project.root / 'pyproject.toml')}",
            hint=command("init", f"{short_path(path).as_posix()}::{names[0]}"),
        )
    if kind is None or place is None:
        return
    with UnitFile(kinds, place, kind).update() as update:
        new = update.enclose(names)
    if new:
        fact("marked", f"{plural(len(new), 'function')}: {shorten(new)}")


# Translations


def translated(project: Project) -> set[Path]:
    """Return the catalogues that others are translated from, as the settings name them."""
    kinds = [loaded.kind for loaded in project.kinds.kinds] if project.kinds else []
    return {kind.source for kind in kinds if isinstance(kind, Translation)}


def _missing(project: Project, path: Path) -> list[str]:
    place = project.find_place(path)
    view = place.open() if place else None
    return [name for name in view.names if view.missing(name)] if view else []


def _refuse_target(path: Path, target: Path | None) -> None:
    """Raise a RegenError for a catalogue that cannot be made, or not be read here."""
    if path.suffix == ".po":
        with needs("translations", "catalogues of gettext"):
            import polib  # noqa: F401 - before settings are written that need it
        if target is not None:
            raise errors.UsageError(
                f"--out {target}: gettext makes its catalogues itself", hint=NEW_CATALOGUE
            )
    if target is not None and language_of(target) is None:
        raise errors.UsageError(
            f"--out {target} has no language in its name",
            hint=f"name it like {path.name}, with another language: de, fr, pt-BR",
        )


def _find_catalogue(project: Project, path: Path, target: Path | None) -> Start:
    """Return a catalogue and those beside it.

    Args:
        project: that it belongs to.
        path: of the catalogue that is translated from.
        target: another one, which may not be there yet.

    Raises:
        UsageError: there is none beside it.
    """
    name = short_path(path).as_posix()
    place = Path(os.path.relpath(path.absolute(), project.root)).as_posix()
    kind = project.kinds.kind_of(path)
    is_gettext = path.suffix == ".po"
    if not is_gettext and isinstance(kind, Translation) and kind.source.resolve() != path.resolve():
        raise errors.UsageError(
            f"{name} is a target of {short_path(kind.source)} already",
            why="a catalogue that is translated is not translated from",
            hint=command("generate", name),
        )
    _refuse_target(path, target)
    if target is not None:
        targets = Path(os.path.relpath(target.absolute(), project.root)).as_posix()
        files = [project.root / targets]
    else:
        takes_beside = not is_gettext or language_of(path) == "en" or not path.is_file()
        targets = targets_of(place) if takes_beside else place
        # The msgids of gettext are English in most projects; its English catalogue is empty.
        excluded = {"en"} if is_gettext else {None, language_of(path)}
        matches = sorted(project.root.glob(targets)) if takes_beside else [project.root / place]
        files = [match for match in matches if language_of(match) not in excluded]
    if not files:
        example = Path(targets.replace("*", "de")).as_posix()
        raise errors.UsageError(
            f"no other catalogue stands beside {name}",
            why=f"{targets} matches none with a language in its name",
            hint=NEW_CATALOGUE if is_gettext else command("init", name, None, "--out", example),
        )
    if is_gettext:
        is_made = bool(project.kinds) and all(map(project.kinds.kind_of, files))
        source, table = "their msgids", {"targets": targets}
    else:
        is_made = project.root / place in translated(project)
        source, table = f"the texts of {place}", {"source": place, "targets": targets}

    def make(project: Project) -> int:
        for file in files:
            if names := _missing(project, file):
                fact("missing", f"{plural(len(names), 'text')} of {short_path(file)}")
        return 0

    def following() -> str:
        lacking = (file for file in files if _missing(Project.here(), file))
        file = next(lacking, None)
        return command("generate", short_path(file).as_posix()) if file else "pytest"

    title = f"{shorten([short_path(file).as_posix() for file in files])}, from {source}"
    return Start(
        f"{title}{': set up already' if is_made else ''}",
        {} if is_made else {"translations": [table]},
        is_made,
        make,
        following,
    )


def targets_of(place: str) -> str:
    """Return the glob of catalogues like one: its path with ``*`` for the language."""
    path = Path(place)
    if path.parent.name == "LC_MESSAGES":
        return (path.parents[2] / "*" / "LC_MESSAGES" / path.name).as_posix()
    tag = language_of(path) or ""
    spelled = rf"(?<![A-Za-z]){re.escape(tag).replace('-', '[-_]')}(?![A-Za-z])"
    stem, in_name = re.subn(spelled, "*", path.stem)
    folder, in_folder = re.subn(spelled, "*", path.parent.name)
    if in_name != 1 and in_folder == 1:
        return (path.parent.parent / folder / path.name).as_posix()
    return (path.parent / f"{stem if in_name == 1 else '*'}{path.suffix}").as_posix()


# Which of them a file is


def find_start(
    project: Project, source: str, options: StoreOptions, units: Sequence[str], choose: Choose
) -> Start:
    """Return what a file is to begin with.

    Args:
        project: around the working directory.
        source: the file, with ``::function`` behind it or not.
        options: of a store; of a catalogue, ``out`` is the one that is to be made.
        units: the functions that are wanted.
        choose: asks a person where there are several.

    Raises:
        RegenError: it is nothing that can be begun with.
    """
    path = Path(source)
    if "::" in source and not path.exists():
        file, _, name = source.rpartition("::")
        path, units = Path(file), [name, *units]
    if re.match(r"https?://", source):
        raise errors.UsageError(
            f"{source} is an address, not a file",
            why="what is generated depends on a file that is under version control",
            hint=f"curl -fsSL -o api.json {source}, then pytest-regen init api.json",
        )
    if not path.is_file() and not (path.suffix == ".po" and glob.has_magic(source)):
        raise errors.UsageError(
            f"there is no file {path}" if not path.is_dir() else f"{path} is a folder",
            hint="name an API description, a Python file or a catalogue of translations; "
            "pytest-regen init alone looks for them",
        )
    if path.suffix == ".py":
        return _find_functions(project, path, units, choose)
    if units:
        raise errors.UsageError(
            f"--unit {units[0]} names a function, and {path} is no Python file",
            hint="leave the option out",
        )
    if is_catalogue(path):
        return _find_catalogue(project, path, options.out)
    return _find_description(project, path, options)


_HEAD: Final = 4_096
_DESCRIPTION: Final = re.compile(rb"""^\s*\{?\s*["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)
_OF_DESCRIPTIONS: Final = {"openapi", "swagger", "$schema", "$defs", "definitions", "$ref"}


def is_catalogue(path: Path) -> bool:
    """Return whether a file is a catalogue by its name, and not a description by what it holds."""
    if path.suffix in {".arb", ".po"}:
        return True
    if path.suffix != ".json" or language_of(path) is None:
        return False
    data = json_or_none(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    return isinstance(data, dict) and not data.keys() & _OF_DESCRIPTIONS


def is_description(path: Path) -> bool:
    """Return whether the head of a file says that it describes an API."""
    if path.suffix not in {".json", ".yaml", ".yml"} or not path.is_file():
        return False  # A pipe would be waited for.
    try:
        with path.open("rb") as file:
            return _DESCRIPTION.search(file.read(_HEAD)) is not None
    except OSError:
        return False
