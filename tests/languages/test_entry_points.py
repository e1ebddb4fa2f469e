"""Languages come from installed distributions, by their entry points."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slate_language import Slate, install

from pytest_regen import languages
from pytest_regen.errors import UsageError
from pytest_regen.languages import find_language, language_names


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget which languages were found: a test installs its own."""
    monkeypatch.delitem(sys.modules, "bad_slate", raising=False)
    languages.forget_languages()
    yield
    languages.forget_languages()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on the import path, as ``site-packages`` is."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_language_is_found_by_its_entry_point(site: Path) -> None:
    """Name and tags of code fences mean it, however they are written; an instance will do."""
    install(site, value="made_slate:SLATE")
    (site / "made_slate.py").write_text("from slate_language import Slate\nSLATE = Slate()\n")

    assert language_names() == ("csharp", "python", "slate", "typescript")
    assert all(isinstance(find_language(name), Slate) for name in ("slate", "Slate", "SLT"))
    assert find_language("cs").name == "csharp"


def test_nobody_takes_the_place_of_the_default(site: Path) -> None:
    """Stores of C# are read by our C#, whatever else is installed."""
    install(site, name="csharp")

    assert language_names() == ("csharp", "python", "typescript")
    assert type(find_language("csharp")).__module__ == "pytest_regen.languages.csharp.language"


def test_an_unknown_language_is_refused_with_those_there_are(site: Path) -> None:
    """The error shows the name, lists the languages, and says how one is added."""
    install(site)

    with pytest.raises(UsageError, match="'cobol'") as caught:
        find_language("cobol")

    assert "csharp, python, slate, typescript" in caught.value.hint
    assert "pytest_regen.languages" in caught.value.hint


@pytest.mark.parametrize(
    ("value", "code", "why"),
    [
        ("no_such_module:Slate", "", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("bad_slate:Slate", "raise RuntimeError('no luck\\nat all')", "RuntimeError: no luck"),
        ("bad_slate:Slate", "class Slate:\n    name = 'slate'", "it lacks absence_fault, accepts"),
    ],
)
def test_a_broken_language_is_named_with_its_distribution(
    site: Path, value: str, code: str, why: str
) -> None:
    """Whoever asks for it learns whose it is; other languages are found all the same."""
    install(site, value=value)
    (site / "bad_slate.py").write_text(code)

    with pytest.raises(UsageError, match=r"'slate' .* slate-lang 1\.2") as caught:
        find_language("slate")

    assert why in caught.value.why
    assert "\n" not in caught.value.why
    assert find_language("C#").name == "csharp"


def test_two_distributions_with_one_language_are_both_named(site: Path, tmp_path: Path) -> None:
    """Which of them is meant, nobody can tell."""
    install(site)
    install(site / "more", distribution="other-slate", value="other:Slate")
    other = site / "more" / "other_slate-1.2.dist-info"
    other.rename(tmp_path / other.name)

    with pytest.raises(UsageError, match="several distributions") as caught:
        find_language("slate")

    assert "slate-lang 1.2" in caught.value.why
    assert "other-slate 1.2" in caught.value.why
