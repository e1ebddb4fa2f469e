"""Instances of the types of a store, as its document allows them, the same every time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from pytest_regen.canonical import canonical_hash
from pytest_regen.documents.digests import document_at, document_digests
from pytest_regen.documents.ir import TypeIR, referenced_names, type_hash, without_aliases
from pytest_regen.documents.places import JsonNode
from pytest_regen.errors import NoInstanceError, RegenError, UnknownTypeError
from pytest_regen.strategies.plans import Plan, Plans
from pytest_regen.strategies.samples import Samples
from pytest_regen.strategies.translation import Translation
from pytest_regen.strategies.violations import Skipped, Violation, find_violations

if TYPE_CHECKING:
    from pytest_regen.cache import Cache
    from pytest_regen.stores import RegenStore

Json = Any
_VERSION: Final = 5
"""Raised with every change of what is drawn, or of how it is kept."""
_SECTION: Final = "instances"


@dataclass(frozen=True, slots=True)
class Instances:
    """JSON values to try one type of a store by."""

    valid: tuple[Json, ...] = ()
    """What the document allows, all different: the least, the whole, every property through its
    own values, then mixed. Fewer than asked for where the schema allows no more."""
    invalid: tuple[Violation, ...] = ()
    """For each field, by each keyword that the IR keeps: the valid with one thing wrong."""
    skipped: tuple[Skipped, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what the cache keeps."""
        kept: dict[str, Any] = _reader().dump_python(self)
        return kept

    @classmethod
    def from_json(cls, data: Any) -> "Instances | None":
        """Return what the cache kept; ``None`` where it is something else."""
        try:
            return _reader().validate_python(data)
        except ValidationError:
            return None


@cache
def _reader() -> TypeAdapter[Instances]:
    return TypeAdapter(Instances)


def _document_path(store: "RegenStore") -> Path:
    """Return where the document of a store lies; ``""`` leads to the folder where there is none."""
    return document_at(store.path, store.ir.document.path if store.ir.document else "")


def instances_of(
    store: "RegenStore | Path | str",
    type_name: str | None = None,
    count: int = 100,
    *,
    cache: "Cache | None" = None,
) -> Instances:
    """Return instances of one type of a store.

    Args:
        store: the store, or its folder.
        type_name: the declared name; the root by default.
        count: how many valid ones, where the schema allows that many.
        cache: where they are kept, by the hash of the type and of the schemas it reaches.

    Raises:
        StoreError: there is no store, or it cannot be read.
        UnknownTypeError: it has no such type.
    """
    opened = open_store(store)
    name = resolve_type(opened, type_name)
    return instances_of_store(opened, count, cache=cache, types=[name])[name]


def instances_of_store(
    store: "RegenStore | Path | str",
    count: int = 100,
    *,
    cache: "Cache | None" = None,
    types: Iterable[str] | None = None,
) -> Mapping[str, Instances]:
    """Return instances of several types of a store by name: of all, if none are named.

    The document is read once, and not at all where the cache has everything.

    Raises:
        StoreError: there is no store, or it cannot be read.
    """
    opened = open_store(store)
    by_name = {type_.name: type_ for type_ in opened.ir.types}
    hashes = {name: type_hash(type_) for name, type_ in by_name.items()}
    is_request = opened.ir.endpoint.status == "request"
    base = [_VERSION, count, opened.ir.language, is_request, _files(opened)]
    # One for all, because types share the schemas that they are made of.
    source = Source(opened)
    instances: dict[str, Instances] = {}
    for name in by_name if types is None else types:
        key = canonical_hash(
            [*base, name, sorted(hashes[inner] for inner in _reach(name, by_name))]
        )
        cached = Instances.from_json(cache.get(_SECTION, key)) if cache else None
        instances[name] = cached or source.instances(name, count)
        if cache is not None and cached is None:
            cache.put(_SECTION, key, instances[name].to_json())
    return instances


def instances_key(store: "RegenStore", count: int = 100) -> str:
    """Return a hash that changes with whatever the instances of a store depend on.

    Of the document only the bytes are looked at: neither is it parsed, nor anything drawn.
    """
    ir = store.ir
    types = [type_hash(type_) for type_ in ir.types]
    endpoint = ir.endpoint.model_dump(mode="json")
    return canonical_hash([_VERSION, count, ir.language, endpoint, ir.format, types, _files(store)])


def _files(store: "RegenStore") -> Mapping[str, str | None]:
    """Return the hashes of the files that a document consists of."""
    reference = store.ir.document
    return {} if reference is None else document_digests(_document_path(store))


