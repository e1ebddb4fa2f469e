"""The kind itself: functions of a project, each written by a model between its markers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_regen.errors import SandboxError, SourceError, UsageError
from pytest_regen.kinds.functions.calls import used_units
from pytest_regen.kinds.functions.examples import Examples, Verdicts, run_all
from pytest_regen.kinds.functions.guard import compare_code, find_cheats, weakness_issue
from pytest_regen.kinds.functions.lint import check_code, nodes_of
from pytest_regen.kinds.functions.nearby import find_answers
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.prompts import function_prompt, shared_prompt, system_prompt
from pytest_regen.kinds.functions.replies import code_in
from pytest_regen.kinds.functions.source import (
    FunctionRegion,
    ModuleSource,
    is_stub,
    read_module,
)
from pytest_regen.regions.base import decode
from pytest_regen.text import quoted
from pytest_regen.units.kind import Finding, Kind, Unit
from pytest_regen.units.loading import PytestLists
from pytest_regen.validation.issues import WEAKENED, Issue

_TABLE: Final = "[[tool.pytest-regen.functions]]"
_KEYS: Final = {"files", "allow", "style", "path", "timeout"}
_HINT: Final = 'write `functions = ["src/acme/*.py"]` in [tool.pytest-regen]'
_MARKER: Final = b"[REGEN:BEGIN"
_TIMEOUT: Final = 10.0
_TOGETHER: Final = 64
"""Files whose examples run in one sandbox, each in a process of its own."""


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
        files: Sequence[str],
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
            path: folders, from the root, that modules are imported from, beside the usual ones.
            timeout: seconds that the examples of one file may take.
            lists: pytest's own settings; by default as its file has them.
        """
        self.files = tuple(files)
        self.settings: Mapping[str, Any] = {"style": style}
        self._project = Project(root, path, lists)
        self.system = system_prompt(self._project, allow=allow, style=style)
        self._allow = tuple(allow)
        self._timeout = timeout
        flags = sorted(self._project.doctest_flags)
        self._verdicts = Verdicts(self._project, {"allow": sorted(allow), "flags": flags})
        self._read: dict[Path, tuple[tuple[int, int], ModuleSource]] = {}

    @property
    def title(self) -> str:
        """How messages name the kind."""
        return "the function kind"

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
        signature, docstring, own = module.places[unit.name].inputs
        return {
            "the signature": signature,
            "the docstring": docstring,
            "the code around it": own,
            "the imports": module.import_lines,
        }

    def own_inputs(self, unit: Unit) -> Iterable[str | Path]:
        """Return signature and docstring: of a person's code, imports are not what it is for."""
        return self._module(unit.path).places[unit.name].inputs[:2]

    def shared(self, file: Path) -> str:
        """Return the module, and what it imports from the project."""
        return shared_prompt(self._project, file, self._module(file))

    def prompt(self, unit: Unit) -> str:
        """Return what is asked for."""
        module = self._module(unit.path)
        return function_prompt(self._project, unit.path, module, module.places[unit.name])

    def extract(self, reply: str, unit: Unit) -> str:
        """Return the code in a reply, whether it is the body, the function or a part of it."""
        module = self._module(unit.path)
        return code_in(reply, module, module.places[unit.name])

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

    def check(self, unit: Unit) -> Iterator[Finding]:
        """Yield what is wrong with the code: what can be seen, then what its examples show."""
        key = self._verdicts.key(unit.path, unit.file_text)
        module = read_module(unit.file_text)
        # A file as it stands is judged as a whole, a candidate by itself.
        is_stored = module is self._module(unit.path)
        names = tuple(module.places) if is_stored else (unit.name,)
        found = self._verdict(unit.name, _Work(unit.path, module, names, key))
        if unit.is_by_hand and any(issue.code == "NOT_ALLOWED" for issue in found):
            work = _Work(unit.path, module, (unit.name,), f"{key}-by-hand", is_by_hand=True)
            found = self._verdict(unit.name, work)
        yield from found

    def _verdict(self, name: str, work: "_Work") -> Sequence[Issue]:
        found = self._verdicts.get(work.key, name)
        if found is None:
            self._judge([work])
            found = self._verdicts.get(work.key, name) or ()
        return found

    def weakens(self, old: Unit, new: Unit) -> Iterable[Finding]:
        """Return by what new code is tested less than the old."""
        modules = read_module(old.file_text), read_module(new.file_text)
        before, after = ((module, module.places[new.name]) for module in modules)
        yield from compare_code(before, after, new.failures)
        # What lint refuses is not run, and what is told already is not told again.
        if all(isinstance(one, Issue) and one.code == "DOCTEST" for one in self.check(new)):
            with suppress(SandboxError, SyntaxError):
                answers = find_answers(self._project, *modules, new)
                yield from [weakness_issue(found, after[1]) for found in answers]

    def prepare(self, files: Sequence[Path]) -> None:
        """Judge the units of files, all together, that were not judged before."""
        for at in range(0, len(files), _TOGETHER):
            self._judge(list(self._unknown(files[at : at + _TOGETHER])))

    def _unknown(self, files: Iterable[Path]) -> "Iterator[_Work]":
        for path in files:
            try:
                module = self._module(path)
                key = self._verdicts.key(path, path.read_bytes().decode("utf-8"))
            except (OSError, ValueError, SourceError):
                continue  # Its units say so.
            names = tuple(name for name in module.places if self._verdicts.get(key, name) is None)
            if names:
                yield _Work(path, module, names, key)

    def _judge(self, work: "Sequence[_Work]") -> None:
        """Find out what is wrong with units of modules, and keep it."""
        seen = [self._check_code(one) for one in work]
        examples = [self._examples(one, found) for one, found in zip(work, seen, strict=True)]
        run_all(examples, self._project, seconds=self._timeout)
        for one, found, ran in zip(work, seen, examples, strict=True):
            judged = {name: (*found[name], *ran.found.get(name, ())) for name in one.names}
            self._verdicts.put(one.key, judged, unsure=ran.unsure)

    def _check_code(self, work: "_Work") -> dict[str, tuple[Issue, ...]]:
        found = {
            name: tuple(check_code(self._project, work.path, work.module, place, allow=self._allow))
            for name, place in work.module.places.items()
        }
        for name, issues in found.items():
            if all(issue.code != "SYNTAX" for issue in issues):
                place = work.module.places[name]
                cheats = find_cheats(nodes_of(work.module, place), place)
                kept = (one for one in issues if one.code != "NOT_ALLOWED" or not work.is_by_hand)
                found[name] = (*kept, *cheats)
        return found

    def _examples(self, work: "_Work", seen: Mapping[str, Sequence[Issue]]) -> Examples:
        # What is not legal would spoil the whole module; what lint refuses is not run.
        legal = [name for name, found in seen.items() if all(one.code != "SYNTAX" for one in found)]
        spans = work.module.spans
        refused = {name for name, found in seen.items() if {one.code for one in found} - {WEAKENED}}
        names = [n for n in work.names if n not in refused and not is_stub(spans[n].text)]
        return Examples(self._project, work.path, work.module, names, legal, seconds=self._timeout)

    def _module(self, path: Path) -> ModuleSource:
        """Return a file, read again only if it was written."""
        stat = path.stat()
        stamp = stat.st_mtime_ns, stat.st_size
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = stamp, read_module(decode(path.read_bytes(), path.name))
            self._read[path] = known
        return known[1]


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
    if not isinstance(entries, list) or not entries:
        raise _wrong("functions", entries, "a list of globs, or of tables")
    if all(isinstance(entry, str) and entry for entry in entries):
        return [Function(root, entries, lists=lists)]
    if not all(isinstance(entry, dict) for entry in entries):
        raise _wrong("functions", entries, "a list of globs, or of tables")
    return [_kind(entry, root, lists) for entry in entries]


