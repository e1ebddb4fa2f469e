"""Languages are found by name."""

import pytest

from pytest_regen.errors import UsageError
from pytest_regen.languages import find_language, language_names


@pytest.mark.parametrize("name", ["csharp", "cs", "C#", "CSharp"])
def test_csharp_has_several_names(name: str) -> None:
    """Each usual spelling means the same language."""
    assert find_language(name).name == "csharp"


def test_an_unknown_language_is_refused() -> None:
    """The error shows the name and lists the languages there are."""
    with pytest.raises(UsageError, match="'cobol'") as caught:
        find_language("cobol")

    assert all(name in caught.value.hint for name in language_names())
