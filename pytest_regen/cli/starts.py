"""What a project can begin with: types of an API, functions of a module, or translations.

Each is found without writing anything, says which settings it needs, and is made when asked to.
"""

import ast
import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_regen.cli.operations import StoreWork
from pytest_regen.cli.output import fact, say
from pytest_regen.cli.project import Project, short_path
from pytest_regen.cli.selection import PartSelection
from pytest_regen.cli.turns import TurnOptions
from pytest_regen.documents import Components, Document, Part, read_document
from pytest_regen.errors import DocumentUnreadableError, RegenError, UsageError
from pytest_regen.extras import needs
from pytest_regen.kinds.catalogues import FORMATS, NEW_CATALOGUE
from pytest_regen.kinds.functions.source import FunctionRegion, parse
from pytest_regen.kinds.tongues import language_of
from pytest_regen.kinds.translation import Translation
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.modes import TEMPLATE
from pytest_regen.regeneration import GenerateResult, generate_store
from pytest_regen.stores import RegenStore, is_store
from pytest_regen.strict_json import json_or_none
from pytest_regen.text import join_names, plural, shorten
from pytest_regen.units.naming import command
from pytest_regen.validation.stores import stale_types, update_command

_LEDGER: Final = (".regen/** linguist-generated", ".regen/hand/** merge=union")
"""Of ``.gitattributes``: no review shows what is recorded, and lines of two branches all stay."""

NEW_LANGUAGE: Final = "python"
"""Of the stores of a project that has none yet."""

_NAMED: Final = 12
"""Functions that a command names at most."""

_TRIED: Final = 200
"""Operations that are looked into before a document counts as having none that can be read."""

Choose = Callable[[str, Sequence[str]], int]
"""Returns which of several a person wants; the first one where nobody is asked."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is to be made."""

    operation: str | None = None
    language: str | None = None
    out: Path = Path("generated")
    provider: str = TEMPLATE


# Types of an API


