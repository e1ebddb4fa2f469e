"""TypeScript as a target language."""

from pytest_regen.languages.typescript.language import TypeScript

__all__ = ["TypeScript"]
