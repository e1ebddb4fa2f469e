"""Code is taken out of a reply whatever is around it."""

import pytest
from tables import each

from pytest_regen.languages.csharp import CSharp
from pytest_regen.sources import extract_code

CLASS = "public class A\n{\n    public int X { get; set; }\n}"
ENUM = "public enum E { B }"
MEMBERS = '[JsonPropertyName("x")]\npublic int X { get; set; }'
VALUES = '[JsonStringEnumMemberName("a")]\nA,\n\nB,'
INNER = (
    "/// Use it:\n/*\n```\n} text\n~~~\n*/\n"
    + CLASS
    + '\npublic class V { string v = @"\n```\n"; }'
)


def code(reply: str | None) -> str:
    """Return the code of a reply in C#."""
    return extract_code(reply)


@each("text", [CLASS, ENUM, MEMBERS, VALUES, INNER])
@each(
    "reply",
    [
        "{}",
        "```\n{}\n```",
        "`````csharp title=x.cs a long info string\n{}\n`````",
        "Sure! Here it is:\n\n```csharp\n{}\n```\n\nLet me know.",
        "```csharp\n{}",
        "````markdown\n```csharp\n{}\n```\n````",
        "{}\n```\nI hope this helps!",
        "Here is the code: ```csharp\n{}\n```",
    ],
)
def test_fences_and_prose_are_taken_off(reply: str, text: str) -> None:
    """Every kind of fence, closed or not, with or without prose, leaves exactly the code."""
    assert code(reply.format(text)) == text


@pytest.mark.parametrize("reply", [None, "", " \n\t\n", "```csharp\n```", "```\n\n```"])
def test_a_reply_without_code_is_empty(reply: str | None) -> None:
    """No text and an empty fence are the empty code, never an exception."""
    assert code(reply) == ""


def test_prose_alone_is_kept_for_the_validator() -> None:
    """A reply that is no code at all is not silently turned into nothing."""
    assert code("I cannot help with that.") == "I cannot help with that."


def test_blocks_with_different_types_are_joined() -> None:
    """A type and its enum in two blocks are both wanted."""
    assert code(f"```cs\n{ENUM}\n```\nand\n```cs\n{CLASS}\n```") == f"{ENUM}\n\n{CLASS}"


def test_a_correction_replaces_what_it_corrects() -> None:
    """Of two blocks that declare the same type, the later one counts."""
    assert code(f"```cs\npublic class A {{ }}\n```\nBetter:\n```cs\n{CLASS}\n```") == CLASS


def test_other_languages_are_left_out() -> None:
    """A block that names another language is no code of this one."""
    assert code(f'```json\n{{"a": 1}}\n```\nand\n```csharp\n{CLASS}\n```') == CLASS


def test_illegal_code_is_not_traded_for_legal_prose() -> None:
    """A fault in the fenced code must reach the validator."""
    broken = "public class A\n{\n    public int X { get; set;\n}"
    assert code(f"Sure\n```csharp\n{broken}\n```\nDone") == broken
    assert code(f"```csharp\n{broken}") == broken


@pytest.mark.parametrize(
    "reply",
    [
        "```\nx {\n" * 1_000,
        "{ `" * 20_000,
    ],
)
def test_what_is_parsed_for_one_reply_is_bounded(
    reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply full of fences and without code is still answered, after a bounded effort."""
    parsed, measure = 0, CSharp.illegality

    def illegality(code: str) -> int:
        nonlocal parsed
        parsed += len(code)
        return int(measure(code))

    monkeypatch.setattr(CSharp, "illegality", staticmethod(illegality))
    extract_code(reply, language=CSharp())
    assert parsed <= 250_000


OWNER = (
    'public class Owner\n{\n    [JsonPropertyName("id")]\n    public int Id { get; set; }\n\n'
    '    [JsonPropertyName("full_name")]\n    public string? FullName { get; set; }\n}'
)
HEAD = OWNER.split("\n\n", maxsplit=1)[0]
DRAFT = "public class Draft\n{\n    public int Id { get; set; }\n    public int FullName;\n}"


def answer(reply: str, type_name: str = "Owner") -> str:
    """Return the code of a reply that was to write ``id`` and ``full_name`` of a type."""
    return extract_code(reply, type_name=type_name, fields=("id", "full_name"))


@each(
    "reply",
    [
        f"<think>I could write\n```csharp\n{DRAFT}\n```\n</think>\n```csharp\n{OWNER}\n```",
        f"<THINKING>{DRAFT}</THINKING>\n{OWNER}",
        f"First I think of {DRAFT}\n</think>\n\n```csharp\n{OWNER}\n```",
        f"```csharp\n{DRAFT}\n```\nNo, the type is Owner:\n```csharp\n{OWNER}\n```",
        f"```csharp\n{OWNER}\n```\nNot to be mixed up with:\n```csharp\n{DRAFT}\n```",
        f"In short:\n```csharp\n{HEAD}\n}}\n```\nIn full:\n```csharp\n{OWNER}\n```",
    ],
)
def test_the_code_that_answers_is_taken(reply: str) -> None:
    """Thinking, drafts, examples and other types lose."""
    assert answer(reply) == OWNER


@pytest.mark.parametrize(
    "reply", ["<think>", f"<think>\n{OWNER}", f"<think>\n```csharp\n{OWNER}\n```\n</think>"]
)
def test_nothing_but_thinking_is_no_code(reply: str) -> None:
    """Also where the limit came before its end."""
    assert answer(reply) == ""


@each(
    "text",
    [
        "/// <think> is a tag</think>\n" + OWNER,
        "/*\n<think>\n*/\n" + OWNER,
        OWNER.replace("}\n\n", '}\n    const string Tag = @"\n<think>\n";\n\n', 1),
        OWNER.replace("[JsonP", '[Description("<think>no</think>")]\n    [JsonP', 1),
    ],
)
@each("reply", ["{}", "```csharp\n{}\n```", "<think>so</think>\n```cs\n{}\n```"])
def test_the_tags_in_code_are_text(reply: str, text: str) -> None:
    """A string or a comment may hold them, at the start of a line as well."""
    assert answer(reply.format(text)) == text


def test_prose_without_fences_is_taken_off() -> None:
    """Sentences around bare code are no code."""
    text = MEMBERS
    reply = (
        f"Here are the members you asked for:\n- as **listed**\n\n{text}\n\nThat is all of them."
    )
    assert code(reply) == text


def test_a_comment_above_the_code_is_no_prose() -> None:
    """Sentences around the code are left out; those in comments are part of it."""
    owned = "// The owner of a project.\npublic class Owner { }"

    assert code(f"Here it is.\n{owned}\nI hope that this helps you.") == owned