@dataclass(frozen=True)
class Description:
    """Types of one operation of an API."""

    project: Project
    document: Document
    part: Part
    plan: GenerateResult | None
    """What there is to do; ``None`` where stores of the description are there."""
    stores: Sequence[Path]
    options: StoreOptions
    language: str
    is_first: bool
    """Whether the project has no store yet."""

    @property
    def is_made(self) -> bool:
        """Whether there is a store that is as the description wants it."""
        return self.plan is None or self.plan.is_current

    @property
    def title(self) -> str:
        """The folder, what is in it, and who writes it."""
        folder = shorten([short_path(path).as_posix() for path in self.stores])
        if self.is_made or self.plan is None:
            return f"{folder}: is there already"
        by = self.options.provider
        who = "by the template, without a model" if by == TEMPLATE else f"by {by}"
        types = plural(len(self.plan.ir.types), "type")
        return f"{folder}: {types} of {self.part}, in {self.language}, {who}"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The language, where this is the first store."""
        return {"language": self.language} if self.is_first else {}

    @property
    def attributes(self) -> Sequence[str]:
        """That no review shows the JSON of the stores."""
        folders = dict.fromkeys(
            Path(os.path.relpath(store.parent, self.project.root)).as_posix()
            for store in self.stores
        )
        # In the root itself, the line would be about every JSON file of the project.
        patterns = [f"{folder}/**/*.json" for folder in folders if folder != "."]
        quoted = [json.dumps(text) if " " in text else text for text in patterns]
        return [f"{text} linguist-generated" for text in quoted]

    def make(self, project: Project) -> int:
        """Generate the store."""
        if self.is_made:
            return 0
        from pytest_regen.cli.store_report import result_json, show_result

        turns = TurnOptions(project, provider=self.options.provider)
        work = StoreWork(
            project,
            self.document,
            PartSelection([self.part]),
            self.options.out,
            {"language": self.language, "force": False, "allow_defects": False},
        )
        last: list[GenerateResult] = []
        with turns.run("generating") as (_, settings):
            results = work.generate(
                {"settings": settings, "attempts": turns.replies(), "discard_edits": False},
                goes_on=False,
                show=last.append,
                describe=result_json,
            )
        for result in last:
            show_result(result, None, turns)
        return results.exit_code

    @cached_property
    def outdated(self) -> Sequence[Path]:
        """The stores whose types the description has changed."""
        return [path for path in self.stores if is_store(path) and _is_outdated(path)]

    def following(self) -> str:
        """Return the command that runs the tests, or brings an older store up to date before."""
        if self.is_made and self.outdated:
            return update_command(RegenStore.open(self.outdated[0]))
        return "pytest"


def _is_outdated(path: Path) -> bool:
    try:
        return bool(stale_types(RegenStore.open(path)))
    except RegenError:
        return False  # The tests fail with it.


def _find_description(
    project: Project, path: Path, options: StoreOptions, choose: Choose
) -> Description:
    """Return the first operation of a description that can be read, or the one that is wanted.

    Raises:
        RegenError: it cannot be read, or nothing of it has a type.
    """
    document = read_description(path)
    is_first = not project.store_globs
    default = NEW_LANGUAGE if is_first else DEFAULT_LANGUAGE
    language = options.language or project.settings.language or default
    language = find_language(language).name
    is_new = is_first and project.settings.language is None

    def found(part: Part, plan: GenerateResult | None, stores: Sequence[Path]) -> Description:
        return Description(
            project, document, part, plan, stores, options, language, is_first=is_new
        )

    def planned(part: Part) -> Description:
        plan = generate_store(document, part, options.out, language=language, dry_run=True)
        return found(part, plan, [plan.path])

    if options.operation is not None:
        return planned(document.find(options.operation))
    if there := [*_stores_of(document, options.out)]:
        return found(Components(), None, there)
    # What is read comes first: it is what most clients begin with.
    operations = sorted(document.operations, key=lambda each: each.method != "GET")
    parts: list[Part] = [each for each in operations if each.is_answered_in_json]
    if not parts and not document.named_schemas:
        raise UsageError(
            f"{short_path(path)} has nothing to begin with",
            why="no operation is answered with JSON, and no schema has a name",
            hint="name another description",
        )
    if not parts:
        parts = [Components()]
    first = choose("Which operation first?", [str(part) for part in parts])
    if first:
        return planned(parts[first])
    failure: RegenError | None = None
    for part in parts[:_TRIED]:
        try:
            return planned(part)
        except RegenError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def read_description(path: Path) -> Document:
    """Return the API description in a file.

    Raises:
        DocumentUnreadableError: it is none; of a file that may be a catalogue, which ones are read.
    """
    try:
        return read_document(path)
    except DocumentUnreadableError as error:
        is_yaml = path.suffix in {".yaml", ".yml"}
        if path.suffix == ".json" or not path.is_file() or (is_yaml and not language_of(path)):
            raise
        reason = f"{error.why}; " if is_yaml else ""
        raise DocumentUnreadableError(
            f"{short_path(path)} is neither an API description nor a catalogue that is read",
            why=f"{reason}descriptions are JSON or YAML, catalogues are {FORMATS}",
            hint="convert the file, or describe it in a kind of your own: pytest-regen init --help",
        ) from None


def _stores_of(document: Document, out: Path) -> Iterator[Path]:
    """Yield the stores in a folder that were made of a document."""
    for folder in sorted(out.glob("*/")):
        if not is_store(folder):
            continue
        try:
            reference = RegenStore.open(folder).ir.document
        except RegenError:
            continue
        if reference and (folder / reference.path).resolve() == document.path.resolve():
            yield folder


# Functions


@dataclass(frozen=True)
class Functions:
    """Functions of a module, which get markers and are recorded as they stand."""

    project: Project
    path: Path
    place: str
    """From the root of the project."""
    names: Sequence[str]

    stores: Sequence[Path] = ()
    outdated: Sequence[Path] = ()
    attributes: Sequence[str] = _LEDGER

    @property
    def title(self) -> str:
        """The functions, and what becomes of them."""
        here = short_path(self.path).as_posix()
        if self.is_made:
            return f"{here}: {shorten(self.names)}: recorded already"
        return f"{here}: marker lines around the code of {join_names(self.names, 'and')}, recorded"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The modules of the folder, unless the file is named already."""
        if self.project.kinds.kind_to_enclose(self.path) is not None:
            return {}
        folder = Path(self.place).parent.as_posix()
        return {"functions": ["*.py" if folder == "." else f"{glob.escape(folder)}/*.py"]}

    @property
    def is_made(self) -> bool:
        """Whether all of them are recorded."""
        if self.settings or self.project.kinds.kind_of(self.path) is None:
            return False
        file = self.project.unit_file(self.path)
        units = file.open() if file else None
        return units is not None and all(
            name in units.texts and units.entry(name) is not None for name in self.names
        )

    def make(self, project: Project) -> int:
        """Put the markers around them, and record them."""
        from pytest_regen.cli.places import (
            FileHere,
            enclose_in_file,
            only_read,
            tell_issues,
        )

        enclose_in_file(project, self.path, self.names)
        file = project.unit_file(self.path)
        assert file is not None
        units = file.open()
        new = [n for n in self.names if not (units.entry(n) or units.ledger.fault(n))]
        kept = FileHere(file).adopt(new)
        names = [entry["name"] for entry in kept.report["adopted"]]
        if names:
            fact("recorded", f"{plural(len(names), 'unit')}: {shorten(names)}")
        tell_issues(kept.issues, file.here)
        for line in only_read(file.open(), names):
            say(*line)
        return 0  # It is set up; an error in the user's code is what pytest is to fail with.

    def following(self) -> str:
        """Return the command that runs their tests."""
        return "pytest"


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
        raise UsageError(
            f"{place} is not legal Python", why=error.msg, hint="correct the file"
        ) from None
    good: list[str] = []
    every: list[str] = []

    def visit(body: Sequence[ast.stmt], outer: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{outer}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}{node.name}"
                every.append(name)
                if ">>>" in (ast.get_docstring(node, clean=False) or ""):
                    good.append(name)

    visit(tree.body, "")
    # Of overloads, and of a property and its setter, the last one counts.
    return [*dict.fromkeys(good)], [*dict.fromkeys(every)]


