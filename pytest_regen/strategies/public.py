"""Hypothesis strategies for tests of one's own: data shaped as an API description says."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.errors import NoInstanceError
from pytest_regen.extras import needs
from pytest_regen.strategies import instances
from pytest_regen.strategies.plans import ObjectOption, Plan, Plans
from pytest_regen.strategies.samples import Samples
from pytest_regen.strategies.translation import Direction, Translation

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from pytest_regen.stores import RegenStore
    from pytest_regen.strategies.violations import Violation

Json = Any
_CHOSEN: Final = 6
_MOST: Final = 400
"""Values that are chosen from; objects are put together anew each time."""


def valid(store: "RegenStore | Path | str", type_name: str | None = None) -> "SearchStrategy[Json]":
    """Return a strategy of JSON values that the document of a store allows for one of its types.

    The store is opened when the first value is drawn, so that a decorator costs nothing.

    Args:
        store: an opened store, or its folder.
        type_name: the declared name of a type; the root by default.

    Raises, when the first value is drawn:
        StoreError: there is no store, or it cannot be read.
        UnknownTypeError: it has no such type.
        NoInstanceError: its document is not there or says something else by now, or the schema
            allows nothing.
    """
    folder = _absolute(store)

    def plan() -> Plan:
        opened = instances.open_store(folder)
        return instances.Source(opened).plan(instances.resolve_type(opened, type_name))

    return strategy_of(plan, f"{type_name or 'the root'} of {folder}")


def from_schema(
    document: Path | str, pointer: str, *, direction: Direction = "response"
) -> "SearchStrategy[Json]":
    """Return a strategy of JSON values that a schema of an API description allows.

    Args:
        document: an OpenAPI 3.0 or 3.1 or a Swagger 2.0 document, JSON or YAML.
        pointer: where the schema stands: ``#/components/schemas/Pet``, or after the name of
            another file of the document.
        direction: ``response`` leaves out what is only written, ``request`` what is only read.

    Raises, when the first value is drawn:
        DocumentUnreadableError: the file cannot be read.
        NoInstanceError: there is no such schema, or it allows nothing.
    """
    path = Path(document).absolute()

    def plan() -> Plan:
        from pytest_regen.documents import read_document
        from pytest_regen.documents.places import JsonNode, Pointer
        from pytest_regen.documents.reading import BrokenReference

        read = read_document(path)
        reference = JsonNode({"$ref": pointer}, Pointer())
        target = read.references.target(reference)
        if isinstance(target, BrokenReference):
            raise NoInstanceError(
                f"{path.name} has no schema at {pointer!r}",
                why=target.reason,
                hint="give the place of one: #/components/schemas/NAME, or #/definitions/NAME",
            )
        translation = Translation(read, direction=direction)
        translation.add_tags()
        return Plans().plan(translation.schema(reference))

    return strategy_of(plan, f"{pointer} of {path.name}")


def invalid(
    store: "RegenStore | Path | str", type_name: str | None = None
) -> "SearchStrategy[Violation]":
    """Return a strategy of instances with one thing wrong: each field, by each of its keywords.

    Args:
        store: an opened store, or its folder.
        type_name: the declared name of a type; the root by default.

    Raises, when the first value is drawn:
        StoreError, UnknownTypeError, NoInstanceError: as ``valid`` does.
    """
    with needs("strategies", "strategies"):
        from hypothesis import strategies as st
    folder = _absolute(store)

    def violations() -> "SearchStrategy[Violation]":
        of_type = instances.instances_of(folder, type_name)
        if not of_type.invalid:
            raise NoInstanceError(
                f"there is nothing that {type_name or 'the root'} of {folder} refuses",
                why="; ".join(skipped.reason for skipped in of_type.skipped),
                hint="run pytest-regen validate on the store",
            )
        return st.sampled_from(of_type.invalid)

    return st.deferred(violations)


def _absolute(store: "RegenStore | Path | str") -> "RegenStore | Path":
    # What the folder is called now is meant, wherever the test will run.
    return Path(store).absolute() if isinstance(store, str | Path) else store


def strategy_of(plan: Callable[[], Plan], what: str) -> "SearchStrategy[Json]":
    """Return a strategy of the values of a plan that is made when the first one is drawn.

    Args:
        plan: makes the plan.
        what: the schema, for messages.

    Raises, when the first value is drawn:
        NoInstanceError: there is none.
    """
    with needs("strategies", "strategies"):
        from hypothesis import strategies as st

    def strategy() -> "SearchStrategy[Json]":
        whole, samples = plan(), Samples()
        values = samples.of(whole, _MOST)
        if not values:
            raise NoInstanceError(
                f"no instance of {what} can be drawn",
                why=whole.why_nothing,
                hint="correct the schema in the document, or write a strategy for it",
            )
        objects: list[SearchStrategy[Json]] = []
        for option in whole.options if whole.is_exact else ():
            if isinstance(option, ObjectOption) and not option.is_map:
                pools = {name: samples.inside(p, 1) for name, p in option.properties.items()}
                # What stands first was chosen, null among it; what follows was thrown.
                fields = {
                    name: st.sampled_from(pool[:_CHOSEN]) | st.sampled_from(pool)
                    for name, pool in pools.items()
                    if pool
                }
                optional = {n: fields.pop(n) for n in [*fields] if n not in option.required}
                if fields.keys() == option.required:
                    objects.append(st.fixed_dictionaries(fields, optional=optional))
        # Not both: what is chosen whole could not be made smaller field by field.
        is_apart = objects and len(objects) == len(whole.options)
        drawn = st.one_of(objects) if is_apart else st.sampled_from(values)
        return drawn.filter(whole.allows)

    return st.deferred(strategy)
