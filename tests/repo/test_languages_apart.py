"""What belongs to one target language is said in its own folder, and nowhere else."""

import re
from pathlib import Path

from tables import each

from pytest_regen.languages.names import word_set

PACKAGE = Path(__file__).parents[2] / "pytest_regen"
OWN = PACKAGE / "languages" / "csharp"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if OWN not in path.parents)

COMPOUND = re.compile(r"[A-Z][a-z]+[A-Z]\w+")
ATTRIBUTES = word_set(
    """
    Browsable Category DefaultValue Description Display EmailAddress Flags JsonConstructor
    JsonConverter JsonDerivedType JsonExtensionData JsonIgnore JsonInclude JsonNumberHandling
    JsonObjectCreationHandling JsonPolymorphic JsonPropertyName JsonPropertyOrder JsonRequired
    JsonStringEnumMemberName JsonUnmappedMemberHandling Key MaxLength MinLength Nullable Obsolete
    Phone PrimaryKey Range RegularExpression Required StringLength Url
    """
)
"""Of .NET: those of two words are looked for as words, others in brackets."""

WORDS = {
    "attributes": r"\b(?:" + "|".join(filter(COMPOUND.fullmatch, sorted(ATTRIBUTES))) + r")\b"
    r"|\[(?:"
    + "|".join(name for name in sorted(ATTRIBUTES) if not COMPOUND.fullmatch(name))
    + r")[\](]",
    "keywords": r"\b(?:get|init);|\bnameof\b|\btypeof\(|#nullable\b|\busing \w+;",
    "namespaces": r"\bSystem\.|\bNewtonsoft\b|\bxchange\b",
    "types": r"\b(?:JsonElement|JsonStringEnumConverter|IReadOnly\w+|DateTimeOffset|Nullable<)",
    "its name": r"\bcsharp\b",
}

ELSEWHERE = {"its name": {"languages/__init__.py"}}
"""Whoever wants another default changes one line, and where its class is."""


def found(pattern: str) -> list[str]:
    """Return where a pattern occurs outside of the folder of C#."""
    return [
        f"{path.relative_to(PACKAGE).as_posix()}:{number}: {match[0]}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)
        for match in re.finditer(pattern, line)
    ]


@each("what", WORDS)
def test_nothing_of_a_language_is_said_outside_of_its_folder(what: str) -> None:
    """A prompt, a rule or a message for another language has no word of .NET in it."""
    own = "\n".join(path.read_text("utf-8") for path in OWN.rglob("*.py"))

    assert re.search(WORDS[what], own), "a pattern that matches nothing would prove nothing"
    assert {place.split(":")[0] for place in found(WORDS[what])} == ELSEWHERE.get(what, set())
