"""Planning laws: nothing is lost, nothing moves without need, and pages keep their size."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kite_ir import field_named, kite_ir

from pytest_regen.documents.ir import FieldIR, TypeIR
from pytest_regen.errors import UsageError
from pytest_regen.languages import find_language
from pytest_regen.prompts import (
    Plan,
    build_prompts,
    page_content_hash,
    plan_from_entries,
    plan_pages,
)
from pytest_regen.prompts.plan import (
    HARD_LIMIT,
    TARGET_TOKENS,
    _fill,
    unit_lines,
)
from pytest_regen.turns.values import estimate_tokens

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
        type_,
        language=CSHARP,
        stored=stored,
        fields_per_page=per_page,
        target_tokens=target,
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


@given(types, st.integers(1, 20))
def test_a_given_size_is_never_exceeded(type_: TypeIR, per_page: int) -> None:
    """``fields_per_page`` is a limit for fields and enum values, met by all pages but the last."""
    pages = plan(type_, per_page=per_page)

    assert all(len(page) == per_page for page in pages[:-1])
    assert len(pages[-1]) <= per_page


@given(types)
def test_pages_keep_the_target(type_: TypeIR) -> None:
    """A page asks for no more than the target, unless one field alone is larger."""
    lines = unit_lines(type_, CSHARP)
    for page in plan(type_, target=SMALL):
        asked = sum(estimate_tokens(lines[unit].text) for unit in page)
        assert asked <= SMALL or len(page) == 1


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


@given(objects.filter(lambda type_: bool(type_.fields)), st.data())
def test_a_removed_field_leaves_its_own_page_only(type_: TypeIR, data: st.DataObject) -> None:
    """The others stay where they were; a page left empty goes."""
    old = plan(type_, target=SMALL)
    gone = data.draw(st.sampled_from(type_.units))
    kept = tuple(field for field in type_.fields if field.json_name != gone)
    pages = plan(type_.model_copy(update={"fields": kept}), stored=old, target=SMALL)
    left = [tuple(unit for unit in page if unit != gone) for page in old]

    assert pages == (tuple(filter(None, left)) or ((),))


def test_an_added_field_keeps_the_number_of_pages() -> None:
    """While pages are within the hard limit, a new field joins one of them."""
    type_ = plain(40)
    pages = old = plan(type_)
    for number in range(len(type_.fields)):
        type_ = with_field(type_, number, field_named(f"later_{number:03}"))
        before, pages = pages, plan(type_, stored=pages)
        assert len(changed(before, pages)) == 1
        assert len(pages) == len(old)


def test_beyond_the_hard_limit_a_page_is_added_at_the_end() -> None:
    """When no page can take it, the new field gets a page of its own and the others stay."""
    type_ = plain(12)
    old = plan(type_)
    huge = field_named("h" * 3500 * HARD_LIMIT)
    pages = plan(with_field(type_, 0, huge), stored=old)

    assert pages == (*old, (huge.json_name,))


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


def test_enum_values_weigh_less_than_fields() -> None:
    """More values than fields fit a page, because their lines and their code are shorter."""
    values = tuple(f"value_{number:03}" for number in range(100))
    enum = TypeIR(name="Hue", schema_id="#", kind="enum", enum_values=values)

    assert len(plan(enum)[0]) > len(plan(plain(100))[0])


def test_a_type_added_elsewhere_moves_no_field() -> None:
    """A plan depends on its own type alone."""
    ir = kite_ir()
    more = ir.model_copy(update={"types": (*ir.types, plain(50))})

    before = plan_from_entries(build_prompts(ir, language=CSHARP))
    after = plan_from_entries(build_prompts(more, language=CSHARP))

    assert after == {**before, "Kite": after["Kite"]}


@pytest.mark.parametrize("option", ["fields_per_page", "target_tokens"])
def test_a_size_without_room_is_refused(option: str) -> None:
    """Zero or less per page is wrong usage, not a plan without pages."""
    ir = kite_ir()
    with pytest.raises(UsageError, match="leaves no room"):
        plan_pages(ir.types[0], language=CSHARP, **{option: 0})  # type: ignore[arg-type]


def test_a_larger_stored_page_yields_to_a_given_size() -> None:
    """A limit asked for now wins over a plan made without it."""
    type_ = plain(30)

    assert plan(type_, stored=plan(type_), per_page=4) == plan(type_, per_page=4)


def test_the_plan_is_read_back_from_prompts() -> None:
    """The entries of a store are all that is needed to plan it again the same way."""
    ir = kite_ir()
    entries = build_prompts(ir, language=CSHARP, fields_per_page=7)

    assert build_prompts(ir, language=CSHARP, stored_plan=plan_from_entries(entries)) == entries


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


def test_the_first_page_carries_the_type_itself() -> None:
    """A new description asks for page 1; another key asks for every page that could hold it."""
    type_ = plain(40)
    told = type_.model_copy(update={"description": "Other words."})
    pages = plan(type_)

    assert hashes(told, pages)[0] != hashes(type_, pages)[0]
    assert hashes(told, pages)[1:] == hashes(type_, pages)[1:]


def test_a_value_beyond_32_bits_asks_for_the_declaration_too() -> None:
    """Page 1 of an enum of integers is declared for the values of every page."""
    small = TypeIR(name="Hue", schema_id="#", kind="enum", enum_values=tuple(range(90)))
    large = small.model_copy(update={"enum_values": (*range(90), 2**40)})
    page = plan(small)[0]

    assert page_content_hash(small, page, first=True) != page_content_hash(large, page, first=True)


def test_a_new_unit_fills_the_last_page_to_the_brim(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to an emptier page only where it does not fit, and to none beyond the hard limit."""
    weights = {"a": 10, "b": 95, "c": 5, "d": 190, "e": 200}
    monkeypatch.setattr("pytest_regen.prompts.plan._weights", lambda *_: weights)
    type_ = TypeIR(name="Hue", schema_id="#", kind="enum", enum_values=tuple(weights))

    pages = plan(type_, stored=(("a",), ("b",)), target=100)

    assert pages == (("a", "d"), ("b", "c"), ("e",))


def test_a_page_is_filled_to_its_capacity() -> None:
    """What fits exactly is on the page; one more begins the next."""
    weights: dict[str | int, int] = {"a": 4, "b": 6, "c": 1}

    assert _fill(["a", "b"], weights, 10) == (("a", "b"),)
    assert _fill(["a", "b", "c"], weights, 10) == (("a", "b"), ("c",))
