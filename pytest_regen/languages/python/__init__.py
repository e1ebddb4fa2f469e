"""Python as a target language."""

from pytest_regen.languages.python.language import Python

__all__ = ["Python"]
