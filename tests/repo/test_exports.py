"""The public namespace is whole and says where each name lives."""

import importlib
from pathlib import Path

import pytest

import pytest_regen

PACKAGE = Path(pytest_regen.__file__).parent
PACKAGES = sorted(
    ".".join(("pytest_regen", *path.parent.relative_to(PACKAGE).parts))
    for path in PACKAGE.rglob("__init__.py")
    if path.read_text("utf-8").strip()
)


@pytest.mark.parametrize("name", pytest_regen.__all__)
def test_every_public_name_resolves(name: str) -> None:
    """Each name of ``__all__`` is there on first use."""
    assert getattr(pytest_regen, name) is not None


def test_an_unknown_name_is_refused() -> None:
    """A misspelt name is an AttributeError that shows it."""
    with pytest.raises(AttributeError, match="Nope"):
        getattr(pytest_regen, "Nope")  # noqa: B009 - the type checker refuses the plain access


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_present_once(package: str) -> None:
    """``__all__`` of each folder (sorted by the linter) names only what is there, and once."""
    module = importlib.import_module(package)

    names = list(module.__all__)

    assert len(names) == len(set(names))
    assert all(hasattr(module, name) for name in names)
