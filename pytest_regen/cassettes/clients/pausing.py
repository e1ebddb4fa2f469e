"""Clients that ask again after a pause, made to ask again at once."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_pauses"]

_CALCULATES = "_calculate_retry_timeout"
"""How the clients that Stainless generates (anthropic, openai, groq and more) find a pause."""


@contextmanager
def without_pauses() -> Iterator[None]:
    """Let the clients that are waiting for an answer pause for nothing while the block runs.

    They take any exception for a broken line and ask again, after up to eight seconds; without a
    network the next attempt ends as this one did. Clients that find their pauses otherwise keep
    them.
    """
    waiting = [client for client in _waiting() if _CALCULATES not in vars(client)]
    for client in waiting:
        setattr(client, _CALCULATES, _no_pause)
    try:
        yield
    finally:
        for client in waiting:
            delattr(client, _CALCULATES)


def _no_pause(*_: object, **__: object) -> float:
    return 0.0


def _waiting() -> Iterator[object]:
    """Yield the clients whose methods are running in this thread, each once."""
    seen = set[int]()
    frame = inspect.currentframe()
    while frame is not None:
        client = frame.f_locals.get("self")
        if id(client) not in seen and hasattr(type(client), _CALCULATES):
            seen.add(id(client))
            yield client
        frame = frame.f_back