def _reach(name: str, types: Mapping[str, TypeIR]) -> set[str]:
    """Return a type and those that it is made of, directly or not."""
    reached, waiting = {name}, [name]
    while waiting:
        for field in types[waiting.pop()].fields:
            new = {*referenced_names(field.type)} - reached
            reached |= new
            waiting += new
    return reached


def open_store(store: "RegenStore | Path | str") -> "RegenStore":
    """Return a store that was opened already, or the one in a folder."""
    from pytest_regen.stores import RegenStore

    return store if isinstance(store, RegenStore) else RegenStore.open(store)


def resolve_type(store: "RegenStore", name: str | None) -> str:
    """Return the declared name of a type; that of the root where none is given."""
    if name is not None:
        return store.resolve_type(name)
    root = store.ir.root
    if root is None:
        raise UnknownTypeError(
            f"{store.path} has no root type", hint=f"name one of: {', '.join(store.type_names)}"
        )
    return root.name


class Source:
    """The document of a store, and the schemas that its types were read from."""

    def __init__(self, store: "RegenStore") -> None:
        self._store = store
        self._types = {type_.name: type_ for type_ in store.ir.types}
        self._plain_types = without_aliases(store.ir.types)
        self._samples = Samples()

    @cached_property
    def _plans(self) -> Mapping[str, Callable[[], Plan]] | str:
        """What makes the plan of each type that is what it was; or why nothing can."""
        from pytest_regen.documents import rebuild_ir
        from pytest_regen.documents.document import read_shared_document
        from pytest_regen.languages import find_language

        ir = self._store.ir
        if ir.document is None:
            return "the store does not say which document it was made from"
        try:
            document = read_shared_document(_document_path(self._store))
            language = find_language(ir.language)
            build = rebuild_ir(ir, document, language=language)
        except RegenError as error:
            return f"{error.what}: {error.why}" if error.why else error.what
        translation = Translation(
            document,
            direction="request" if ir.endpoint.status == "request" else "response",
            has_subtypes=language.has_unions,
        )
        # Compared by type, because a change elsewhere makes no instance of this one wrong.
        now = {type_.name: type_hash(type_) for type_ in build.ir.types}
        changed = {name for name in self._types if now.get(name) != type_hash(self._types[name])}
        plans = Plans()

        def make(node: JsonNode) -> Plan:
            return plans.plan(translation.schema(node))

        makers: dict[str, Callable[[], Plan]] = {}
        for name, type_ in self._types.items():
            if changed.isdisjoint(_reach(name, self._types)):
                node = build.schemas[name]
                # Because what discriminators make of a type, the IR alone knows.
                translation.tags[id(node.value)] = {
                    field.json_name: [field.constraints["const"]]
                    for field in type_.fields
                    if isinstance(field.constraints.get("const"), str | int)
                }
                makers[name] = partial(make, node)
        return makers

    def plan(self, name: str) -> Plan:
        """Return the plan of a type.

        Raises:
            NoInstanceError: there is none.
        """
        plans = self._plans
        if not isinstance(plans, str) and name in plans:
            return plans[name]()
        reference = self._store.ir.document
        document = Path(reference.path).name if reference else "the document"
        why = (
            f"{document} has changed since it was generated; "
            "bring the store up to date with pytest-regen generate"
        )
        raise NoInstanceError(
            f"there are no instances of {name} in {self._store.path}",
            why=plans if isinstance(plans, str) else why,
            hint="check the document, then run pytest-regen generate again",
        )

    def instances(self, name: str, count: int) -> Instances:
        """Return the instances of a type; none, with a reason, where none can be drawn."""
        type_ = self._plain_types[name]

        def is_fit(value: Json) -> bool:
            # The schema may allow null and others as well, which are none of this type.
            if type_.kind == "object":
                return isinstance(value, dict)
            return value is not None if type_.kind == "alias" else value in type_.enum_values

        try:
            plan = self.plan(name)
            valid = self._samples.of(plan, count, is_fit)
            if valid:
                invalid, skipped = find_violations(type_, self._plain_types, valid, plan)
                return Instances(tuple(valid), tuple(invalid), tuple(skipped))
            reason = plan.why_nothing
        except NoInstanceError as error:
            reason = error.why
        except RecursionError:
            reason = "its schemas are nested too deeply, or lead on without end"
        # One type fails alone, because the others of the document may be in order.
        except Exception as error:  # noqa: BLE001 - a document may say anything at all
            reason = f"its schemas cannot be used: {type(error).__name__}: {error!s:.200}"
        return Instances(skipped=(Skipped("", "", reason or ""),))
