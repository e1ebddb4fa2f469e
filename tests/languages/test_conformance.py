"""Every language keeps the laws: ours, and one of somebody else's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from slate_language import install

from pytest_regen import languages
from pytest_regen.testing import LanguageConformance


class ProfileConformance(LanguageConformance):
    """A language, or a profile of it, of which what takes long is looked at in the sweep."""

    @pytest.mark.sweep
    def test_broken_code_is_read_as_far_as_it_goes(self) -> None:
        """As everywhere."""
        super().test_broken_code_is_read_as_far_as_it_goes()


class TestCSharp(ProfileConformance):
    """C#, as its own template has it."""

    language = "csharp"


class TestXchange(ProfileConformance):
    """The same with the attributes of the other profile."""

    language = "csharp"
    profile = "xchange"


class TestTypeScript(LanguageConformance):
    """TypeScript, as interfaces."""

    language = "typescript"


class TestZod(ProfileConformance):
    """TypeScript, as schemas of zod."""

    language = "typescript"
    profile = "zod"


class TestPython(LanguageConformance):
    """Python: pydantic models."""

    language = "python"


class PythonProfile(ProfileConformance):
    """Each mistake starts an interpreter: those of the smallest type stand for all."""

    @pytest.mark.parametrize(
        "number", [3, *(pytest.param(at, marks=pytest.mark.sweep) for at in range(3))]
    )
    def test_a_mistake_is_found(self, number: int) -> None:
        """As everywhere."""
        super().test_a_mistake_is_found(number)


class TestPythonDataclass(PythonProfile):
    """Python: dataclasses."""

    language = "python"
    profile = "dataclass"


class TestPythonTypedDict(PythonProfile):
    """Python: typed dicts."""

    language = "python"
    profile = "typeddict"


class TestSlate(LanguageConformance):
    """Slate, the language of the tests."""

    language = "slate"

    @pytest.fixture(autouse=True)
    def _installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Put it on the import path, as a distribution."""
        install(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        languages.forget_languages()
        yield
        languages.forget_languages()
