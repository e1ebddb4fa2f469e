"""``pages.json`` and ``prompts.json`` as values: what they hold, how they are read and written."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from pytest_regen.canonical import canonical_hash, text_hash
from pytest_regen.commit import now
from pytest_regen.documents.ir import IR, ir_hash
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE, PAGES_FILE, PROMPTS_FILE
from pytest_regen.strict_json import Node, as_json, corrupt, parse_json
from pytest_regen.turns.values import Usage

SCHEMA_FILE = "schema.md"

_VERSION = 1

_NO_INDEX = -1

_ARTIFACT_NAMES = frozenset({"history", IR_FILE, PAGES_FILE, PROMPTS_FILE, SCHEMA_FILE})


def read_ir(value: Any, file: Path) -> IR:
    """Return the IR that ``file`` holds as this value; raises StoreCorruptError."""
    try:
        return IR.of(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        steps = (f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
        value = repr(first["input"])[:80]
        raise corrupt(file, "$" + "".join(steps), f"{first['msg']}, found {value}") from None
    except AttributeError:
        raise corrupt(file, "$", "expected an object") from None


def ir_as_json(ir: IR) -> bytes:
    """Return ``ir.json``: the value of an IR, and one line of findings for each of its types.

    Types without findings have their line, too, and a blank line stands between any two: so git
    merges branches that found something in different types. Blocks without a type come first, so
    that no other line changes with them.
    """
    findings = ir.validation or {}
    by_name = {type_.name: findings.get(type_.name, []) for type_ in ir.types}
    lines = [
        f"    {json.dumps(name, ensure_ascii=False)}: "
        + json.dumps(listed, ensure_ascii=False, allow_nan=False)
        for name, listed in {
            **{name: findings[name] for name in sorted(findings.keys() - by_name.keys())},
            **by_name,
        }.items()
    ]
    head = as_json({**ir.to_json(), "validation": {}}).removesuffix(b"{}\n}\n")
    return head + "{{\n\n{}\n  }}\n}}\n".format(",\n\n".join(lines)).encode()


def describe_page(key: PageKey) -> str:
    """Return a page's identity in words."""
    return f"{key.type_name}, page {key.page} of {key.total_pages}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPage:
    """One entry of ``pages.json``: what a model wrote for one page, and how."""

    index: int
    """Place in the plan, from 0, when it was first written; -1 before. Nothing is found by it."""
    type_name: str
    """The type, as the source declares it."""
    is_root: bool
    """Whether the type is that of the response itself."""
    page: int
    """Counts from 1."""
    total_pages: int
    """Of this type."""
    model: str
    """Who wrote it; ``hand`` where an edit was adopted."""
    generated_at: str
    """UTC, to the second."""
    input_tokens: int | None
    """Of all calls that the output took; neither read from nor written to the prompt cache."""
    output_tokens: int | None
    """Of all calls that the output took."""
    cache_read_input_tokens: int | None
    """Read from the prompt cache."""
    cache_creation_input_tokens: int | None
    """Written to the prompt cache."""
    stop_reason: str | None = None
    """Of the last reply, as the Messages API words it."""
    attempt: int = 1
    """Running number of this page's outputs, from 1."""
    provider: str | None = None
    """Who was asked, as ``module:name``; ``None`` where that was the Messages API."""
    shared_from: str | None = None
    """Folder of the store beside this one whose page this is a copy of: it has the same prompt."""
    prompt_hash: str | None
    """Of the prompt that was answered."""
    type_hash: str | None
    """Of the type's IR when it was answered; where the IR has another, the page is stale."""
    output_hash: str
    """Of ``output``; another one means that the entry was edited."""
    output: str
    """The code, as it was taken out of the reply."""

    @classmethod
    def of(
        cls, prompt: PromptEntry, output: str, *, usage: Usage | None = None, **facts: Any
    ) -> Self:
        """Return the page that ``output`` makes of ``prompt``, its hash computed.

        Args:
            prompt: what was answered.
            output: the code extracted from the reply.
            usage: tokens of all calls that the output took.
            **facts: ``model``; ``type_hash``, of the IR that the prompt was made from
                (``documents.ir.type_hash``); where they are known ``stop_reason``, ``attempt``,
                ``generated_at`` (as ``now()`` gives it, which is the default), ``provider`` and
                ``shared_from``.
        """
        usage = usage or Usage()
        facts["generated_at"] = facts.get("generated_at") or now()
        # Half surrogate pairs go, because a reply may hold them and no file can.
        output = output.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return cls(
            index=_NO_INDEX,
            type_name=prompt.type_name,
            is_root=prompt.is_root,
            page=prompt.page,
            total_pages=prompt.total_pages,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_input_tokens=usage.cache_read_tokens,
            cache_creation_input_tokens=usage.cache_write_tokens,
            prompt_hash=prompt.prompt_hash,
            output_hash=text_hash(output),
            output=output,
            **facts,
        )

    @property
    def key(self) -> PageKey:
        """The identity of the page."""
        return PageKey(self.type_name, self.page, self.total_pages)

    @property
    def is_tampered(self) -> bool:
        """Whether the output is another than the one that was stored: edited in ``pages.json``."""
        return self.output_hash != text_hash(self.output)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``pages.json``, keys in the order of the format."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.shared_from is None:
            del data["shared_from"]
        return data


