"""A store of five types that use one another, with the right output for each page."""

from pathlib import Path

from store_factory import FACTORY_IR, GOOD, make_store

from pytest_regen.documents.ir import ArrayOf, FieldIR, Ref, TypeIR
from pytest_regen.stores import RegenStore

HARBOUR_IR = FACTORY_IR.model_copy(
    update={
        "types": (
            *FACTORY_IR.types,
            TypeIR(
                name="Berth",
                schema_id="#/components/schemas/Berth",
                kind="object",
                fields=(
                    FieldIR(json_name="owners", type=ArrayOf(items=Ref(name="Owner"))),
                    FieldIR(json_name="state", type=Ref(name="State")),
                ),
            ),
            TypeIR(
                name="Tide",
                schema_id="#/components/schemas/Tide",
                kind="object",
                fields=(FieldIR(json_name="berth", type=Ref(name="Berth")),),
            ),
        )
    }
)
"""The three types of the factory, ``Berth`` which uses two of them, and ``Tide`` which uses it."""

HARBOUR = {
    **GOOD,
    ("Berth", 1): """\
public class Berth
{
    [JsonPropertyName("owners")]
    public List<Owner>? Owners { get; set; }

    [JsonPropertyName("state")]
    public State? State { get; set; }
}""",
    ("Tide", 1): """\
public class Tide
{
    [JsonPropertyName("berth")]
    public Berth? Berth { get; set; }
}""",
}
"""What a model that makes no mistake wrote, by type and page."""


def harbour_store(path: Path, wrong: dict[tuple[str, int], str] | None = None) -> RegenStore:
    """Return a complete store in the new folder ``path``; see ``store_factory.make_store``."""
    return make_store(path, {**HARBOUR, **(wrong or {})}, ir=HARBOUR_IR)
