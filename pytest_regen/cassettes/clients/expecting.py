"""Whether the code that waits for an answer names an exception, and so knows what to do with it."""

import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import unwrap
from types import CodeType, FrameType
from typing import Any

__all__ = ["is_expected"]


def is_expected(
    error: type[BaseException], *, test: Callable[..., object] | None, outside: tuple[str, ...]
) -> bool:
    """Return whether ``error`` is named by a function that is waiting, or by the test.

    Nothing about a client shows that it retries, but code that handles an exception has to
    name it: in ``except``, in ``pytest.raises``, as a parameter.

    Args:
        error: the exception.
        test: the test's function; its tasks and threads do not wait below it.
        outside: the packages that raise the exception; they name it too.
    """
    prefixes = tuple(f"{package}." for package in outside)
    function = unwrap(test) if test is not None else None
    code = getattr(function, "__code__", None)
    if code is not None and _names(code, getattr(function, "__globals__", {}), error):
        return True
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - what `inspect` calls, without reading source files
    while frame is not None:
        home = f"{frame.f_globals.get('__name__')}."
        if not home.startswith(prefixes):
            held = any(_is(value, error) for value in frame.f_locals.values())
            if held or _names(frame.f_code, frame.f_globals, error):
                return True
        frame = frame.f_back
    return False


def _names(code: CodeType, known: Mapping[str, Any], error: type[BaseException]) -> bool:
    """Return whether a function, or one inside it, names ``error`` by its name or an alias."""
    return any(
        name == error.__name__ or _is(known.get(name), error)
        for one in _with_inner(code)
        for name in one.co_names
    )


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _is(value: object, error: type[BaseException]) -> bool:
    return value is error or (isinstance(value, tuple) and any(one is error for one in value))
