"""Planning laws: nothing is lost, nothing moves without need, and pages keep their size."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kite_ir import field_named

from pytest_regen.documents.ir import FieldIR, TypeIR
from pytest_regen.errors import UsageError
from pytest_regen.languages import find_language
from pytest_regen.prompts import page_content_hash
from pytest_regen.prompts.plan import TARGET_TOKENS, Plan, UnitLine, plan_pages

CSHARP = find_language("csharp")

names = st.text(min_size=1, max_size=30)
fields = st.builds(
    lambda name, words: FieldIR(
        json_name=name, type=field_named("x").type, description="word " * words
    ),
    names,
    st.integers(0, 200),
)
objects = st.lists(fields, max_size=60, unique_by=lambda field: field.json_name).map(
    lambda found: TypeIR(name="Kite", schema_id="#", kind="object", fields=tuple(found))
)
enums = st.lists(st.one_of(names, st.integers()), max_size=150, unique=True).map(
    lambda found: TypeIR(name="Hue", schema_id="#", kind="enum", enum_values=tuple(found))
)
types = st.one_of(objects, enums)


SMALL = 200
"""A target small enough that few fields make several pages."""


def plan(
    type_: TypeIR,
    stored: Plan | None = None,
    per_page: int | None = None,
    target: int = TARGET_TOKENS,
) -> Plan:
    """Plan one type in a store of its own."""
    return plan_pages(
        type_, language=CSHARP, stored=stored, fields_per_page=per_page, target_tokens=target
    )


def plain(count: int) -> TypeIR:
    """Return an object of ``count`` fields that weigh the same."""
    made = tuple(field_named(f"field_{number:03}") for number in range(count))
    return TypeIR(name="Kite", schema_id="#", kind="object", fields=made)


def with_field(type_: TypeIR, at: int, field: FieldIR) -> TypeIR:
    """Return the type with one field more."""
    kept = type_.fields
    return type_.model_copy(update={"fields": (*kept[:at], field, *kept[at:])})


def changed(old: Plan, new: Plan) -> list[int]:
    """Return the pages of ``new`` that are not pages of ``old``."""
    return [page for page, units in enumerate(new) if units not in old]


@given(types, st.none() | st.integers(1, 20))
def test_each_unit_stands_on_one_page_in_order(type_: TypeIR, per_page: int | None) -> None:
    """The pages, read one after another, are the fields or values as the document has them."""
    pages = plan(type_, per_page=per_page, target=SMALL)

    assert tuple(unit for page in pages for unit in page) == type_.units
    assert all(pages) or pages == ((),)
    assert per_page is None or all(len(page) <= per_page for page in pages)


@given(types, types)
def test_a_stored_plan_is_a_fixed_point(old: TypeIR, new: TypeIR) -> None:
    """Planned again from its own plan, a type keeps every page, whatever the plan came from."""
    pages = plan(new, stored=plan(old, target=SMALL), target=SMALL)

    assert sorted(map(repr, (unit for page in pages for unit in page))) == sorted(
        map(repr, new.units)
    )
    assert plan(new, stored=pages, target=SMALL) == pages


@given(objects, st.data(), st.none() | st.integers(1, 20))
def test_one_added_field_changes_one_page(
    type_: TypeIR, data: st.DataObject, per_page: int | None
) -> None:
    """Wherever the document puts it, a new field is on one page and no other page changes."""
    added = data.draw(fields.filter(lambda field: field.json_name not in type_.units))
    old = plan(type_, per_page=per_page, target=SMALL)
    new = with_field(type_, data.draw(st.integers(0, len(type_.fields))), added)
    pages = plan(new, stored=old, per_page=per_page, target=SMALL)

    assert len(changed(old, pages)) == 1
    assert added.json_name in pages[changed(old, pages)[0]]


def test_pages_are_balanced() -> None:
    """Equal fields are spread evenly: no full pages followed by a rest of one."""
    sizes = {len(page) for count in range(1, 120) for page in plan(plain(count))[:-1]}
    uneven = [
        count
        for count in range(1, 120)
        if max(map(len, plan(plain(count)))) - min(map(len, plan(plain(count))))
        > len(plan(plain(count)))
    ]

    assert sizes
    assert not uneven


def test_a_size_without_room_is_refused() -> None:
    """Zero or less per page is wrong usage, not a plan without pages."""
    with pytest.raises(UsageError, match="leaves no room"):
        plan(plain(1), per_page=0)


def hashes(type_: TypeIR, pages: Sequence[Sequence[str | int]]) -> list[str]:
    """Return the content hash of each page."""
    return [page_content_hash(type_, page, first=not number) for number, page in enumerate(pages)]


def test_only_the_page_of_a_changed_field_needs_asking() -> None:
    """One field added or changed changes one content hash; what only moves changes none."""
    type_ = plain(40)
    old = plan(type_)
    new = with_field(type_, 3, field_named("new"))
    after = plan(new, stored=old)
    last = type_.fields[-1].model_copy(update={"required": True})
    other = type_.model_copy(update={"fields": (*type_.fields[:-1], last)})
    backwards = type_.model_copy(update={"fields": type_.fields[::-1]})

    assert len(old) > 1
    assert len(set(hashes(new, after)) - set(hashes(type_, old))) == 1
    assert hashes(other, old)[:-1] == hashes(type_, old)[:-1]
    assert hashes(other, old)[-1] != hashes(type_, old)[-1]
    assert hashes(backwards, old) == hashes(type_, old)


def test_a_new_unit_fills_the_last_page_to_the_brim(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to an emptier page only where it does not fit, and to none beyond the hard limit."""
    weights = {"a": 10, "b": 95, "c": 5, "d": 190, "e": 200}
    lines = {unit: UnitLine("x", unit) for unit in weights}
    monkeypatch.setattr("pytest_regen.prompts.plan.unit_lines", lambda *_: lines)
    monkeypatch.setattr(
        "pytest_regen.prompts.plan.estimate_tokens", lambda text: weights.get(text[-1:], 0)
    )
    type_ = TypeIR(name="Hue", schema_id="#", kind="enum", enum_values=tuple(weights))

    pages = plan(type_, stored=(("a",), ("b",)), target=100)

    assert pages == (("a", "d"), ("b", "c"), ("e",))


def test_a_larger_stored_page_yields_to_a_given_size() -> None:
    """A limit asked for now wins over a plan made without it."""
    type_ = plain(30)

    assert plan(type_, stored=plan(type_), per_page=4) == plan(type_, per_page=4)


def test_the_first_page_carries_the_type_itself() -> None:
    """A new description asks for page 1; another key asks for every page that could hold it."""
    type_ = plain(40)
    told = type_.model_copy(update={"description": "Other words."})
    pages = plan(type_)

    assert hashes(told, pages)[0] != hashes(type_, pages)[0]
    assert hashes(told, pages)[1:] == hashes(type_, pages)[1:]
