"""C#: names, spellings, reading, stitching."""

from pytest_regen.languages.csharp.language import CSharp

__all__ = ["CSharp"]
