"""``schema.md``, for people: what a reader of Markdown shows is what the document says."""

from markdown_it import MarkdownIt
from store_factory import FACTORY_IR

from pytest_regen.documents.ir import FieldIR, MapOf, Scalar, TypeIR
from pytest_regen.regeneration.planning import schema_markdown


def shown_code(fields: tuple[FieldIR, ...]) -> list[str]:
    """Return the code spans in the row of each field, as they are rendered."""
    type_ = TypeIR(name="Bag", schema_id="#/x", is_root=True, kind="object", fields=fields)
    text = schema_markdown(FACTORY_IR.model_copy(update={"types": (type_,)}))
    rendered = MarkdownIt("commonmark").enable("table").parse(text)
    cells = [child for token in rendered for child in token.children or ()]
    return [child.content for child in cells if child.type == "code_inline"]


def test_a_map_is_shown_as_one() -> None:
    """Entities mean nothing in code; nor does markup."""
    number = Scalar(kind="integer")
    fields = (
        FieldIR(json_name="counts", type=MapOf(values=number)),
        FieldIR(json_name="<b>|x", type=number),
    )

    assert shown_code(fields) == ["#/x", "counts", "map<integer>", "<b>|x", "integer"]
