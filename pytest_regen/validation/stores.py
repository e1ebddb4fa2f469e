"""Validation of a store: its types, and what only the folder shows: DRIFT and STALE."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from pytest_regen.documents.digests import document_at
from pytest_regen.documents.ir import FORMAT, IR, REQUEST, SCHEMAS, TypeIR, type_hash
from pytest_regen.errors import (
    DocumentUnreadableError,
    RegenError,
    UnknownOperationError,
    UnknownSchemaError,
)
from pytest_regen.files import from_here
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language, find_runner
from pytest_regen.modes import BEHAVIOUR_CODES, HAND, TEMPLATE, is_ci
from pytest_regen.stores import RegenStore
from pytest_regen.stores.conflicts import read_ours
from pytest_regen.text import join_names
from pytest_regen.validation import behaviour as running
from pytest_regen.validation import pieces as parts
from pytest_regen.validation.edits import edited_prompts, edits, file_issues
from pytest_regen.validation.issues import (
    IMPORT_FAILED,
    Ignore,
    Issue,
    ValidationResult,
    codes_by_type,
    without_ignored,
)
from pytest_regen.validation.rules import validate_split

_MEMO: Final = "validation"
"""Under this name a store keeps its verdicts."""
_DOCUMENT: Final = "document"
"""Under this name it keeps the types that its document gives."""


@dataclass(frozen=True, slots=True)
class _State:
    """What was found in one state of a store."""

    ir: IR
    made_of: tuple[object, ...]
    """All else that it depends on."""
    is_tried: bool
    """Whether types were run with JSON to load and dump, and not only to see what they are."""
    whole: parts.Split
    """The source with its types as running shows them."""
    results: Mapping[str, ValidationResult]
    """What rules found."""
    behaviour: running.StoreBehaviour


def stale_types(store: RegenStore) -> dict[str, str]:
    """Return the stale types of ``store``, each with the reason in words.

    A type is stale where ``ir.json`` has moved on since its pages were written, or where the
    document gives another IR, read as the store's was. Where the document cannot be read, that is
    told once, of the first type: nobody knows what it would say.

    Raises:
        StoreCorruptError: ``ir.json`` does not hold an IR.
    """
    reasons = {
        name: f"the prompts of {name!r} were made from an older description"
        for name in store.type_names
        if store.pages_of(name) and store.is_stale(name)
    }
    fresh = None
    try:
        fresh = _types_of_the_document(store) if store.ir.format == FORMAT else None
    except DocumentUnreadableError as error:
        lost = f"{error.what}: put it back, or name its new place to pytest-regen generate"
        reasons |= dict.fromkeys(store.type_names[:1], lost)
    if fresh is not None and store.ir.document is not None:
        for type_ in store.ir.types:
            now = fresh.get(type_.name)
            # The place of a schema in another file begins with that file's name.
            file = Path(type_.schema_id.partition("#")[0] or store.ir.document.path).name
            if now is None:
                reasons[type_.name] = f"{file} no longer has a type {type_.name!r}"
            elif type_hash(now) != type_hash(type_):
                before, after = (
                    {str(value): value for value in version.enum_values}
                    | {field.json_name or "its value": field for field in version.fields}
                    for version in (type_, now)
                )
                changes = {
                    "gone": [name for name in before if name not in after],
                    "new": [name for name in after if name not in before],
                    "changed": [
                        name for name in before if before[name] != after.get(name, before[name])
                    ],
                }
                sentences = [
                    f"{join_names([repr(name)[1:-1] for name in names], 'and')} "
                    f"{'is' if len(names) == 1 else 'are'} {what}"
                    for what, names in changes.items()
                    if names
                ]
                reason = f"{file} has changed since {type_.name!r} was generated"
                reasons[type_.name] = f"{reason}: {', '.join(sentences)}" if sentences else reason
    return reasons


def format_note(store: RegenStore) -> str:
    """Return what is to be said of a store's files beside what is wrong with its types.

    That another version read the document is no staleness: what this version reads or words
    differently shows in the store with the next ``generate``.
    """
    if store.settled:
        return (
            f"git could not merge {join_names(store.settled, 'and')} of {store.path.name} where "
            "its lines follow from others; they were worked out, and the next write stores them"
        )
    if store.ir.format == FORMAT:
        return ""
    # The document, and not the store, because a release makes all of its stores old at once.
    document = Path(store.ir.document.path) if store.ir.document else store.path
    return (
        f"another version of pytest-regen read {document.name}; the next generate brings its stores"
        " up to date and asks only for what this version reads differently"
    )


def is_by_template(store: RegenStore, type_name: str = "") -> bool:
    """Return whether the template wrote a type.

    Of a type that is new, or that a person wrote, whether it was the last to write in the store.
    """
    pages = store.pages_of(type_name) if type_name in store.type_names else ()
    # Without what people wrote, because the template writes the rest of the type all the same.
    models = {page.model for page in pages} - {HAND} or {store.envelope.model}
    return models == {TEMPLATE}


def from_errors_command(store: RegenStore) -> str:
    """Return the command that asks for the types of a store that have errors."""
    return f"pytest-regen regenerate {shlex.quote(str(store.path))} --from-errors"


class Origin(NamedTuple):
    """What a store is made of, as far as it takes to make it anew."""

    path: Path
    ir: IR
    by_template: bool

    @classmethod
    def of(cls, store: RegenStore) -> "Origin":
        """Return that of a store."""
        return cls(store.path, store.ir, is_by_template(store))

    @classmethod
    def of_conflict(cls, path: Path) -> "Origin | None":
        """Return that of our version of a store that git did not merge; ``None`` of any other."""
        ours = read_ours(path)
        return cls(path, ours[0], ours[1].model == TEMPLATE) if ours else None


def update_command(store: "RegenStore | Origin", *, every: bool = False) -> str:
    """Return the command that brings a store up to date with its document.

    Paths are seen from the working directory. The document is called SPEC where it is not at hand.
    What the template wrote it writes anew.

    Args:
        store: the store.
        every: name all operations of the document, not that of the store alone.
    """
    store = store if isinstance(store, Origin) else Origin.of(store)
    endpoint, reference = store.ir.endpoint, store.ir.document
    document = store.path / reference.path if reference else None
    spec = from_here(document) if document and document.is_file() else "SPEC"
    operation = endpoint.words(store.ir.schemas)
    if every:
        operation = ["--all", *(["--request"] if endpoint.status == REQUEST else [])]
    words = ["pytest-regen", "generate", spec, *operation]
    is_named = store.path.name == endpoint.folder
    words += ["--out", from_here(store.path.absolute().parent) if is_named else "DIR"]
    # Not for all operations, because each of them has responses of its own.
    if endpoint.status not in {"200", REQUEST, SCHEMAS} and not every:
        words += ["--status", endpoint.status]
    if store.ir.language != DEFAULT_LANGUAGE:
        words += ["--language", store.ir.language]
    if store.by_template:
        words += ["--provider", TEMPLATE]
    return shlex.join(words)


def _types_of_the_document(store: RegenStore) -> Mapping[str, TypeIR] | None:
    """Return each type that the document gives now; ``None`` where nothing can tell.

    Raises:
        DocumentUnreadableError: it is gone, or no document any more.
    """
    reference = store.ir.document
    if reference is None:
        return None
    try:
        path = document_at(store.path, reference.path)
        from pytest_regen.documents import rebuild_ir
        from pytest_regen.documents.document import read_shared_document

        document = read_shared_document(path)
        memo = store.memo.get(_DOCUMENT)
        # By identity, because both are shared by all states of a store and take long to compare.
        if memo is None or memo[0] is not document or memo[1] is not store.plan:
            build = rebuild_ir(store.ir, document, language=find_language(store.ir.language))
            by_name = {type_.name: type_ for type_ in build.ir.types}
            memo = store.memo[_DOCUMENT] = document, store.plan, by_name
    except (UnknownOperationError, UnknownSchemaError):
        return {}
    except DocumentUnreadableError:
        raise
    except (OSError, RegenError):
        return None  # What else reading takes is not here.
    types: Mapping[str, TypeIR] = memo[2]
    return types


def runs_any(type_names: Iterable[str], ignore: Ignore) -> bool:
    """Return whether what running types shows counts for any of these."""
    codes_of = codes_by_type(ignore)
    return any(not set(codes_of(name)) >= BEHAVIOUR_CODES for name in type_names)


def behaviour_of_store(store: RegenStore, count: int = running.COUNT) -> running.StoreBehaviour:
    """Return what running the types of a store shows, and why not all of them were run.

    What was run before is not run again.

    Args:
        store: a store as it was opened.
        count: how many valid instances of each type are tried.

    Raises:
        StoreCorruptError: ``ir.json`` does not hold an IR.
    """
    return _state(store, count).behaviour


def validate_store(
    store: RegenStore,
    *,
    types: Sequence[str] | None = None,
    ignore: Ignore = (),
    behaviour: bool = True,
) -> dict[str, ValidationResult]:
    """Return what is wrong with each type of a store.

    Nothing is written but below ``.regen/cache``. Each issue is put on the page at fault, where one
    page is.

    Args:
        store: a store as it was opened.
        types: declared names; the results of other types are left out. All by default.
        ignore: codes that are not reported, or codes by type name; ``STRUCTURAL`` is ``SYNTAX``.
        behaviour: whether types are tried with JSON, where what that takes is there and what it
            finds is not ignored.

    Returns:
        A result for each type of the IR, then for each block that the IR has no type for.

    Raises:
        StoreCorruptError: ``ir.json`` does not hold an IR.
        UsageError: a code to ignore, or the language of the store, is unknown.
    """
    is_tried = behaviour and runs_any(store.type_names, ignore)
    state = _state(store, is_tried=is_tried)
    issues = {name: list(result.issues) for name, result in state.results.items()}
    if is_tried:
        for name, of_run in state.behaviour.issues.items():
            issues[name] += running.without_echoes(of_run, issues[name])
        teller = running.teller_of(store.envelope.language, store.envelope.profile)
        why_not = teller.missing(store.path) if teller is not None and is_ci() else None
        for root in [*issues][:1] if why_not else ():
            # Elsewhere the run notes it; a gate that tests less than it says is red.
            message = f"the types were only read: {why_not}"
            detail = 'run pytest where code can be run, or set behaviour = "off"'
            issues[root].insert(0, Issue.of(IMPORT_FAILED, message, type_name=root, detail=detail))
    drifted = [edit.issue for edit in edits(store, state.whole)]
    for edit in drifted:
        if edit.line is None and edit.file is None:
            # The whole block was taken out by hand, so that the type is not there: said once.
            missing = issues.get(edit.type_name or "", [])
            missing[:] = [issue for issue in missing if issue.code != "MISSING_CLASS"]
    verb = "rewrites" if is_by_template(store) else "asks only for"
    detail = f"generate {verb} what changed; --regen does not mend this"
    stale = [
        Issue.of("STALE", message, type_name=name, detail=detail)
        for name, message in stale_types(store).items()
    ]
    of_files = (*drifted, *edited_prompts(store), *file_issues(store, state.whole))
    # What is stale or edited comes first, because what rules say of such a type follows from it.
    for issue in reversed([*stale, *of_files]):
        if issue.type_name in issues:
            issues[issue.type_name].insert(0, issue)
    chosen = issues if types is None else [name for name in issues if name in types]
    results = {name: ValidationResult.of(issues[name]) for name in chosen}
    return without_ignored(results, ignore)


def _state(store: RegenStore, count: int = running.COUNT, *, is_tried: bool = True) -> _State:
    """Return what is found in a store as it is; it stays with the snapshot."""
    profile, ir = store.envelope.profile, store.ir
    runner = find_runner(find_language(ir.language), profile)
    tells = runner is not None and runner.traits.complete is not None
    # As it would be written, because a source that is gone has its DRIFT, and types have theirs.
    source = store.source if store.has_source else store.assembly()
    pages = {
        # One that was never written is there too, empty.
        name: tuple(
            parts.PageText(
                prompt.page,
                prompt.total_pages,
                prompt.fields,
                page.output if page else "",
                page.stop_reason if page else None,
                was_written=page is not None,
            )
            for prompt in store.prompts_of(name)
            for page in (store.pages.get(prompt.key),)
        )
        for name in store.type_names
    }
    made_of = source, profile, pages, count
    state: _State | None = store.memo.get(_MEMO)
    # By identity, because an IR is shared by all states of a store and takes long to compare.
    # All else by value, because a state that was written and opened again is the same state.
    is_same = state is not None and state.ir is ir and state.made_of == made_of
    if state is not None and is_same and (state.is_tried or not is_tried):
        return state
    text, whole, maps = parts.read_source(source, ir, pages)
    pieces = {piece.name: piece for piece in whole.pieces}
    behaviour = running.StoreBehaviour()
    # Where a run does not tell what types are, rules go by what was read.
    if runner is not None and (is_tried or tells) and whole.has_boundaries:
        subject = running.subject_of(text, whole, ir, profile, store.path)
        behaviour = running.behaviour_of(store, subject, runner, count if is_tried else 0)
        placed = {
            name: tuple(running.put_on_pages(issues, pieces[name], maps[name]))
            for name, issues in behaviour.issues.items()
        }
        behaviour = replace(behaviour, issues=placed)
        whole = running.completed(whole, runner, behaviour.facts)
    results = validate_split(whole, ir, maps, profile)
    state = store.memo[_MEMO] = _State(ir, made_of, is_tried, whole, results, behaviour)
    return state
