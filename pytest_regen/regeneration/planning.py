"""What a document asks of a store: IR, prompts, pages to keep and to ask; ``schema.md``.

Reads, plans, and writes nothing; a dry run ends here.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pytest_regen.commit import now
from pytest_regen.documents import Defect, Document, Operation, build_ir
from pytest_regen.documents import ir as irs
from pytest_regen.documents.parts import Components, Part, endpoint_of
from pytest_regen.errors import DocumentDefectError, StoreCorruptError, UsageError
from pytest_regen.files import safe_file_name
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.prompts import build_prompts, page_content_hash, plan_from_entries
from pytest_regen.prompts.render import is_shared as prompts_are_shared
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.store_folders import is_store
from pytest_regen.stores import RegenStore, StoredPage
from pytest_regen.stores.formats import PagesEnvelope
from pytest_regen.stores.history import store_files
from pytest_regen.stores.store import Plan
from pytest_regen.text import join_names, plural, shorten


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreOptions:
    """How the types of a document become a store."""

    language: str | None = None
    """Name of the target language; by default the stored one."""
    default_language: str = DEFAULT_LANGUAGE
    """Of a new store where ``language`` is not given."""
    status: str | None = None
    """Of the response to read; by default 200, else the lowest 2xx with JSON."""
    fields_per_page: int | None = None
    """Fields or enum values per page, instead of a number chosen by tokens."""
    namespace: str | None = None
    """Of the source; by default the stored one, else one made from the operation."""
    profile: str | None = None
    """Of the language; by default the stored one, else ``default``."""
    force: bool = False
    """Ask every page, whatever is stored."""
    allow_defects: bool = False
    """Take what can be read where the document is broken, a reference to nothing for one; the
    store reports what is lost as REVIEW."""


@dataclass(frozen=True, kw_only=True)
class StorePlan:
    """A store as the document wants it, beside what is there."""

    path: Path
    ir: irs.IR
    prompts: tuple[PromptEntry, ...]
    defects: tuple[Defect, ...] = ()
    previous: RegenStore | None = None
    """What the folder holds now."""
    carried: Mapping[PageKey, StoredPage] = field(default_factory=dict)
    """Stored pages that still answer, under the identity they have from now on."""
    namespace: str | None = None
    profile: str = "default"
    source_file: str
    joined: tuple[str, ...] = ()
    """Artifacts that git could not merge, and of which our version was taken."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Schemas with names that are no types by themselves, and what they are."""

    @cached_property
    def unwritten(self) -> RegenStore:
        """The store with the pages that stay, before anything of it is written.

        Raises:
            StoreWriteError: no file can hold a text of the document.
        """
        ir, source = self.ir, self.previous.source if self.previous else ""
        envelope = PagesEnvelope(
            version=1,
            endpoint={"method": ir.endpoint.method, "path": ir.endpoint.path},
            language=ir.language,
            namespace=self.namespace,
            profile=self.profile,
            boundary_tag="REGEN",
            ir_hash=None if ir.endpoint.status == irs.SCHEMAS else irs.ir_hash(ir),
            generated_at=now(),
            model="",
            source_file=self.source_file,
        )
        with store_files(self.path).explain_errors():
            plan = Plan.of(self.path, ir, self.prompts)
        envelope = envelope.with_pages(self.carried.values(), self.prompts)
        return RegenStore(self.path, envelope, plan, source, bool(source))

    def carry_over(self, store: RegenStore) -> Mapping[PageKey, StoredPage]:
        """Return the pages to keep as ``store`` has them, which others may have written since."""
        fresh = _find_answered(store, self.ir, self.prompts, self.profile)
        return {key: fresh.get(key, page) for key, page in self.carried.items()}

    @property
    def asked(self) -> tuple[PromptEntry, ...]:
        """The pages without an output that answers."""
        return tuple(entry for entry in self.prompts if entry.key not in self.carried)

    @cached_property
    def types(self) -> Mapping[str, tuple[str, ...]]:
        """Names of types by what becomes of them: ``added``, ``changed``, ``removed``, ``kept``.

        Those with pages to ask have changed, and those that are read from another IR.
        """
        before = self.previous.ir.types if self.previous else ()
        old = {type_.name: irs.type_hash(type_) for type_ in before}
        new = {type_.name: irs.type_hash(type_) for type_ in self.ir.types}
        asking = {entry.type_name for entry in self.asked}
        kept = {name for name in new if new[name] == old.get(name) and name not in asking}
        return {
            "added": tuple(name for name in new if name not in old),
            "changed": tuple(name for name in new if name in old and name not in kept),
            "removed": tuple(name for name in old if name not in new),
            "kept": tuple(name for name in new if name in kept),
        }

    @property
    def is_current(self) -> bool:
        """Whether the store is what the document asks for.

        What only this release reads or words in another way does not count.
        """
        old, types = self.previous, self.types
        if old is None or old.missing_pages or any(map(old.is_stale, old.type_names)):
            return False
        if (old.ir.endpoint, old.envelope.profile) != (self.ir.endpoint, self.profile):
            return False
        is_same = not (types["added"] or types["removed"])
        if old.ir.format != self.ir.format:
            return is_same  # Of the others a note says it.
        return is_same and not (self.asked or types["changed"])


