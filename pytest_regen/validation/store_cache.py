"""What was found in stores, kept in ``.regen/cache/`` between runs and shared by workers of one.

A store need be neither opened nor validated where nothing has changed that the findings depend on:
its files and their place, the document, the code of this package and of all installed ones, and
whatever runs the types. Everything else, a cache that cannot be read among it, is a miss.
"""

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from pytest_regen.canonical import canonical_hash, file_hash
from pytest_regen.commit import View
from pytest_regen.documents.digests import document_at, document_digests
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
from pytest_regen.validation.issues import ValidationResult
from pytest_regen.validation.stores import behaviour_of_store, format_note, validate_store

_FORMAT: Final = 4
_FACTS: Final = "stores"
_FINDINGS: Final = "findings"
_ARTIFACTS: Final = (IR_FILE, PROMPTS_FILE, PAGES_FILE)

Digests = tuple[str | None, ...]
_Kept = TypeVar("_Kept")


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


_FACTS_JSON: Final = TypeAdapter(StoreFacts)
_FINDINGS_JSON: Final = TypeAdapter(StoreFindings)


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

        def known(view: View) -> StoreFacts | None:
            digests = tuple(_digest(view.read(name)) for name in _ARTIFACTS)
            facts = self._get(_FACTS, path, _key(path, digests), _FACTS_JSON)
            if facts is None:
                return None
            # Last, because only the facts say which file the source is.
            return replace(facts, digests=(*digests, _digest(view.read(facts.source_file))))

        try:
            facts = store_files(path).read(known)
        except (OSError, RegenError):
            facts = None  # Opening it says what is wrong.
        if facts is None:
            store = open_store()
            facts = StoreFacts.of(store)
            self._cache(path).put(_FACTS, _key(path, _digests_of(store)), asdict(facts))
        return facts

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
        return self._get(_FINDINGS, path, key, _FINDINGS_JSON)

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
                # Not by pydantic, because it refuses half a pair, which a message may show.
                self._cache(path).put(_FINDINGS, key, asdict(findings))
            return findings

    def _get(self, section: str, path: Path, key: str, kind: TypeAdapter[_Kept]) -> _Kept | None:
        """Return what was kept under a key; ``None`` where that is nothing, or of no such kind."""
        stored = self._cache(path).get(section, key)
        try:
            return None if stored is None else kind.validate_python(stored)
        except ValidationError:
            return None

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
    documents = document_digests(document_at(path, facts.document)) if facts.document else {}
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
    installed: set[str] = set()
    for folder in sys.path:
        # What is no folder, or cannot be read, has nothing installed in it.
        with suppress(OSError), os.scandir(folder or ".") as entries:
            # Names of folders with metadata are enough, because versions are in them.
            names = (entry.name for entry in entries)
            installed |= {name for name in names if name.endswith((".dist-info", ".egg-info"))}
    # Without files, as in an archive, the code is not known: nothing is known by it.
    return canonical_hash([sys.version, files or secrets.token_hex(), sorted(installed)])
