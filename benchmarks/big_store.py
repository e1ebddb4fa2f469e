"""A store of any size, written without a model, for the benchmarks that need a large one."""

from pathlib import Path

from pytest_regen.documents.ir import IR, ArrayOf, Endpoint, FieldIR, Ref, Scalar, TypeIR, type_hash
from pytest_regen.languages import find_language
from pytest_regen.prompts import build_prompts
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.stores import RegenStore, StoredPage

__all__ = ["FIELDS", "make_store"]

FIELDS = 20
"""Fields of each type."""

_KINDS = (
    (Scalar(kind="string"), "string"),
    (Scalar(kind="integer", format="int64"), "long"),
    (Scalar(kind="boolean"), "bool"),
    (ArrayOf(items=Scalar(kind="string")), "IReadOnlyList<string>"),
)


def make_store(path: Path, types: int) -> RegenStore:
    """Write a store of ``types`` types with ``FIELDS`` fields each; return it."""
    ir = IR(
        endpoint=Endpoint(method="GET", path="/v1/large"),
        language="csharp",
        types=tuple(_type(number, types) for number in range(types)),
    )
    prompts = build_prompts(ir, language=find_language("csharp"))
    store = RegenStore.create(path, ir=ir, prompts=prompts, source_file="Large.cs")
    by_name = {type_.name: type_ for type_ in ir.types}
    pages = [_page(entry, by_name[entry.type_name]) for entry in prompts]
    with RegenStore.update(path) as tx:
        tx.write(pages=pages)
        tx.write(source=tx.store.assembly())
    return RegenStore.open(store.path)


def _type(number: int, types: int) -> TypeIR:
    fields = [
        FieldIR(json_name=f"field_{i}", type=_KINDS[i % len(_KINDS)][0], required=i % 2 == 0)
        for i in range(FIELDS - 1)
    ]
    neighbour = Ref(name=f"Type{(number + 1) % types}")
    return TypeIR(
        name=f"Type{number}",
        schema_id=f"#/components/schemas/Type{number}",
        kind="object",
        is_root=number == 0,
        fields=(*fields, FieldIR(json_name="next", type=neighbour)),
    )


def _page(entry: PromptEntry, type_: TypeIR) -> StoredPage:
    wanted = set(entry.fields)
    members = [_member(field) for field in type_.fields if field.json_name in wanted]
    body = "\n\n".join(members)
    if entry.page > 1:
        output = f"// BEGIN_FIELDS\n{body}\n// END_FIELDS"
    else:
        output = f"public class {type_.name}\n{{\n{body}\n}}"
    return StoredPage.of(entry, output, model="benchmark", type_hash=type_hash(type_))


def _member(field: FieldIR) -> str:
    name = "".join(part.capitalize() for part in field.json_name.split("_"))
    spelled = next((word for kind, word in _KINDS if kind == field.type), None)
    spelled = spelled or (field.type.name if isinstance(field.type, Ref) else "object")
    keyword, mark = ("required ", "") if field.required else ("", "?")
    return (
        f'    [JsonPropertyName("{field.json_name}")]\n'
        f"    public {keyword}{spelled}{mark} {name} {{ get; init; }}"
    )
