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
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_regen import errors
from pytest_regen.cli import places
from pytest_regen.cli.operations import StoreWork
from pytest_regen.cli.output import fact
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.selection import PartOptions, PartSelection, select_operations
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Components, Document, Part, read_document
from pytest_regen.extras import needs
from pytest_regen.kinds.catalogues import NEW_CATALOGUE, language_of
from pytest_regen.kinds.functions import source
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.modes import TEMPLATE
from pytest_regen.regeneration import verbs
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.strict_json import json_or_none
from pytest_regen.text import join_names, plural, shorten
from pytest_regen.units.loading import MOST_FILES, files_below
from pytest_regen.units.naming import command
from pytest_regen.units.place import UnitFile

_NEW_LANGUAGE: Final = "python"
"""Of the stores of a project that has none yet."""


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


def find_start(project: Project, name: str, options: StoreOptions, units: Sequence[str]) -> Start:
    """Return what a file is to begin with.

    Args:
        project: around the working directory.
        name: the file, with ``::function`` behind it or not.
        options: of a store; of a catalogue, ``out`` is the one that is to be made.
        units: the functions that are wanted.

    Raises:
        RegenError: it is nothing that can be begun with.
    """
    path = Path(name)
    if "::" in name and not path.exists():
        file, _, unit = name.rpartition("::")
        path, units = Path(file), [unit, *units]
    if not path.is_file() and not (path.suffix == ".po" and glob.has_magic(name)):
        raise errors.UsageError(
            f"there is no file {path}" if not path.is_dir() else f"{path} is a folder",
            hint="name an API description, a Python file or a catalogue of translations; "
            "pytest-regen init alone looks for them",
        )
    if path.suffix == ".py":
        return _find_functions(project, path, units)
    if units:
        raise errors.UsageError(
            f"--unit {units[0]} names a function, and {path} is not a Python file",
            hint="leave the option out",
        )
    if is_catalogue(path):
        return _find_catalogue(project, path, options.out)
    return _find_description(project, path, options)


# Types of an API


def _find_description(project: Project, path: Path, options: StoreOptions) -> Start:
    """Return what a description is to begin with: all its schemas, or the operation that is wanted.

    Raises:
        RegenError: it cannot be read, or nothing of it has a type.
    """
    document = read_document(path)
    is_first = not project.store_globs
    default = _NEW_LANGUAGE if is_first else DEFAULT_LANGUAGE
    language = find_language(options.language or project.settings.language or default).name
    out = options.out or Path("generated")
    stores = [] if options.operation else _stores_of(document, out)
    parts: Sequence[Part] = ()
    title = "is there already"
    how = {"language": language, "force": False, "allow_defects": False}
    work = StoreWork(project, document, PartSelection([]), out, how)
    if not stores:
        if options.operation is not None:
            parts = [document.find(options.operation)]
        elif document.named_schemas:
            parts = [Components()]
        else:
            parts = select_operations(document, PartOptions()).chosen
        work = replace(work, selection=PartSelection(parts))
        settings = TurnOptions(project, provider=options.provider).planning()
        planning = {"dry_run": True, "settings": settings}
        planned = [result.plan for result in work.generate(planning, goes_on=len(parts) > 1).done]
        stores = [plan.path for plan in planned]
        of = str(parts[0])
        if len(parts) > 1:
            of = f"{len(stores):,} operations, a store each, because no schema has a name"
        by = options.provider
        who = "by the template, without a model" if by == TEMPLATE else f"by {by}"
        types = plural(sum(len(plan.ir.types) for plan in planned), "type")
        title = f"{types} of {of}, in {language}, {who}"
    folders = {Path(os.path.relpath(store.parent, project.root)).as_posix() for store in stores}
    # In the root itself, the line would be about every JSON file of the project.
    patterns = [f"{folder}/**/*.json" for folder in sorted(folders) if folder != "."]

    def make(project: Project) -> int:
        if not parts:
            return 0
        turns = TurnOptions(project, provider=options.provider)
        results, _ = replace(work, project=project).ask(turns, many=len(parts) > 1)
        return results.exit_code

    return Start(
        f"{shorten([short_path(store).as_posix() for store in stores])}: {title}",
        {"language": language} if is_first and not project.settings.language else {},
        not parts,
        make,
        attributes=[f"{json.dumps(p) if ' ' in p else p} linguist-generated" for p in patterns],
        stores=stores,
    )