@dataclass(frozen=True, slots=True)
class PagesEnvelope:
    """``pages.json`` as a whole."""

    version: int
    """Of the format: 1."""
    endpoint: Mapping[str, str]
    """``method`` and ``path``."""
    language: str
    """The target language."""
    namespace: str | None
    """Of the source, in languages that have namespaces."""
    profile: str
    """The profile of the language."""
    boundary_tag: str
    """The word in boundary lines; ``REGEN`` in stores made here."""
    # Stores of schemas hold so many types that two branches would both change this hash.
    ir_hash: str | None
    """Of the IR that the prompts were made from; absent in stores of schemas."""
    generated_at: str
    """When the store was made."""
    model: str
    """The one that answered last; empty before the first page."""
    source_file: str
    """Name of the source file in the folder."""
    pages: tuple[StoredPage, ...] = ()
    """In the order of types and pages."""

    def to_json(self) -> dict[str, Any]:
        """Return the value of ``pages.json``."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["endpoint"] = dict(self.endpoint)
        data["pages"] = [page.to_json() for page in self.pages]
        if self.ir_hash is None:
            del data["ir_hash"]
        return data

    def with_pages(
        self, pages: Iterable[StoredPage], plan: Iterable[PromptEntry | StoredPage]
    ) -> "PagesEnvelope":
        """Return the same envelope around ``pages``, new ones numbered as in the plan.

        No other page gets another number, because each would be a line in a review, and in
        conflict with what a branch added elsewhere.
        """
        numbers = {page.key: page.index for page in self.pages}
        places = {entry.key: number for number, entry in enumerate(plan)}
        pages = [
            replace(page, index=numbers.get(page.key, _NO_INDEX)) if page.index < 0 else page
            for page in pages
        ]
        used = {page.index for page in pages}
        for number, page in enumerate(pages):
            if page.index < 0:
                place = places[page.key]
                # Its place in the plan if that is free, because people read them in this order.
                free = place if place not in used else max(len(places), *used) + 1
                used.add(free)
                pages[number] = replace(page, index=free)
        return replace(self, pages=tuple(pages))


def read_pages(data: bytes, file: Path) -> PagesEnvelope:
    """Return the envelope in ``data``.

    Raises:
        StoreCorruptError: it is not one, or a page is in it twice.
    """
    node = Node(parse_json(data, file), file)
    version = node.count("version", least=1)
    if version != _VERSION:
        raise node.error("version", f"version {version} was written by a newer pytest-regen")
    endpoint = node.node("endpoint")
    name = node.text("source_file")
    # Some file systems take no notice of case, nor of dots and blanks at the end.
    plain = name.casefold().rstrip(". ")
    # A hidden one neither, because the store needs those while it is written.
    if not plain or name[0] == "." or set(name) & set("/\\:\0") or plain in _ARTIFACT_NAMES:
        raise node.error("source_file", f"{name!r} is not a plain file name for a source")
    pages: dict[PageKey, StoredPage] = {}
    for number, value in enumerate(node.list("pages")):
        entry = Node(value, file, f"$.pages[{number}]")
        # Keys beyond the requirement's may be absent.
        defaults = {"index": 0, "output_hash": text_hash(entry.text("output"))}
        page = StoredPage(**entry.values(StoredPage, defaults))
        if page.key in pages:
            what = f"{describe_page(page.key)} is there twice"
            raise corrupt(file, f"$.pages[{number}]", what)
        pages[page.key] = page
    return PagesEnvelope(
        endpoint={"method": endpoint.text("method"), "path": endpoint.text("path")},
        pages=tuple(pages.values()),
        **node.values(PagesEnvelope, {"profile": "default", "boundary_tag": "REGEN"}),
    )


def read_prompts(data: bytes, file: Path) -> tuple[PromptEntry, ...]:
    """Return the entries in ``data``, each type's pages complete.

    Raises:
        StoreCorruptError: it is no list of prompts, or a page is missing or there twice.
    """
    value = parse_json(data, file)
    if not isinstance(value, list):
        raise corrupt(file, "$", "expected an array of prompts")
    entries = []
    for number, item in enumerate(value):
        node = Node(item, file, f"$[{number}]")
        asked = {"system": node.text("system"), "user": node.text("user")}
        units = tuple(node.list("fields", ()))
        defaults = {"fields": units, "prompt_hash": canonical_hash(asked)}
        entries.append(PromptEntry(**node.values(PromptEntry, defaults)))
    by_type: dict[str, list[PageKey]] = {}
    for entry in entries:
        by_type.setdefault(entry.type_name, []).append(entry.key)
    for keys in by_type.values():
        for page, key in enumerate(sorted(keys), 1):
            if (key.page, key.total_pages) != (page, len(keys)):
                what = f"{describe_page(key)} does not fit: there are {len(keys)} pages"
                raise corrupt(file, "$", what)
    return tuple(entries)


def check_staleness(pages_json: Mapping[str, Any], ir_json: Mapping[str, Any]) -> bool:
    """Return whether ``pages.json`` was generated from a different IR than ``ir.json``.

    Takes the values of the two files as they are: the IR need not be valid. Each page says what
    its type was; where one does not, the hash of the whole IR decides, without the validation
    summary in it. Which types are stale, ``RegenStore.is_stale`` says.
    """
    pages = pages_json.get("pages") or []
    if not pages or any(page.get("type_hash") is None for page in pages):
        return pages_json.get("ir_hash") != ir_hash(ir_json)
    hashes = {type_["name"]: canonical_hash(type_) for type_ in ir_json["types"]}
    return any(hashes.get(page["type_name"]) != page["type_hash"] for page in pages)