def _find_functions(
    project: Project, path: Path, wanted: Sequence[str], choose: Choose
) -> Functions:
    """Return the functions of a module that are named, or those with examples.

    Raises:
        RegenError: the module cannot be read, has no such function, or does not say which one.
    """
    here = short_path(path).as_posix()
    place = Path(os.path.relpath(path.absolute(), project.root)).as_posix()
    if place.startswith("../"):
        raise UsageError(
            f"{here} is not in the project",
            why=f"its root is {project.root}",
            hint="name a file below it, or run the command in the project of that file",
        )
    if project.kinds.is_collected(PurePosixPath(place)):
        raise UsageError(
            f"{here} is a test module",
            why="what is imported by a run of pytest is not judged by it",
            hint="pytest-regen init FILE, with the module that it tests",
        )
    if project.kinds.kind_of(path) is not None and project.kinds.kind_to_enclose(path) is None:
        raise UsageError(
            f"{here} has units of another kind",
            why='one of the "kinds" in [tool.pytest-regen] claims it',
            hint="narrow the globs of that kind, or name another file",
        )
    good, every = functions_in(path)
    region, text = FunctionRegion(), path.read_bytes().decode("utf-8", "replace")
    if wanted:
        names = list(wanted)
    elif len(good) > 1:
        chosen = choose("Which function?", [f"all {len(good)} with examples", *good])
        names = [good[chosen - 1]] if chosen else good
    else:
        names = good or every
    if not wanted and not good and len(every) != 1:
        able = [name for name in every[:_NAMED] if _can_stand_apart(region, text, name)]
        words = [word for name in able for word in ("--unit", name)]
        what = "no function" if not every else "no function with examples in its docstring"
        raise UsageError(
            f"{here} has {what}",
            why=f"it has {shorten(every)}: name those that have a test" if every else "",
            hint=command("init", here, None, *words) if able else "name another file",
        )
    there = region.find(text) if "[REGEN:BEGIN" in text else {}
    if new := [name for name in names if name not in there]:
        try:
            region.enclose_all(text, new)  # Refused before anything is written.
        except RegenError as error:
            raise UsageError(f"{here}: {error.what}", why=error.why, hint=error.hint) from None
    return Functions(project, path, place, names)


