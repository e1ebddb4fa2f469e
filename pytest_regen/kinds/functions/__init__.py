"""The shipped kind for functions: the user writes signature, docstring and tests, a model the body.

Begin at ``kind``. ``source`` reads a module around its regions, ``project`` says what may be
imported, ``prompts`` asks and reads the answer, ``lint`` and ``examples`` check it.
"""

from pytest_regen.kinds.functions.kind import Function, function_kinds

__all__ = ["Function", "function_kinds"]
