"""When two JSON values are the same for a type."""

import json
from typing import Any

from tables import each

from pytest_regen.behaviour.same import (
    ABSENT,
    Step,
    differences,
    prune,
)
from pytest_regen.documents.ir import (
    ArrayOf,
    FieldIR,
    MapOf,
    Ref,
    Scalar,
    TypeExpr,
    TypeIR,
    UnionOf,
)
from pytest_regen.languages.runner import Traits
from pytest_regen.strict_json import strict_loads

STRING = Scalar(kind="string")
ANY = Scalar(kind="any")


def type_of(**fields: TypeExpr) -> TypeIR:
    """Return an object type with these fields."""
    return TypeIR(
        name="Ship",
        schema_id="#/Ship",
        kind="object",
        fields=tuple(FieldIR(json_name=name, type=type_) for name, type_ in fields.items()),
    )


def are_same(
    expected: Any,
    actual: str,
    expression: TypeExpr,
    traits: Traits = Traits(),  # noqa: B008
) -> bool:
    """Return whether a text is the same value for a field of a type."""
    type_ = type_of(x=expression)
    found = differences(
        {"x": expected}, {"x": strict_loads(actual, decimals=True)}, type_, {"Ship": type_}, traits
    )
    return not list(found)


@each(
    ("expected", "actual", "expression", "same"),
    [
        (1, "1.0", Scalar(kind="integer"), True),
        (1, "true", Scalar(kind="integer"), False),
        (2**53 + 1, str(2**53), Scalar(kind="integer"), False),
        (0.1, "0.1000000000000000001", Scalar(kind="number"), True),
        (0.1, "0.1000000000000000001", Scalar(kind="number", format="decimal"), False),
        ("1.10", '"1.1"', Scalar(kind="string", format="decimal"), True),
        (None, '""', STRING, False),
        ("P1D", '"PT24H"', Scalar(kind="string", format="duration"), True),
        ("P1M", '"P30D"', Scalar(kind="string", format="duration"), False),
        ("::1", '"0:0:0:0:0:0:0:1"', Scalar(kind="string", format="ipv6"), True),
        ({"a": 1, "b": 2}, '{"b": 2.0, "a": 1}', MapOf(values=ANY), True),
        ({"a": None}, "{}", MapOf(values=ANY), False),
    ],
)
def test_values_are_compared_by_what_they_mean(
    expected: Any,
    actual: str,
    expression: TypeExpr,
    same: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """Numbers by value, texts exactly unless their format has several spellings."""
    assert are_same(expected, actual, expression) is same


@each(
    ("actual", "same", "as_instant"),
    [
        ("2024-05-01T12:00:00+02:00", True, True),
        ("2024-05-01T10:00:00Z", False, True),
        ("2024-05-01T12:00:00Z", False, False),
    ],
)
def test_times_are_compared_by_instant(
    actual: str,
    same: bool,  # noqa: FBT001 - a parameter of the table
    as_instant: bool,  # noqa: FBT001 - the same
) -> None:
    """And by offset, where the code keeps it."""
    moment, when = Scalar(kind="string", format="date-time"), "2024-05-01T12:00:00+02:00"

    assert are_same(when, json.dumps(actual), moment) is same
    assert are_same(when, json.dumps(actual), moment, Traits(keeps_offset=False)) is as_instant


def test_absence_is_not_null() -> None:
    """Unless the code cannot tell one from the other."""
    type_ = type_of(x=STRING)

    [found] = differences({}, {"x": None}, type_, {}, Traits())
    blind = differences({}, {"x": None}, type_, {}, Traits(tells_absence=False))

    assert (found.expected, found.actual) == (ABSENT, None)
    assert not list(blind)


def test_the_tag_says_which_option_of_a_union_is_meant() -> None:
    """Another option, which lacks the field that was changed, would find no difference."""
    cup, purse = (
        TypeIR(
            name=name,
            schema_id=f"#/{name}",
            kind="object",
            fields=(
                FieldIR(json_name="kind", type=STRING, constraints={"const": name}),
                *(type_of(x=ANY).fields if name == "Cup" else ()),
            ),
        )
        for name in ("Cup", "Purse")
    )
    prize = type_of(prize=UnionOf(options=(Ref(name="Purse"), Ref(name="Cup"))))
    types = {"Cup": cup, "Purse": purse, "Ship": prize}
    before, after = ({"prize": {"kind": "Cup", "x": x}} for x in (1, 2))

    [found] = differences(before, after, prize, types, Traits())

    assert found.steps == (Step("Ship", "prize"), Step("Cup", "x"))


@each("actual", [{"x": "a", "more": 1.0}, {"x": "a", "more": 2}, {"x": "a"}])
def test_what_has_no_field_is_missed_where_the_code_keeps_it(actual: dict[str, Any]) -> None:
    """By the base class of its models, say: an API may add a property some day."""
    before, type_ = {"x": "a", "more": 1}, type_of(x=STRING)
    found = [*differences(before, actual, type_, {}, Traits(keeps_more=True))]

    wrong = [] if actual.get("more") == 1 else [(Step("Ship", "more"),)]
    assert [difference.steps for difference in found] == wrong
    assert not list(differences(before, {"x": "a"}, type_, {}, Traits()))
    assert list(differences({"x": "a"}, before, type_, {}, Traits()))


def test_properties_that_the_ir_left_out_can_be_taken_out() -> None:
    """For code that takes no others, at every depth."""
    hull = TypeIR(name="Hull", schema_id="#/Hull", kind="object", fields=type_of(m=ANY).fields)
    ship = type_of(hulls=ArrayOf(items=Ref(name="Hull")), tags=MapOf(values=STRING))
    given_ = {"hulls": [{"m": {"any": 1}, "more": 1}], "tags": {"x": "y"}, "more": 2}

    pruned = prune(given_, ship, {"Hull": hull, "Ship": ship})

    assert pruned == {"hulls": [{"m": {"any": 1}}], "tags": {"x": "y"}}
