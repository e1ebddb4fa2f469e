"""The provider a command uses: the one named on its command line, else the real API."""

import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from pytest_regen.errors import MissingKeyError, UsageError
from pytest_regen.turns.anthropic import AnthropicProvider
from pytest_regen.turns.interception import current_interceptor
from pytest_regen.turns.local import CallableProvider
from pytest_regen.turns.values import Provider

__all__ = ["load_provider", "provider_from_environment"]

_FORM = "module:attribute, for example tests.models:my_provider"


def provider_from_environment(
    model: str | None = None, *, max_retries: int = 2, timeout: float = 600.0
) -> AnthropicProvider:
    """Return the provider that ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL`` describe.

    Raises:
        MissingKeyError: no key is set, and no cassette in use replays without one.
    """
    interceptor = current_interceptor()
    replays = interceptor is not None and interceptor.is_replay_only
    if not replays and not os.environ.get("ANTHROPIC_API_KEY"):
        raise MissingKeyError(
            "ANTHROPIC_API_KEY is not set",
            why="a live turn needs a credential",
            hint="export ANTHROPIC_API_KEY=..., name another provider with --provider "
            "module:attribute, or replay from a cassette",
        )
    return AnthropicProvider(model, max_retries=max_retries, timeout=timeout)


def load_provider(reference: str) -> Provider:
    """Return the provider that ``module:attribute`` names.

    The attribute is a provider, a class or function without required parameters that makes one,
    or a function from a list of messages to text.

    Raises:
        UsageError: the reference is malformed, cannot be imported, or names no provider.
    """
    module_name, colon, path = reference.partition(":")
    if not (module_name and colon and path):
        raise UsageError(f"--provider {reference!r} names no provider", hint=f"write it as {_FORM}")
    with _working_directory_importable():
        found = _attribute(reference, module_name, path)
        return _as_provider(found, reference)


def _attribute(reference: str, module_name: str, path: str) -> object:
    try:
        found: object = import_module(module_name)
    except Exception as error:
        raise UsageError(
            f"--provider {reference!r}: {module_name!r} cannot be imported",
            why=f"{type(error).__name__}: {error}",
            hint="run from the folder that holds the module, or install it",
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            known = sorted(n for n in vars(found) if not n.startswith("_"))[:8]
            raise UsageError(
                f"--provider {reference!r}: {module_name!r} has no {path!r}",
                why=f"it has {', '.join(known) or 'no public names'}",
                hint=f"write it as {_FORM}",
            )
        found = getattr(found, name)
    return found


def _as_provider(found: object, reference: str) -> Provider:
    if not inspect.isclass(found) and isinstance(found, Provider):
        return found
    if callable(found):
        required = _required_parameters(found)
        if required == 1 and not inspect.isclass(found):
            return CallableProvider(found)
        if required == 0:
            made = found()
            if isinstance(made, Provider):
                return made
    raise UsageError(
        f"--provider {reference!r} is no provider: {type(found).__name__}",
        why="a provider has send(request) -> Reply",
        hint="name a provider, a function without parameters that makes one, or a function from "
        "messages to text",
    )


def _required_parameters(found: object) -> int:
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]  # callable, as checked
    except (TypeError, ValueError):
        return 0
    kinds = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return sum(
        p.default is inspect.Parameter.empty and p.kind not in kinds
        for p in signature.parameters.values()
    )


@contextmanager
def _working_directory_importable() -> Iterator[None]:
    here = str(Path.cwd())
    if here in sys.path or "" in sys.path:
        yield
        return
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)
