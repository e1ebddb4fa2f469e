"""What was found in stores, kept in ``.regen/cache/`` between runs and shared by workers of one.

A store need be neither opened nor validated where nothing has changed that the findings depend on:
its files and their place, the document, the code of this package and of all installed ones, and
whatever runs the types. Everything else, a cache that cannot be read among it, is a miss.
"""

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Self

from pytest_regen.canonical import canonical_hash, file_hash
from pytest_regen.commit import View
from pytest_regen.documents.digests import document_digests
from pytest_regen.errors import BoundaryError, RegenError
from pytest_regen.files import content_hash, project_root
from pytest_regen.languages import find_language, find_runner
from pytest_regen.modes import is_ci
from pytest_regen.sandbox.verdicts import VerdictCache
from pytest_regen.sources import blocks
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE
from pytest_regen.stores import RegenStore
from pytest_regen.stores.formats import SCHEMA_FILE
from pytest_regen.stores.history import store_files
from pytest_regen.validation.behaviour import COUNT, StoreBehaviour, hold_lock
from pytest_regen.validation.issues import Excerpt, Issue, ValidationResult
from pytest_regen.validation.stores import (
    behaviour_of_store,
    format_note,
    validate_store,
)

_FORMAT: Final = 3
_FACTS: Final = "stores"
_FINDINGS: Final = "findings"
_ARTIFACTS: Final = (IR_FILE, PROMPTS_FILE, PAGES_FILE)

Digests = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What can be said of a store before it is validated."""

    type_names: tuple[str, ...]
    source_file: str
    language: str
    profile: str
    document: str
    """The place of the document, seen from the store; empty where it is not known."""
    format_note: str
    digests: Digests
    """Of the artifacts, and of the source; ``None`` where there is none."""

    @classmethod
    def of(cls, store: RegenStore) -> Self:
        """Return the facts of a store.

        Raises:
            StoreCorruptError: ``ir.json`` does not hold an IR.
        """
        return cls(
            store.type_names,
            store.envelope.source_file,
            store.envelope.language,
            store.envelope.profile,
            store.ir.document.path if store.ir.document else "",
            format_note(store),
            (*_digests_of(store), _digest(store.source.encode() if store.has_source else None)),
        )


@dataclass(frozen=True, slots=True)
class StoreFindings:
    """What validation found in a store; nothing is ignored yet."""

    results: Mapping[str, ValidationResult]
    lines: Mapping[str, int]
    """Lines of the source, from 0, on which the blocks of types begin."""
    not_run: str = ""
    """Why the types were not run, where that is worth saying."""


def _issue_as_json(issue: Issue) -> dict[str, Any]:
    """Return an issue with what a model is told of it, too."""
    excerpt = issue.excerpt and [issue.excerpt.line, issue.excerpt.text]
    return {**issue.to_json(), "excerpt": excerpt, "finding": issue.finding}


def _issue_from_json(data: Mapping[str, Any]) -> Issue:
    excerpt = data["excerpt"] and Excerpt(*data["excerpt"])
    return replace(Issue.from_json(data), excerpt=excerpt, finding=data["finding"])


def lines_of(store: RegenStore) -> dict[str, int]:
    """Return the lines of the source, from 0, on which the blocks of types begin."""
    try:
        return {block.name: block.first_line - 1 for block in blocks(store.source)}
    except BoundaryError:
        return {}  # The types fail with it; to be shown, none of them needs a line.


Open = Callable[[], RegenStore]


class StoreCache:
    """What is known of stores by this run, and by those before it.

    Args:
        is_shared: whether other processes of this run look at the same stores.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        self._caches: dict[Path, VerdictCache] = {}

    def facts(self, path: Path, open_store: Open) -> StoreFacts:
        """Return the facts of the store at ``path``; it is opened only where they are not known.

        Raises:
            StoreError: it cannot be opened.
        """
        try:
            facts = store_files(path).read(partial(self._known_facts, path))
        except (OSError, RegenError):
            facts = None  # Opening it says what is wrong.
        if facts is None:
            store = open_store()
            facts = StoreFacts.of(store)
            *stored, _ = astuple(facts)
            self._cache(path).put(_FACTS, _key(path, _digests_of(store)), stored)
        return facts

    def _known_facts(self, path: Path, view: View) -> StoreFacts | None:
        digests = tuple(_digest(view.read(name)) for name in _ARTIFACTS)
        stored = None if None in digests else self._cache(path).get(_FACTS, _key(path, digests))
        if stored is None:
            return None
        names, source_file, language, profile, document, note = stored
        digests = *digests, _digest(view.read(source_file))
        return StoreFacts(tuple(names), source_file, language, profile, document, note, digests)

    def known_findings(
        self, path: Path, facts: StoreFacts, *, behaviour: bool
    ) -> StoreFindings | None:
        """Return what was found in the store before; ``None`` where that is not known.

        Args:
            path: folder of the store.
            facts: about its present state.
            behaviour: whether types are run.
        """
        try:
            key = _findings_key(path, facts, behaviour=behaviour)
        except RegenError:
            return None  # Validating it says what is wrong.
        stored = self._cache(path).get(_FINDINGS, key)
        if stored is None:
            return None
        issues, lines, not_run = stored
        results = {
            name: ValidationResult.of(map(_issue_from_json, of_type))
            for name, of_type in issues.items()
        }
        return StoreFindings(results, lines, not_run)

    def findings(
        self, path: Path, facts: StoreFacts, open_store: Open, *, behaviour: bool
    ) -> StoreFindings:
        """Return what is wrong with the store; it is validated only where that is not known.

        Of several workers of a run one validates it, and the others wait.

        Args:
            path: folder of the store.
            facts: about its present state.
            open_store: opens it.
            behaviour: whether types are run.

        Raises:
            StoreError: it cannot be opened.
            UsageError: its language is unknown.
        """
        with hold_lock(path, ".gate.lock") if self._is_shared else nullcontext():
            # Once more, because another worker may have validated it meanwhile.
            if findings := self.known_findings(path, facts, behaviour=behaviour):
                return findings
            store = open_store()
            facts = StoreFacts.of(store)
            key = _findings_key(path, facts, behaviour=behaviour)
            results = validate_store(store, behaviour=behaviour)
            ran = behaviour_of_store(store) if behaviour else StoreBehaviour()
            not_run = "" if ran.is_expected else ran.why_not
            findings = StoreFindings(results, lines_of(store), not_run)
            # Nothing is kept that may be otherwise the next time, because what kept types from
            # being run may be gone, the code of languages of others is not all known, and the
            # document may have changed while it was read.
            module = type(find_language(facts.language)).__module__
            is_lasting = not not_run and module.startswith("pytest_regen.")
            if is_lasting and key == _findings_key(path, facts, behaviour=behaviour):
                issues = {
                    name: [*map(_issue_as_json, result.issues)] for name, result in results.items()
                }
                self._cache(path).put(_FINDINGS, key, [issues, findings.lines, not_run])
            return findings

    def _cache(self, path: Path) -> VerdictCache:
        root = project_root(path)
        return self._caches.setdefault(root, VerdictCache(root / ".regen" / "cache"))