def _kind(entry: Mapping[str, object], root: Path, lists: PytestLists | None) -> Function:
    if unknown := sorted(entry.keys() - _KEYS):
        raise UsageError(
            f"{_TABLE} has the key {unknown[0]!r}",
            why=f"it knows {', '.join(sorted(_KEYS))}",
            hint="take it out",
        )
    style, timeout = entry.get("style", ""), entry.get("timeout", _TIMEOUT)
    if not isinstance(style, str):
        raise _wrong("style", style, 'a text such as "Raise ValueError for bad input."')
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0:
        raise _wrong("timeout", timeout, "a number of seconds, such as 10")
    return Function(
        root,
        _texts(entry, "files", 'a glob such as "src/acme/*.py", or a list of them'),
        allow=_texts(entry, "allow", 'a list of names such as ["subprocess", "open"]', least=0),
        style=style,
        path=_texts(entry, "path", 'a list of folders such as ["lib"]', least=0),
        timeout=float(timeout),
        lists=lists,
    )


def _texts(entry: Mapping[str, object], key: str, form: str, *, least: int = 1) -> tuple[str, ...]:
    value = entry.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if (
        isinstance(texts, list)
        and len(texts) >= least
        and all(isinstance(text, str) and text for text in texts)
    ):
        return tuple(texts)
    raise _wrong(key, value, form)


def _wrong(key: str, value: object, form: str) -> UsageError:
    where = "[tool.pytest-regen]" if key == "functions" else _TABLE
    return UsageError(
        f"{where} has {key} = {quoted(value)[:200]}", why=f"{key} is {form}", hint=_HINT
    )
