"""One page of Python, as its prompt asks for it and as ``ruff format`` leaves it."""

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_regen.documents.ir import EnumValue, FieldIR, TypeIR
from pytest_regen.languages.python import literals
from pytest_regen.languages.python.names import BASE_MODEL, is_identifier, member_names
from pytest_regen.languages.python.spelling import constraint_arguments, spell
from pytest_regen.prompts.values import OutputMode

BEGIN: Final = "# BEGIN_FIELDS"
END: Final = "# END_FIELDS"
_INDENT: Final = "    "


def write_page(type_: TypeIR, units: Sequence[EnumValue], mode: OutputMode, *, profile: str) -> str:
    """Return the code of one page; see ``Language.write_page``."""
    if mode == "alias_only":
        spelled = spell(type_.fields[0], profile=profile)
        whole = f"{type_.name} = {spelled}"
        lines = [whole]
        if len(whole) > literals.WIDTH:
            # Broken where ruff breaks it: before each option, and before the discriminator.
            options = spelled.replace(" | ", f"\n{_INDENT}| ")
            options = options.replace(", Field(", f",\n{_INDENT}Field(")
            lines = [f"{type_.name} = (", f"{_INDENT}{options}", ")"]
        return "\n".join((*literals.comment(literals.sentence(type_.description), ""), *lines))
    members = list(_members(type_, units, profile))
    if mode in {"fields_only", "enum_values_only"}:
        return "\n".join((BEGIN, *members, END))
    about = literals.sentence(type_.description)
    above = literals.comment(about, "")
    if type_.kind == "enum" and profile == "typeddict":
        lines = [*above, f"{type_.name}: TypeAlias = Literal[", *members, "]"]
    elif profile == "typeddict" and not has_plain_keys(type_):
        name = f'{_INDENT}"{type_.name}",'
        inner = [name, f"{_INDENT}{{", *members, f"{_INDENT}}},"]
        lines = [*above, f"{type_.name} = TypedDict(", *inner, ")"]
    else:
        head = head_of(type_.name, profile)
        if type_.kind == "enum":
            # ``<=``, because an enum without a value has no kind, and a StrEnum may be empty.
            kinds = {type(value) for value in type_.enum_values}
            base = "IntEnum" if kinds == {int} else "StrEnum" if kinds <= {str} else "Enum"
            head = f"class {type_.name}({base}):"
        text = literals.docstring(about, _INDENT) if literals.comment_text(about) else []
        # Because ruff format puts a blank line below the docstring of a class.
        gap = [""] if text and members else []
        lines = [head, *text, *gap, *members]
        lines += [] if text or members else [f"{_INDENT}pass"]
    return "\n".join(lines)


def has_plain_keys(type_: TypeIR) -> bool:
    """Return whether a ``TypedDict`` of the type can be a class: its keys are identifiers.

    A name that begins with two underscores is none there: a class would mangle it.
    """
    return all(
        is_identifier(field.json_name) and not field.json_name.startswith("__")
        for field in type_.fields
    )


def head_of(name: str, profile: str) -> str:
    """Return the line, or the lines, that begin the class of an object."""
    if profile == "dataclass":
        return f"@dataclasses.dataclass(slots=True, kw_only=True)\nclass {name}:"
    return f"class {name}({'TypedDict' if profile == 'typeddict' else BASE_MODEL}):"


def _members(type_: TypeIR, units: Sequence[EnumValue], profile: str) -> Iterator[str]:
    if type_.kind == "enum" and profile == "typeddict":
        yield from (f"{_INDENT}{literals.literal(value)}," for value in units)
        return
    names = member_names(type_)
    if type_.kind == "enum":
        for value in units:
            yield from _assignment(names[value], "", literals.literal(value))
        return
    fields = {field.json_name: field for field in type_.fields}
    # Of the whole type, because a page cannot choose another form than the first one.
    is_class = profile != "typeddict" or has_plain_keys(type_)
    for unit in units:
        field = fields[str(unit)]
        spelled = spell(field, profile=profile)
        about = literals.sentence(field.description)
        if not is_class:
            yield from literals.comment(about, _INDENT * 2)
            yield f"{_INDENT * 2}{literals.literal(field.json_name)}: {literals.literal(spelled)},"
            continue
        if profile == "typeddict":
            yield f"{_INDENT}{field.json_name}: {spelled}"
        else:
            yield from _field(field, names[unit], spelled, profile)
        if profile != "default" and literals.comment_text(about):
            yield from literals.docstring(about, _INDENT)


def _field(field: FieldIR, name: str, spelled: str, profile: str) -> Iterator[str]:
    alias = literals.literal(field.json_name)
    arguments = [] if name == field.json_name else [f"alias={alias}"]
    default, call = "None", "Field"
    if profile == "dataclass":
        default, call = "UNSET", "dataclasses.field"
        arguments = [f'metadata={{"alias": {alias}}}'] if arguments else []
    elif about := literals.sentence(field.description):
        arguments.append(literals.described(about, _INDENT * 2))
    for key, value in constraint_arguments(field, profile=profile).items():
        arguments.append(
            f"{key}={literals.raw(value) if key == 'pattern' else literals.literal(value)}"
        )
    if not arguments:
        yield from _assignment(name, spelled, "" if field.required else default)
    else:
        first = [] if field.required else [f"default={default}"]
        yield from _assignment(name, spelled, call, [*first, *arguments])


def _assignment(
    name: str, spelled: str, value: str, arguments: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of ``name: spelled = value(arguments)``, broken as formatters break it."""
    target = f"{_INDENT}{name}: {spelled}" if spelled else f"{_INDENT}{name}"
    if not value:
        yield target
        return
    if not arguments:
        yield f"{target} = {value}"
        return
    whole = f"{target} = {value}({', '.join(arguments)})"
    if len(whole) <= literals.WIDTH:
        yield whole
        return
    yield f"{target} = {value}("
    # A formatter tries one line for all arguments before it gives each its own.
    inner = _INDENT * 2 + ", ".join(arguments)
    if len(inner) <= literals.WIDTH:
        yield inner
    else:
        yield from (f"{_INDENT * 2}{argument}," for argument in arguments)
    yield f"{_INDENT})"