def _stores_of(document: Document, out: Path) -> list[Path]:
    """Return the stores in a folder that were made of a document."""
    stores, file = [], os.path.realpath(document.path)
    for folder in filter(is_store, sorted(out.glob("*/"))):
        # One that cannot be read is what the tests fail with.
        with suppress(errors.RegenError):
            reference = RegenStore.open(folder).ir.document
            # Not Path.resolve, because that raises where links lead to one another.
            if reference and os.path.realpath(folder / reference.path) == file:
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
        tree = source.parse(text)
    except SyntaxError as error:
        place = f"{short_path(path).as_posix()}:{error.lineno}"
        raise errors.UsageError(
            f"{place} is not legal Python", why=error.msg, hint="correct the file"
        ) from None
    # By name, because of overloads, and of a property and its setter, the last one counts.
    functions = dict(source.functions_in(tree.body))
    with_examples = [
        name
        for name, node in functions.items()
        if ">>>" in (ast.get_docstring(node, clean=False) or "")
    ]
    return with_examples, list(functions)


def _find_functions(project: Project, path: Path, units: Sequence[str]) -> Start:
    """Return the functions of a module that are named, or those with examples.

    Raises:
        RegenError: the module cannot be read, has no such function, or does not say which one.
    """
    name = short_path(path).as_posix()
    place = Path(os.path.relpath(path.absolute(), project.root))
    is_of_another = (
        project.kinds.kind_of(path) is not None and project.kinds.kind_to_enclose(path) is None
    )
    if is_of_another or project.kinds.is_collected(PurePosixPath(place.as_posix())):
        raise errors.UsageError(
            f"the functions of {name} cannot be units",
            why="it has units of another kind" if is_of_another else "it is a test module",
            hint="name another file",
        )
    with_examples, every = functions_in(path)
    names = list(units) or with_examples or every
    if not units and not with_examples and len(every) != 1:
        raise errors.UsageError(
            f"{name} has no function{' with examples in its docstring' if every else ''}",
            why=f"it has {shorten(every)}: name those that have a test" if every else "",
            hint=command("init", name, None, "--unit", every[0]) if every else "name another file",
        )
    region, text = source.FunctionRegion(), path.read_bytes().decode("utf-8", "replace")
    enclosed = region.find(text) if "[REGEN:BEGIN" in text else {}
    if new := [name for name in names if name not in enclosed]:
        enclosed = region.find(region.enclose_all(text, new))  # Refused before it is written.
    # A stub is not recorded, because an edit of it is what everybody waits for.
    stubs = [name for name in names if source.is_stub(enclosed[name].text)]
    settings = {}
    is_made = False
    if project.kinds.kind_to_enclose(path) is None:
        folder = place.parent.as_posix()
        settings = {"functions": ["*.py" if folder == "." else f"{glob.escape(folder)}/*.py"]}
    elif project.kinds.kind_of(path) is not None:
        view = project.place(path).open()
        is_made = not new and all(n in stubs or view.author(n).model for n in names)
    recording = "" if len(stubs) == len(names) else ", recorded"
    title = f"marker lines around the code of {join_names(names, 'and')}{recording}"
    if is_made:
        title = f"{shorten(names)}: recorded already"

    def make(project: Project) -> int:
        enclose(project, path, names)
        place = project.place(path)
        view = place.open()
        old = [n for n in names if view.author(n).model or view.ledger.fault(n)]
        new = [n for n in names if n not in {*old, *stubs}]
        recorded = verbs.adopt(place, new).names
        # Opened again, because the first view knows nothing of what was recorded since.
        view = place.open()
        if recorded:
            fact("recorded", f"{plural(len(recorded), 'unit')}: {shorten(recorded)}")
        if stubs:
            fact("to write", f"{plural(len(stubs), 'unit')}: {shorten(stubs)}", "yellow")
        issues = [issue for name in recorded for issue in view.issues(name)]
        places.tell_issues((i for i in issues if i.severity == "error"), place.source)
        places.tell_only_read(project, place, view, recorded)
        return 0  # Because an error in the user's code is what pytest is to fail with.

    following = command("generate", name) if stubs else "pytest"
    return Start(f"{name}: {title}", settings, is_made, make, lambda: following)


