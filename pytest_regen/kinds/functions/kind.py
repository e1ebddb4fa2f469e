"""The kind itself: functions of a project, each written by a model between its markers."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_regen.errors import SandboxError, SourceError
from pytest_regen.kinds.functions import prompts
from pytest_regen.kinds.functions.examples import Examples, Verdicts, run_all
from pytest_regen.kinds.functions.guard import compare_code, find_cheats, weakness_issue
from pytest_regen.kinds.functions.lint import check_code, used_units
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import FunctionRegion, ModuleSource, is_stub, read_module
from pytest_regen.kinds.functions.special_cases import find_answers
from pytest_regen.regions.base import decode
from pytest_regen.settings import Rule, check_table, is_globs, is_names, wrong_value
from pytest_regen.units.kind import Finding, Kind, Unit
from pytest_regen.units.loading import PytestLists
from pytest_regen.validation.issues import WEAKENED, Issue

_KEYS: Final[Mapping[str, Rule]] = {
    "files": (is_globs, 'a glob such as "src/acme/*.py", or a list of them'),
    "allow": (is_names, 'a list of names such as ["subprocess", "open"]'),
    "style": (lambda text: isinstance(text, str), 'a text: "Raise ValueError for bad input."'),
    "path": (is_names, 'a list of folders such as ["lib"]'),
    # By type(), because TOML's true is an int to Python.
    "timeout": (lambda n: type(n) in {int, float} and n > 0, "a number of seconds, such as 10"),
}
_MARKER: Final = b"[REGEN:BEGIN"
_TIMEOUT: Final = 10.0


class _Work(NamedTuple):
    """Units of a module that are to be judged."""

    path: Path
    module: ModuleSource
    names: tuple[str, ...]
    key: str
    """Of their verdicts."""
    is_by_hand: bool = False
    """Whether no model wrote them: then they may use what others may not."""


class Function(Kind):
    """Functions whose bodies a model writes, from signature and docstring."""

    region: FunctionRegion = FunctionRegion()
    is_imported = True
    system_inputs = ""
    """Our own wording is no input, nor is what may be imported; ``style`` is, in ``settings``."""

    def __init__(
        self,
        root: Path,
        files: str | Sequence[str],
        *,
        allow: Sequence[str] = (),
        style: str = "",
        path: Sequence[str] = (),
        timeout: float = _TIMEOUT,
        lists: PytestLists | None = None,
    ) -> None:
        """Describe the modules of a project that hold such functions.

        Args:
            root: the root of the project.
            files: globs of the modules; of those that a glob finds, files with a marker count.
            allow: modules and builtins that code may use though lint refuses them.
            style: what the user wants of every function: a sentence or two.
            path: folders, from the root, that modules are imported from, besides the usual ones.
            timeout: seconds that the examples of one file may take.
            lists: pytest's own settings; by default as its file has them.
        """
        self.files = (files,) if isinstance(files, str) else tuple(files)
        self.settings: Mapping[str, Any] = {"style": style}
        self._project = Project(root, path, lists)
        self.system = prompts.system_prompt(self._project, allow=allow, style=style)
        self._allow = tuple(allow)
        self._timeout = timeout
        flags = sorted(self._project.doctest_flags)
        self._verdicts = Verdicts(self._project, {"allow": sorted(allow), "flags": flags})

    title = "the function kind"

    def claims(self, file: Path) -> bool:
        """Return whether a file holds a marker; one that is named without a glob always counts."""
        place = file.relative_to(self._project.root).as_posix()
        try:
            return place in self.files or _MARKER in file.read_bytes()
        except OSError:
            return False

    def inputs(self, unit: Unit) -> Mapping[str, str]:
        """Return signature, docstring, the user's own lines of the function, and the imports."""
        module = self._module(unit.path)
        signature, docstring, around = module.places[unit.name].inputs
        return {
            "the signature": signature,
            "the docstring": docstring,
            "the code around it": around,
            "the imports": module.import_lines,
        }

    def own_inputs(self, unit: Unit) -> Iterable[str | Path]:
        """Return signature and docstring: of a person's code, imports are not what it is for."""
        return self._module(unit.path).places[unit.name].inputs[:2]

    def shared(self, file: Path) -> str:
        """Return the module, and what it imports from the project."""
        return prompts.shared_prompt(self._project, file, self._module(file))

    def prompt(self, unit: Unit) -> str:
        """Return what is asked for."""
        place = self._module(unit.path).places[unit.name]
        return prompts.function_prompt(self._project, unit.path, place)

    def extract(self, reply: str, unit: Unit) -> str:
        """Return the code in a reply, whether it is the body, the function or a part of it."""
        return prompts.code_in(reply, self._module(unit.path).places[unit.name])

    def uses(self, unit: Unit) -> Iterable[str]:
        """Return the units that code and examples name."""
        return used_units(read_module(unit.file_text))[unit.name]

    def is_empty(self, unit: Unit) -> bool:
        """Return whether the code is a stub: ``...``, ``pass`` or ``raise NotImplementedError``."""
        return is_stub(unit.text)

    def is_only_read(self, unit: Unit) -> bool:
        """Return whether the docstring has no example that could be run."""
        module = self._module(unit.path)
        return unit.name in module.places and module.doctest(unit.name, str(unit.path)) is None

    def check(self, unit: Unit) -> Iterable[Finding]:
        """Return what is wrong with the code: what can be seen, then what its examples show."""
        key = self._verdicts.key(unit.path, unit.file_text)
        module = read_module(unit.file_text)
        # A file as it stands is judged as a whole, a candidate by itself.
        is_stored = module is self._module(unit.path)
        names = tuple(module.places) if is_stored else (unit.name,)
        work = _Work(unit.path, module, names, key)
        issues = self._issues(unit.name, work)
        # A person may use what an answer may not. Such a verdict has a key of its own, because the
        # same text may be a model's elsewhere.
        if unit.is_by_hand and any(issue.code == "NOT_ALLOWED" for issue in issues):
            work = _Work(unit.path, module, (unit.name,), f"{key}-by-hand", is_by_hand=True)
            issues = self._issues(unit.name, work)
        return issues

    def _issues(self, name: str, work: _Work) -> Sequence[Issue]:
        if self._verdicts.get(work.key, name) is None:
            self._judge([work])
        return self._verdicts.get(work.key, name) or ()

    def weakens(self, old: Unit, new: Unit) -> Iterable[Finding]:
        """Return by what new code is tested less than the old."""
        before, after = (read_module(unit.file_text).places[new.name] for unit in (old, new))
        yield from compare_code(before, after, new.failures)
        # What lint refuses is not run, and what is told already is not told again.
        if all(isinstance(issue, Issue) and issue.code == "DOCTEST" for issue in self.check(new)):
            with suppress(SandboxError, SyntaxError):
                answers = find_answers(self._project, before, after, new)
                yield from [weakness_issue(answer, after) for answer in answers]

    def prepare(self, files: Sequence[Path]) -> None:
        """Judge the units of files, all together, that were not judged before."""
        works = []
        for path in files:
            try:
                module = self._module(path)
                key = self._verdicts.key(path, path.read_bytes().decode("utf-8"))
            except (OSError, ValueError, SourceError):
                continue  # Its units say so.
            names = tuple(name for name in module.places if self._verdicts.get(key, name) is None)
            if names:
                works.append(_Work(path, module, names, key))
        self._judge(works)

    def _judge(self, works: Sequence[_Work]) -> None:
        """Find out what is wrong with units of modules, and keep it."""
        judged = []
        for work in works:
            seen, legal = {}, []
            for name, place in work.module.places.items():
                lint = check_code(self._project, work.path, place, allow=self._allow)
                issues = [i for i in lint if not (work.is_by_hand and i.code == "NOT_ALLOWED")]
                # What is not legal would spoil the whole module.
                if all(issue.code != "SYNTAX" for issue in issues):
                    legal.append(name)
                    issues += find_cheats(place)
                seen[name] = issues
            # What lint refuses is not run.
            names = [n for n in work.names if all(issue.code == WEAKENED for issue in seen[n])]
            names = [name for name in names if not is_stub(work.module.spans[name].text)]
            parts = self._project, work.path, work.module, names, legal
            judged.append((work, seen, Examples(*parts, seconds=self._timeout)))
        # One sandbox for all files: starting it costs more than most examples.
        run_all([ran for *_, ran in judged], self._project, seconds=self._timeout)
        for work, seen, ran in judged:
            verdicts = {name: (*seen[name], *ran.issues.get(name, ())) for name in work.names}
            self._verdicts.put(work.key, verdicts, unsure=ran.unsure)

    def _module(self, path: Path) -> ModuleSource:
        return read_module(decode(path.read_bytes(), path.name))


def function_kinds(
    entries: object, root: Path, lists: PytestLists | None = None
) -> Sequence[Function]:
    """Return the kinds that ``functions`` in ``[tool.pytest-regen]`` names.

    Args:
        entries: a list of globs, or of tables with ``files`` and options.
        root: the root of the project.
        lists: pytest's own settings; by default as its file has them.

    Raises:
        UsageError: an entry is wrong.
    """
    # A list of globs is a table without options.
    tables = [{"files": entries}] if is_names(entries) else entries
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        expected = 'a list of globs such as "src/acme/*.py", or of tables'
        raise wrong_value("[tool.pytest-regen]", "functions", entries, expected)
    kinds = []
    for table in tables:
        check_table("[[tool.pytest-regen.functions]]", {"files": None, **table}, _KEYS)
        kinds.append(Function(root, **table, lists=lists))
    return kinds
