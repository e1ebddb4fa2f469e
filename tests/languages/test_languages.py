"""Languages are found by name."""

import pytest

from pytest_regen.languages import find_language
from pytest_regen.languages.csharp import CSharp
from pytest_regen.languages.typescript import TypeScript
from pytest_regen.sources.extract import extract_code


@pytest.mark.parametrize("name", ["csharp", "cs", "C#", "CSharp"])
def test_csharp_has_several_names(name: str) -> None:
    """Each usual spelling means the same language."""
    assert find_language(name).name == "csharp"


@pytest.mark.parametrize("language", [CSharp, TypeScript])
def test_nothing_is_diagnosed_in_a_reply_of_members(language: type[CSharp | TypeScript]) -> None:
    """Members are legal as they stand; reading them as a file would look for what is wrong."""

    class Unread(language):  # type: ignore[valid-type, misc]
        def read(self, code: str) -> object:
            raise AssertionError(code)

    code = "berth?: number;" if language is TypeScript else "public int? Berth { get; init; }"

    found = extract_code(f"```\n{code}\n```", language=Unread(), type_name="Ship", fields=["berth"])

    assert found == code