def enclose(project: Project, path: Path, names: Sequence[str]) -> None:
    """Put markers around functions that have none yet, so that they become units.

    Raises:
        UsageError: the settings do not name the file.
        SourceError: the file has no such function.
    """
    kinds, path = project.kinds, Path.cwd() / path
    kind, place = kinds.kind_to_enclose(path), kinds.place(kinds.absolute(path))
    if kind is None and kinds.kind_of(path) is None:
        raise errors.UsageError(
            f"{short_path(path)} is not among the files whose functions are gated",
            why="`functions` below [tool.pytest-regen] does not name it",
            hint=command("init", f"{short_path(path).as_posix()}::{names[0]}"),
        )
    if kind is None or place is None:
        return
    with UnitFile(kinds, place, kind, lambda _: ()).update() as update:
        new = update.enclose(names)
    if new:
        fact("marked", f"{plural(len(new), 'function')}: {shorten(new)}")


# Translations


def _find_catalogue(project: Project, path: Path, target: Path | None) -> Start:
    """Return a catalogue and those beside it.

    Args:
        project: that it belongs to.
        path: of the catalogue that is translated from; of gettext, the one that is translated.
        target: another one, which may not be there yet.

    Raises:
        UsageError: there is none beside it.
    """
    name, is_gettext = short_path(path).as_posix(), path.suffix == ".po"
    place = Path(os.path.relpath(path.absolute(), project.root)).as_posix()
    targets, texts = targets_of(place), f"the texts of {place}"
    if not is_gettext and project.kinds.kind_of(path) is not None:
        raise errors.UsageError(
            f"{name} is translated from another catalogue already", hint=command("generate", name)
        )
    if is_gettext:
        with needs("translations", "catalogues of gettext"):
            import polib  # noqa: F401 - before settings are written that need it
        targets, texts = place, "their msgids"
    elif target is not None:
        targets = Path(os.path.relpath(target.absolute(), project.root)).as_posix()
    # The msgids of gettext are English in most projects; its English catalogue is empty.
    excluded = {"en"} if is_gettext else {None, language_of(path)}
    files = [f for f in sorted(project.root.glob(targets)) if language_of(f) not in excluded]
    files = files or ([project.root / targets] if target is not None else [])
    if not files or (is_gettext and target is not None):
        example = Path(targets.replace("*", "de")).as_posix()
        raise errors.UsageError(
            f"no other catalogue stands beside {name}",
            why=f"{targets} matches none with a language in its name",
            hint=NEW_CATALOGUE if is_gettext else command("init", name, None, "--out", example),
        )
    is_made = bool(project.kinds) and all(map(project.kinds.kind_of, files))
    table = {"targets": targets} if is_gettext else {"source": place, "targets": targets}

    def following() -> str:
        project = Project.here()
        for file in files:
            view = project.place(file).open()
            if any(map(view.missing, view.names)):
                return command("generate", short_path(file).as_posix())
        return "pytest"

    title = f"{shorten([short_path(file).as_posix() for file in files])}, from {texts}"
    return Start(
        f"{title}{': set up already' if is_made else ''}",
        {} if is_made else {"translations": [table]},
        is_made,
        lambda _: 0,
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


# Which files a project has

_MOST_SOURCES: Final = 20


def sources(project: Project) -> list[str]:
    """Return descriptions, then modules with examples, then catalogues, as ``init`` takes them."""
    files = list(islice(files_below(Path()), MOST_FILES))
    free = [path for path in files if project.kinds.kind_of(Path.cwd() / path) is None]
    listed = [path.as_posix() for path in files if is_description(path)]
    for path in free:
        if path.suffix == ".py" and not path.match("test_*") and not path.match("*_test.py"):
            # Not all are legal Python of this version, and none has to be.
            with suppress(OSError, errors.RegenError):
                listed += [path.as_posix()] if functions_in(path)[0] else []
    listed += [targets_of(path.as_posix()) for path in free if path.suffix == ".po"][:1]
    for path in free:
        if path.suffix == ".json" and (language_of(path) or "").partition("-")[0] == "en":
            beside = [other for other in path.parent.glob("*.json") if language_of(other)]
            is_used = any(project.kinds.kind_of(other.absolute()) for other in beside)
            listed += [path.as_posix()] if len(beside) > 1 and not is_used else []
    return listed[:_MOST_SOURCES]


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