def plan_store(
    document: Document,
    part: Part | str,
    out: Path | str,
    options: StoreOptions,
    *,
    resolve: bool,
    is_shared: bool,
) -> StorePlan:
    """Return what generating a part of a document into the folder ``out`` comes to.

    Args:
        document: an API description.
        part: an operation, whose response is read, or its method and path: ``GET /v1/projects``;
            ``Request`` of an operation; ``Components``, the schemas with names.
        out: the folder in which each store has a folder of its own.
        options: how types become a store.
        resolve: first take our version of a store that git could not merge.
        is_shared: whether a new store of an operation has prompts that others may have, too; those
            of a store that is there stay as they are.

    Raises:
        DocumentError: the document or the operation cannot serve.
        UnknownOperationError, UsageError: an argument is wrong.
        StoreCorruptError: the folder holds a store that cannot be read.
    """
    part = document.find(part) if isinstance(part, str) else part
    endpoint = endpoint_of(part, document)
    path = Path(out) / endpoint.folder
    joined = _take_ours(path) if resolve and is_store(path) else ()
    previous = RegenStore.open(path) if is_store(path) else None
    language = options.language or options.default_language
    if previous is not None:
        language = previous.envelope.language
        if options.language not in {None, language}:
            raise UsageError(
                f"the store {path} is written in {language}, not in {options.language}",
                hint=f"give --language {language}, or another folder with --out",
            )
    target = find_language(language)
    build = build_ir(document, part, language=target, status=options.status)
    if previous is not None and isinstance(part, Components):
        _refuse_others(previous, document, part)
    broken = [str(defect) for defect in build.defects if defect.severity == "error"]
    if broken and not options.allow_defects:
        raise DocumentDefectError(
            f"the document is broken where {part} needs it, in {plural(len(broken), 'place')}",
            why=shorten(broken),
            hint="correct the document, or take what can be read with --allow-defects",
        )
    # From the store, because each clone of the project lies elsewhere.
    reference = os.path.relpath(document.path, path).replace(os.sep, "/")
    ir = build.ir.model_copy(update={"document": irs.DocumentRef(path=reference)})
    profile = options.profile or (previous.envelope.profile if previous else "default")
    # One per store, so that forty endpoints can each have an ``Address``.
    namespace = options.namespace or (previous.envelope.namespace if previous else None)
    if not namespace:
        request = f" {irs.REQUEST}" if endpoint.status == irs.REQUEST else ""
        words = f"{endpoint.method.lower()} {endpoint.path}{request}"
        words = irs.SCHEMAS if endpoint.status == irs.SCHEMAS else words
        namespace = f"Generated.{target.type_name(words, is_root=False)}"
    target.header(namespace=namespace, profile=profile)  # Refused before a page is paid for.
    # Nothing of it is carried, because --force asks each page anew.
    base = None if options.force else previous
    # What is stored keeps its way of asking, because other words would make all pages stale.
    if previous is not None:
        is_shared = all(map(prompts_are_shared, previous.prompts))
    elif not isinstance(part, Operation):
        is_shared = True
    prompts = build_prompts(
        ir,
        language=target,
        profile=profile,
        fields_per_page=options.fields_per_page,
        stored_plan=plan_from_entries(base.prompts) if base else {},
        is_shared=is_shared,
    )
    name = target.type_name(irs.SCHEMAS, is_root=False)
    if endpoint.status != irs.SCHEMAS:
        name = _main_name(ir.root or ir.types[0])
    return StorePlan(
        path=path,
        ir=ir,
        prompts=prompts,
        defects=build.defects,
        previous=previous,
        carried=_find_answered(base, ir, prompts, profile),
        namespace=namespace,
        profile=profile,
        source_file=safe_file_name(name) + target.suffix,
        joined=joined,
        skipped=build.skipped,
    )


def _main_name(root: irs.TypeIR) -> str:
    """Return the name of what an answer is, or of what it holds: a list is found by its items."""
    value = root.fields[0].type if root.kind == "alias" else None
    if isinstance(value, irs.ArrayOf | irs.MapOf):
        return next(irs.referenced_names(value))
    return root.name


