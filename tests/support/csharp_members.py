"""Members of C# types in many styles, with text that looks like structure, and pages of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

NASTY = (
    "plain words",
    "{",
    "} }",
    "{first} {last",
    'say "hi"',
    "```",
    "```csharp",
    "~~~",
    "// END_FIELDS",
    "// BEGIN_FIELDS",
    "// [REGEN:END Sample]",
    "// [REGEN:BEGIN Other]",
    "/* open",
    "back\\slash",
    "public class Sample {",
    "using System;",
    "namespace N;",
    "#endif",
    "%{x} 'quoted'; ,",
    "ünïcödé 漢字 🎈",
)

_ATTRIBUTE = "Description"


@dataclass(frozen=True)
class Sample:
    """A member: its text, its identifier, and the description it carries, if any."""

    text: str
    name: str
    description: str | None


def regular(text: str) -> str:
    """Return a string literal with escapes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def verbatim(text: str) -> str:
    """Return a verbatim literal, which may go over line ends."""
    doubled = text.replace('"', '""')
    return f'@"{doubled}"'


def raw(text: str) -> str:
    """Return a raw literal whose text stands at the left margin of its own lines."""
    return f'""""\n{text}\n""""'


def described(text: str) -> st.SearchStrategy[str]:
    """Return the description attribute in one of the kinds of literals."""
    literals = st.sampled_from((regular, verbatim, raw))
    return literals.map(lambda literal: f"[{_ATTRIBUTE}({literal(text)})]")


# A line that is a delimiter is none of a string, for pages are read line by line.
texts = st.lists(
    st.sampled_from([text for text in NASTY if "_FIELDS" not in text]), min_size=1, max_size=3
).map("\n".join)


@st.composite
def decorations(draw: st.DrawFn) -> tuple[str, str | None]:
    """Draw what stands before a member, and the description in it."""
    words = draw(st.sampled_from(NASTY))
    comment = draw(
        st.sampled_from(
            (
                "",
                f"/// <summary>{words}</summary>",
                f"/// <summary>\n/// {words}\n/// </summary>",
                f"/*\n- {words}\n*/" if "*/" not in words else "",
                f"// about: {words}",
            )
        )
    )
    text = draw(st.none() | texts)
    attribute = draw(described(text)) if text is not None else ""
    return "\n".join(filter(None, (comment, attribute))), text


FORMS = (
    "public string? {name} {{ get; set; }}",
    'public required string {name} {{ get; init; }} = "}} {{";',
    "public List<int> {name} {{ get; }} = new() {{ 1, 2 }}; // trailing }}",
    "public int[]? {name}\n{{\n    get;\n    set;\n}}",
    "public Dictionary<string, int?> {name} {{ get; set; }} = [];",
    "public const char {name} = '}}';",
    '#region "{name}"\npublic int {name} {{ get; set; }}\n#endregion',
)


@st.composite
def members(draw: st.DrawFn, index: int) -> Sample:
    """Draw a member of an object called after ``index``."""
    before, description = draw(decorations())
    form = draw(st.sampled_from(FORMS))
    if description is not None and form.startswith("#"):
        form = FORMS[0]
    name = f"Member{index}"
    return Sample("\n".join(filter(None, (before, form.format(name=name)))), name, description)


@st.composite
def enum_members(draw: st.DrawFn, index: int) -> Sample:
    """Draw an enum member called after ``index``, without its comma."""
    before, description = draw(decorations())
    name = f"Value{index}"
    text = draw(st.sampled_from((name, f"{name} = {index}", f"{name} /* , }} */")))
    return Sample("\n".join(filter(None, (before, text))), name, description)


def can_shift(text: str) -> bool:
    """Return whether no string in ``text`` goes over a line end."""
    return '@"' not in text and '""""' not in text


def shifted(text: str, indent: str) -> str:
    """Return the lines further to the right, where that leaves every string as it is."""
    if not can_shift(text):
        return text
    return "\n".join(indent + line if line else line for line in text.split("\n"))


_HEADS = {
    "compact": "public class Sample {",
    "spaced": "/// doc {\n[Serializable]\nclass Sample\n{",
}


def object_page(samples: Sequence[Sample], style: str, *, is_first: bool) -> str:
    """Return a page of members in a style; page 1 always declares the type."""
    inside = "\n\n".join(sample.text for sample in samples)
    if is_first:
        body = shifted(inside, "    ")
        head = _HEADS.get(style, "public sealed class Sample\n{")
        return f"{head}\n{body}\n}}"
    # The closing brace stands on the last member's line, where it can.
    gap = " " if inside.endswith(("}", ";")) and "//" not in inside.split("\n")[-1] else "\n"
    forms = {
        "delimited": f"// BEGIN_FIELDS\n{inside}\n// END_FIELDS",
        "wrapped": f"/// again\n[Serializable]\npublic partial class Sample\n{{\n{inside}\n}}\n",
        "sourced": f"using System;\n\nnamespace N\n{{\nclass Sample {{\n{inside}{gap}}}\n}}",
        "scoped": f"using System;\nnamespace N.M;\nrecord Sample\n{{\n{inside}\n}}",
        "indented": shifted(inside, "\t"),
    }
    return forms.get(style, f"\n{inside}\n")


def enum_page(samples: Sequence[Sample], style: str, *, is_first: bool) -> str:
    """Return a page of enum values in a style; page 1 always declares the enum."""
    inside = ",\n".join(sample.text for sample in samples)
    inside += {"compact": ",", "spaced": " // last }", "wrapped": ", // last"}.get(style, "")
    if is_first:
        return f"[JsonConverter(typeof(X))]\npublic enum Sample\n{{\n{inside}\n}}"
    match style:
        case "delimited":
            return f"// BEGIN_FIELDS\n{inside}\n// END_FIELDS"
        case "wrapped":
            return f"public enum Sample\n{{\n{inside}\n}}"
        case "scoped":
            return f"using System;\nnamespace N;\nenum Sample {{\n{inside}\n}}"
        case _:
            return inside


STYLES = ("compact", "spaced", "delimited", "wrapped", "sourced", "scoped", "indented")


@st.composite
def planned(draw: st.DrawFn, *, is_enum: bool) -> tuple[list[str], list[list[Sample]]]:
    """Draw the pages of a type and the members that each holds."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    kind, page = (enum_members, enum_page) if is_enum else (members, object_page)
    plan, index = [], 0
    for size in sizes:
        plan.append([draw(kind(index + offset)) for offset in range(size)])
        index += size
    outputs = [
        page(samples, draw(st.sampled_from(STYLES)), is_first=number == 0)
        for number, samples in enumerate(plan)
    ]
    line_end = draw(st.sampled_from(("\n", "\r\n")))
    mark = draw(st.sampled_from(("", "\ufeff")))
    return [mark + output.replace("\n", line_end) for output in outputs], plan