def _digest(content: bytes | None) -> str | None:
    return None if content is None else file_hash(content)


def _digests_of(store: RegenStore) -> Digests:
    return tuple(map(file_hash, (store.plan.ir_data, store.plan.prompts_data, store.pages_data)))


def _findings_key(path: Path, facts: StoreFacts, *, behaviour: bool) -> str:
    """Return what findings depend on.

    Raises:
        UsageError: the language of the store is unknown.
    """
    documents = document_digests(path / facts.document) if facts.document else {}
    beside = [content_hash(path / SCHEMA_FILE), documents]
    runner = find_runner(find_language(facts.language), facts.profile)
    is_run = runner is not None and (behaviour or runner.traits.complete is not None)
    ran: list[object] = [behaviour, is_ci()]
    if runner is not None and is_run:
        ran += [runner.missing(path), runner.version(path), COUNT]
    return _key(path, facts.digests, beside, ran)


def _key(path: Path, *parts: object) -> str:
    return canonical_hash([_FORMAT, code_version(), str(path.absolute()), *parts])


@cache
def code_version() -> str:
    """Return a hash of the code that finds: this package, and what is installed beside it."""
    package = Path(__file__).parents[1]
    files = [
        [path.relative_to(package).as_posix(), file_hash(path.read_bytes())]
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    ]
    # Without files, as in an archive, the code is not known: nothing is known by it.
    installed = sorted({name for folder in sys.path for name in _distributions(folder)})
    return canonical_hash([sys.version, files or secrets.token_hex(), installed])


def _distributions(folder: str) -> list[str]:
    """Return the folders of metadata in a folder of ``sys.path``; versions are in their names."""
    try:
        with os.scandir(folder or ".") as entries:
            return [e.name for e in entries if e.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return []
