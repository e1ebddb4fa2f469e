"""``schema.md``: the types of a store for people to read."""

from collections.abc import Iterator, Sequence

from pytest_regen.documents.ir import IR, ArrayOf, FieldIR, MapOf, Ref, Review, TypeExpr, TypeIR

__all__ = ["schema_markdown"]


def schema_markdown(ir: IR) -> str:
    """Return every type with its fields: wire names, types, required, nullable, description."""
    endpoint = ir.endpoint
    lines = [f"# {_cell(f'{endpoint.method} {endpoint.path}')} ({_cell(endpoint.status)})", ""]
    for type_ in ir.types:
        lines += _section(type_, [each for each in ir.reviews if each.type_name == type_.name])
    return "\n".join(lines).rstrip() + "\n"


def _section(type_: TypeIR, reviews: Sequence[Review]) -> Iterator[str]:
    root = ", root" if type_.is_root else ""
    yield f"## {type_.name}"
    yield ""
    yield f"{type_.kind}{root}, {_code(type_.schema_id)}"
    yield ""
    if type_.description:
        yield _cell(type_.description)
        yield ""
    for review in reviews:
        yield from _note(review)
    if type_.kind == "enum":
        yield "| value |"
        yield "|---|"
        yield from (f"| {_code(str(value))} |" for value in type_.enum_values)
    elif type_.fields:
        yield "| field | type | required | nullable | description |"
        yield "|---|---|---|---|---|"
        yield from map(_row, type_.fields)
    yield ""


def _note(review: Review) -> Iterator[str]:
    """Yield what is to be reviewed as a list."""
    field = f"`{_cell(review.field)}`: " if review.field else ""
    yield f"- **REVIEW** {field}{_cell(review.message)} (`{_cell(review.where)}`)"
    yield from (f"  - {_cell(line)}" for line in review.detail.splitlines())
    yield ""


def _row(field: FieldIR) -> str:
    marks = [
        word
        for word, is_set in (
            ("deprecated", field.deprecated),
            ("read-only", field.read_only),
            ("write-only", field.write_only),
        )
        if is_set
    ]
    notes = " ".join([*(f"*{mark}*" for mark in marks), _cell(field.description or "")])
    required, nullable = ("yes" if flag else "" for flag in (field.required, field.nullable))
    name, kind = _code(field.json_name), _code(_type_text(field.type))
    return f"| {name} | {kind} | {required} | {nullable} | {notes.strip()} |"


def _type_text(expression: TypeExpr) -> str:
    match expression:
        case Ref(name=name):
            return name
        case ArrayOf(items=items):
            return f"{_type_text(items)}[]"
        case MapOf(values=values):
            return f"map<{_type_text(values)}>"
        case _:
            form = f" ({expression.format})" if expression.format else ""
            return f"{expression.kind}{form}"


def _cell(text: str) -> str:
    """Return document text on one line, unable to end a cell or a heading, or to be markup."""
    return _line(text).replace("<", "&lt;")


def _code(text: str) -> str:
    """Return document text as a code span, in which nothing is markup and nothing is escaped."""
    return f"`{_line(text)}`"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")