def _refuse_others(previous: RegenStore, document: Document, part: Components) -> None:
    """Refuse to take schemas from a store because a command does not name them.

    Raises:
        UsageError: the store holds others of the document, or those of another document.
    """
    reference = previous.ir.document
    # Not Path.resolve, because that raises where links lead to one another.
    file = Path(os.path.realpath(document.path))
    source = Path(os.path.realpath(previous.path / reference.path)) if reference else file
    # One that is gone may well have been renamed to the document that is named now.
    if source.is_file() and source != file:
        raise UsageError(
            f"{previous.path} holds the schemas of {source.name}, not of {document.path.name}",
            hint="give each document a folder of its own with --out",
        )
    # A store of all schemas names none, because it is to have those that are added later.
    names = previous.ir.schemas or tuple(document.named_schemas)
    lost = [name for name in names if name in document.named_schemas and name not in part.names]
    if part.names and lost:
        raise UsageError(
            f"{previous.path} holds schemas that are not named: {join_names(lost, 'and')}",
            why="they would be taken out of the store",
            hint="name them as well, name none for all, or give another folder with --out",
        )


def _take_ours(path: Path) -> tuple[str, ...]:
    """Take our version of a store that cannot be read because git could not merge it."""
    try:
        # The IR as well, because it is read only when somebody needs it.
        _ = RegenStore.open(path).ir
    except StoreCorruptError:
        return verbs.rebuild(StorePlace(path)).joined
    return ()


def _find_answered(
    previous: RegenStore | None, ir: irs.IR, prompts: Sequence[PromptEntry], profile: str
) -> dict[PageKey, StoredPage]:
    """Return the stored pages that still answer a prompt, whatever their number was.

    A page answers if the fields it stands for are as they were when it was written; a page whose
    type has moved on since, because an update was interrupted, does not. Another profile wants
    other code everywhere.
    """
    if previous is None or previous.envelope.profile != profile:
        return {}
    stored: dict[tuple[str, str], StoredPage] = {}
    # By what is on them, because a field that is added may number all pages of a type anew.
    for entry in previous.prompts:
        page, type_ = previous.pages.get(entry.key), previous.ir.type_named(entry.type_name)
        if page and type_ and page.type_hash in (None, irs.type_hash(type_)):
            stored[entry.type_name, _content_of(type_, entry)] = page
    answered: dict[PageKey, StoredPage] = {}
    for entry in prompts:
        type_ = ir.type_named(entry.type_name)
        page = stored.get((entry.type_name, _content_of(type_, entry))) if type_ else None
        if type_ is not None and page is not None:
            answered[entry.key] = replace(
                page,
                page=entry.page,
                total_pages=entry.total_pages,
                is_root=entry.is_root,
                type_hash=irs.type_hash(type_),
            )
    return answered


def _content_of(type_: irs.TypeIR, entry: PromptEntry) -> str:
    return page_content_hash(type_, entry.fields, first=entry.page == 1)


def schema_markdown(ir: irs.IR) -> str:
    """Return every type with its fields: wire names, types, required, nullable, description."""
    lines = [f"# {_cell(str(ir.endpoint))}", ""]
    for type_ in ir.types:
        root = ", root" if type_.is_root else ""
        lines += [f"## {type_.name}", "", f"{type_.kind}{root}, {_code(type_.schema_id)}", ""]
        if type_.description:
            lines += [_cell(type_.description), ""]
        for review in ir.reviews:
            if review.type_name == type_.name:
                field = f"`{_cell(review.field)}`: " if review.field else ""
                where = f"(`{_cell(review.where)}`)"
                lines.append(f"- **REVIEW** {field}{_cell(review.message)} {where}")
                lines += [*(f"  - {_cell(line)}" for line in review.detail.splitlines()), ""]
        if type_.kind == "enum":
            lines += ["| value |", "|---|"]
            lines += [f"| {_code(str(value))} |" for value in type_.enum_values]
        elif type_.kind == "alias":
            lines.append(_code(irs.show_expression(type_.fields[0].type)))
        elif type_.fields:
            lines.append("| field | type | required | nullable | description |")
            lines += ["|---|---|---|---|---|", *map(_row, type_.fields)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(field: irs.FieldIR) -> str:
    marks = ("deprecated", "read_only", "write_only")
    notes = [f"*{mark.replace('_', '-')}*" for mark in marks if getattr(field, mark)]
    notes.append(_cell(field.description or ""))
    required, nullable = ("yes" if flag else "" for flag in (field.required, field.nullable))
    name, kind = _code(field.json_name), _code(irs.show_expression(field.type))
    return f"| {name} | {kind} | {required} | {nullable} | {' '.join(notes).strip()} |"


def _cell(text: str) -> str:
    """Return document text on one line, unable to end a cell or a heading, or to be markup."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def _code(text: str) -> str:
    """Return document text as a code span, in which nothing is markup and nothing is escaped."""
    return "`" + " ".join(text.split()).replace("|", "\\|").replace("`", "'") + "`"