def _can_stand_apart(region: FunctionRegion, text: str, name: str) -> bool:
    try:
        return bool(region.enclose_all(text, [name]))
    except RegenError:
        return False


# Translations


@dataclass(frozen=True)
class Catalogue:
    """A catalogue, and those of other languages."""

    project: Project
    place: str
    """Of the source, from the root of the project."""
    targets: str
    """Path or glob of the others."""
    files: Sequence[Path]
    """The others."""

    stores: Sequence[Path] = ()
    outdated: Sequence[Path] = ()
    attributes: Sequence[str] = _LEDGER

    @property
    def is_made(self) -> bool:
        """Whether the settings name it."""
        return not self.settings

    @property
    def title(self) -> str:
        """What is translated into what."""
        others = shorten([short_path(file).as_posix() for file in self.files])
        there = ": set up already" if self.is_made else ""
        source = "their msgids" if self.is_gettext else f"the texts of {self.place}"
        return f"{others}, from {source}{there}"

    @property
    def is_gettext(self) -> bool:
        """Whether its texts stand in each of the others, as msgids."""
        return self.place.endswith(".po")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The source and its targets, unless the source is named already."""
        if self.is_gettext:
            kinds = self.project.kinds
            is_claimed = all(bool(kinds) and kinds.kind_of(file) is not None for file in self.files)
            return {} if is_claimed else {"translations": [{"targets": self.targets}]}
        for one in self.project.kinds.kinds if self.project.kinds else ():
            kind = one.kind
            if isinstance(kind, Translation) and kind.source == self.project.root / self.place:
                return {}
        return {"translations": [{"source": self.place, "targets": self.targets}]}

    def make(self, project: Project) -> int:
        """Say what is missing: the settings are all there is to write."""
        missing = {path: names for path in self.files if (names := _missing(project, path))}
        for file, names in missing.items():
            fact("missing", f"{plural(len(names), 'text')} of {short_path(file)}")
        return 0

    def following(self) -> str:
        """Return the command that asks for what is missing; the tests, if nothing is."""
        for path in self.files:
            if _missing(Project.here(), path):
                return command("generate", short_path(path).as_posix())
        return "pytest"


def _missing(project: Project, path: Path) -> list[str]:
    file = project.unit_file(path)
    units = file.open() if file else None
    return [
        name
        for name in (units.names if units else ())
        if any(issue.code == "MISSING_UNIT" for issue in units.issues(name))  # type: ignore[union-attr]
    ]


def _find_catalogue(project: Project, path: Path, target: Path | None) -> Catalogue:
    """Return a catalogue and those beside it.

    Args:
        project: that it belongs to.
        path: of the catalogue that is translated from.
        target: another one, which may not be there yet.

    Raises:
        UsageError: there is none beside it.
    """
    place = Path(os.path.relpath(path.absolute(), project.root)).as_posix()
    kind = project.kinds.kind_of(path)
    is_gettext = path.suffix == ".po"
    if not is_gettext and isinstance(kind, Translation) and kind.source.resolve() != path.resolve():
        raise UsageError(
            f"{short_path(path)} is a target of {short_path(kind.source)} already",
            why="a catalogue that is translated is not translated from",
            hint=command("generate", short_path(path).as_posix()),
        )
    if is_gettext:
        with needs("translations", "catalogues of gettext"):
            import polib  # noqa: F401 - before settings are written that need it
    if is_gettext and target is not None:
        raise UsageError(f"--out {target}: gettext makes its catalogues itself", hint=NEW_CATALOGUE)
    if target is not None:
        targets = Path(os.path.relpath(target.absolute(), project.root)).as_posix()
        files = [project.root / targets]
        if language_of(files[0]) is None:
            raise UsageError(
                f"--out {target} has no language in its name",
                hint=f"name it like {path.name}, with another language: de, fr, pt-BR",
            )
    else:
        takes_beside = not is_gettext or language_of(path) == "en"
        targets = targets_of(place) if takes_beside else place
        found = [place]
        if takes_beside or not path.is_file():
            found = sorted(glob.glob(targets, root_dir=project.root, recursive=True))  # noqa: PTH207 - from the root
        left_out = {"en"} if is_gettext else {None, language_of(path)}  # that of msgids
        files = [project.root / name for name in found if language_of(Path(name)) not in left_out]
    if not files:
        here, other = short_path(path), Path(targets.replace("*", "de"))
        make = command("init", here.as_posix(), None, "--out", other.as_posix())
        raise UsageError(
            f"no other catalogue stands beside {here}",
            why=f"{targets} matches none with a language in its name",
            hint=NEW_CATALOGUE if is_gettext else make,
        )
    return Catalogue(project, place, targets, files)


def targets_of(place: str) -> str:
    """Return the glob of catalogues like one: its path with ``*`` for the language."""
    path = Path(place)
    if path.parent.name == "LC_MESSAGES":
        return (path.parents[2] / "*" / "LC_MESSAGES" / path.name).as_posix()
    tag = language_of(path) or ""
    spelled = rf"(?<![A-Za-z]){re.escape(tag).replace('-', '[-_]')}(?![A-Za-z])"
    for name, rest in ((path.name, path.parent), (path.parent.name, path.parent.parent)):
        made, count = re.subn(spelled, "*", name.removesuffix(path.suffix) or name)
        if count == 1:
            if name == path.name:
                return (rest / f"{made}{path.suffix}").as_posix()
            return (rest / made / path.name).as_posix()
    return (path.parent / f"*{path.suffix}").as_posix()


# Which of them a file is

Start = Description | Functions | Catalogue
"""One thing to begin with: what it needs, whether that is there, and what makes it."""


def find_start(
    project: Project,
    source: str,
    *,
    options: StoreOptions,
    units: Sequence[str],
    out: Path | None,
    choose: Choose,
) -> Start:
    """Return what a file is to begin with.

    Args:
        project: around the working directory.
        source: the file, with ``::function`` behind it or not.
        options: of a store.
        units: the functions that are wanted.
        out: as it was given: for a catalogue the one that is to be made.
        choose: asks a person where there are several.

    Raises:
        RegenError: it is nothing that can be begun with.
    """
    path = Path(source)
    if "::" in source and not path.exists():
        named, _, name = source.rpartition("::")
        path, units = Path(named), [name, *units]
    if re.match(r"https?://", source):
        raise UsageError(
            f"{source} is an address, not a file",
            why="what is generated depends on a file that is under version control",
            hint=f"curl -fsSL -o api.json {source}, then pytest-regen init api.json",
        )
    if not path.is_file() and not (path.suffix == ".po" and glob.has_magic(source)):
        raise UsageError(
            f"there is no file {path}" if not path.is_dir() else f"{path} is a folder",
            hint="name an API description, a Python file or a catalogue of translations; "
            "pytest-regen init alone looks for them",
        )
    if path.suffix == ".py":
        return _find_functions(project, path, units, choose)
    if units:
        raise UsageError(
            f"--unit {units[0]} names a function, and {path} is no Python file",
            hint="leave the option out",
        )
    if is_catalogue(path):
        return _find_catalogue(project, path, out)
    return _find_description(project, path, options, choose)


_OF_DESCRIPTIONS: Final = {"openapi", "swagger", "$schema", "$defs", "definitions", "$ref"}


def is_catalogue(path: Path) -> bool:
    """Return whether a file is a catalogue by its name, and not a description by what it holds."""
    if path.suffix in {".arb", ".po"}:
        return True
    if path.suffix != ".json" or language_of(path) is None:
        return False
    data = json_or_none(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    return isinstance(data, dict) and not data.keys() & _OF_DESCRIPTIONS
