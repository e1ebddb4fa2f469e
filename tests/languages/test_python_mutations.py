"""Faults put into right Python are found: each with its code, at its type, on its page.

An operator changes the code of one member, or of a whole page. Each is tried on the first place
that it fits.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from python_kites import KITES, PYTHON, issues_of, pages_of
from tables import each

from pytest_regen.documents.ir import EnumValue, TypeIR
from pytest_regen.prompts.values import output_mode
from pytest_regen.validation import PageText

Change = Callable[[str], str]
PROFILES = ("default", "dataclass", "typeddict")
LOST = ("MISSING_FIELD",)
WRONG = ("WRONG_TYPE",)
NULL = ("NULLABILITY",)
ILLEGAL = ("SYNTAX",)
ENUM = ("ENUM_MEMBER",)
SIZES = {"enum": 2, "object": 5}
LOADS = ("IMPORT_FAILED",)
"""Python or pydantic may say of any fault why the type does not load."""


@dataclass(frozen=True)
class Operator:
    """A fault: how it is put into the code, and the codes by which it may be found."""

    name: str
    change: Change
    codes: tuple[str, ...]
    of: str = "field"
    """``field``, ``value``, ``page`` (of an object) or ``enum`` (a page of an enum)."""
    profiles: tuple[str, ...] = ("default",)
    fits: str = ""
    """Must be found in the code of a member."""


def sub(pattern: str, replacement: str, count: int = 1) -> Change:
    """Return a change by regular expression."""
    return lambda code: re.sub(pattern, replacement, code, count=count)


def put_before(text: str) -> Change:
    """Return a change that puts a line before the code."""
    return lambda code: f"{text}\n{code}"


def put_instead(text: str) -> Change:
    """Return a change that puts a line in place of the code."""
    return lambda _: f"    {text}"


def wire_faults() -> Iterator[Operator]:
    """Yield faults of names on the wire."""
    yield Operator("alias dropped", sub(r'alias="[^"]*"(?:, )?', ""), LOST, fits='alias="(?!class)')
    yield Operator("alias misspelt", sub(r'alias="', 'alias="x'), LOST)
    yield Operator("alias only written", sub(r"\balias=", "serialization_alias="), LOST)
    yield Operator("identifier changed", sub(r"^    (\w+):", r"    \1_x:"), LOST, fits=r"^[^\"]*$")
    yield Operator("field left out", lambda _: "", LOST, profiles=PROFILES)
    yield Operator(
        "field written twice",
        lambda code: code + "\n" + re.sub(r"^    (\w+):", r"    \1_again:", code),
        ("DUPLICATE_FIELD",),
        fits="alias=",
    )
    yield Operator(
        "field invented",
        lambda code: f"{code}\n    invented: str | None = None",
        ("PHANTOM_FIELD",),
    )
    yield Operator(
        "key written twice",
        lambda code: f"{code}\n{code}",
        ("DUPLICATE_FIELD",),
        profiles=("typeddict",),
    )


def absence_faults() -> Iterator[Operator]:
    """Yield faults of null and absence."""
    yield Operator(
        "default of a value",
        sub(r"= (?:Field\(\s*default=)?None$", '= ""'),
        NULL,
        fits="str . None = None$",
    )
    yield Operator("factory", sub("= None$", "= Field(default_factory=list)"), NULL, fits="= None$")


def type_faults() -> Iterator[Operator]:
    """Yield faults of types."""
    yield Operator("union cut", sub(r"Knot \| Bow|Bow \| Knot", "Knot"), WRONG, profiles=PROFILES)
    yield Operator(
        "union widened", sub(r"Knot \| Bow", "Knot | Bow | int"), WRONG, profiles=PROFILES
    )
    yield Operator("wrong tag", sub(r'discriminator="\w+"', 'discriminator="tag"'), WRONG)
    yield Operator("Literal changed", sub(r'Literal\["', 'Literal["x'), WRONG, profiles=PROFILES)
    yield Operator("a limit changed", sub(r"(max_length|ge)=\d+", r"\1=3"), WRONG)
    yield Operator("a limit invented", sub(r"Field\(", "Field(min_length=3, "), WRONG)
    yield Operator("pattern changed", sub(r'pattern=r?"', 'pattern=r"x'), WRONG)


def name_faults() -> Iterator[Operator]:
    """Yield faults of names."""
    yield Operator("an underscore first", sub(r"^    (?=\w)", "    _"), (), fits="alias=")


def sign_faults() -> Iterator[Operator]:
    """Yield faults of signs."""
    yield Operator(
        "bracket lost", sub(r"\](?!.*\])", ""), ILLEGAL, fits=r"list\[|dict\[", profiles=PROFILES
    )
    yield Operator("a comma at the end", sub(r"$", ","), (*NULL, *LOST), fits=r"\)$")
    yield Operator(
        "keyword as a name",
        sub(r"^    class_:", "    class:"),
        ILLEGAL,
        profiles=PROFILES[:2],
    )
    yield Operator(
        "indented too far", sub(r"^    (?=\w)", "      "), ILLEGAL, profiles=PROFILES[:2]
    )
    yield Operator(
        "a comment of C",
        sub(r"$", "  // note"),
        ("UNDECLARED_TYPE",),
        fits=r"\w$",
        profiles=PROFILES[:2],
    )
    for comment in ("# rest of the fields",):
        yield Operator(
            f"elision {comment[:9]}", put_instead(comment), ("ARTIFACT",), profiles=PROFILES
        )


def page_faults() -> Iterator[Operator]:
    """Yield faults of pages."""
    # On other pages, what stands around the delimiters is left out.
    declares = r"(?m)^(?:class |\w+ = TypedDict|\w+: TypeAlias)"
    for word in ("Here is the class you asked for:",):
        yield Operator(
            f"prose: {word[:6]}",
            put_before(word),
            ("ARTIFACT",),
            "page",
            PROFILES,
            declares,
        )
    yield Operator(
        "prose alone",
        lambda _: "I cannot help with that.",
        ("ARTIFACT",),
        "page",
        profiles=PROFILES,
    )
    yield Operator("nothing", lambda _: "", ("EMPTY_OUTPUT",), "page", profiles=PROFILES)
    yield Operator(
        "a fence", lambda code: f"{code}\n```", ("ARTIFACT",), "page", PROFILES, declares
    )
    yield Operator(
        "cut off", lambda code: code[: code.rindex("=") + 1], ("SYNTAX",), "page", PROFILES[:2], "="
    )
    head = "class Kite"
    yield Operator("no base class", sub(r"\(ApiModel\)", ""), ("MISSING_CLASS",), "page")
    yield Operator("another base", sub(r"\(ApiModel\)", "(Ghost)"), (), "page")
    yield Operator(
        "a dataclass", sub(head + r"\(ApiModel\)", f"@dataclasses.dataclass\n{head}"),
        ("MISSING_CLASS",), "page",
    )  # fmt: skip
    yield Operator(
        "no dataclass", sub(r"@dataclasses.*\n", ""), ("MISSING_CLASS",), "page", ("dataclass",)
    )
    yield Operator(
        "another name", sub(r"class (\w+)", r"class \1Response"), ("MISSING_CLASS",), "page"
    )
    yield Operator(
        "a foreign class", lambda code: f"{code}\n\n\nclass Tail(ApiModel):\n    x: int",
        ("FOREIGN_TYPE",), "page", fits="class ",
    )  # fmt: skip


def enum_faults() -> Iterator[Operator]:
    """Yield faults of enums."""
    yield Operator("value changed", sub(r'(?<=")(?=\w)', "x"), ENUM, of="value", profiles=PROFILES)
    yield Operator("auto()", sub(r"= .*", "= auto()"), (), "value", fits='"')
    yield Operator(
        "value twice",
        lambda code: f"{code}\n{code.replace(' =', '_2 =')}",
        ENUM,
        of="value",
        profiles=PROFILES,
    )
    yield Operator("value invented", lambda code: f'{code}\n    OTHER = "other"', ENUM, "value")
    yield Operator("numbers in a StrEnum", sub("IntEnum", "StrEnum"), ILLEGAL, "enum")
    lost = sub(r",$", "")
    yield Operator("comma of a text lost", lost, ENUM, "value", ("typeddict",), "sky-blue")


OPERATORS = [
    *wire_faults(),
    *absence_faults(),
    *type_faults(),
    *name_faults(),
    *sign_faults(),
    *page_faults(),
    *enum_faults(),
]


def places(operator: Operator, profile: str) -> Iterator[tuple[str, PageText]]:
    """Yield each page of the kites that the fault can be put into, with it, and its type."""
    for type_ in KITES.types:
        if (type_.kind == "enum") != (operator.of in {"value", "enum"}):
            continue
        for page in pages_of(type_, profile, SIZES[type_.kind]):
            parts = [page.output]
            if operator.of in {"field", "value"}:
                parts = [member_code(type_, unit, profile) for unit in page.fields]
            for part in parts:
                changed = operator.change(part)
                if re.search(operator.fits, part) and changed != part:
                    yield type_.name, replace(page, output=page.output.replace(part, changed))


def member_code(type_: TypeIR, unit: EnumValue, profile: str) -> str:
    """Return the code of one member, as it stands on its page."""
    mode = output_mode(type_.kind, is_root=False, page=2)
    return "\n".join(PYTHON.write_page(type_, [unit], mode, profile=profile).split("\n")[1:-1])


def right_pages(profile: str) -> dict[str, list[PageText]]:
    """Return the pages of all types."""
    return {each.name: pages_of(each, profile, SIZES[each.kind]) for each in KITES.types}


@pytest.mark.parametrize("profile", PROFILES)
def test_right_pages_have_no_issue(profile: str) -> None:
    """What the language writes itself is clean, page by page."""
    assert not issues_of(right_pages(profile), KITES, profile)


@each("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_fault_is_found(operator: Operator) -> None:
    """It has its code, at its type and on its page, and nothing is said of other types."""
    profile, name, wrong = next(
        (profile, *place) for profile in operator.profiles for place in places(operator, profile)
    )
    pages = right_pages(profile)
    pages[name][wrong.page - 1] = wrong

    issues = issues_of(pages, KITES, profile)

    told = {(issue.code, issue.type_name, issue.page) for issue in issues}
    assert told & {(code, name, wrong.page) for code in (*operator.codes, *LOADS)}, wrong.output
    assert {issue.type_name for issue in issues} == {name}
