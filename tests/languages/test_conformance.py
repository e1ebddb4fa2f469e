"""Every language keeps the laws: ours, and one of somebody else's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from slate_language import install

from pytest_regen import languages
from pytest_regen.testing import LanguageConformance
from pytest_regen.testing.languages import _mistakes as made_mistakes
from pytest_regen.validation import validate_generated_code


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


class PythonProfile(ProfileConformance):
    """Each source starts an interpreter: all mistakes are made in one."""

    def test_a_mistake_is_found(self, number: int = 0) -> None:
        """As everywhere, each in a type of its own."""
        right, codes, mistakes = [*self.ir.types], dict[str, str](), list[tuple[str, ...]]()
        for type_ in self.ir.types:
            for code, members, member in made_mistakes(type_):
                name = f"{type_.name}{len(codes)}"
                named = {"name": name, "schema_id": f"#/{name}", "is_root": False}
                right.append(type_.model_copy(update=named))
                codes[name] = self.write(right[-1].model_copy(update=members))
                mistakes.append((code, name, member))
        ir = self.ir.model_copy(update={"types": tuple(right)})

        found = validate_generated_code(self.source(**codes), ir, profile=self.profile)

        issues = [(issue.code, issue.type_name, issue.field) for issue in found.issues]
        assert sorted(issues) == sorted(mistakes)


class TestPython(PythonProfile):
    """Python: pydantic models."""

    language = "python"

    def test_broken_code_is_read_as_far_as_it_goes(self) -> None:
        """As everywhere."""
        LanguageConformance.test_broken_code_is_read_as_far_as_it_goes(self)


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
