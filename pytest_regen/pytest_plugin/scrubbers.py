"""What the project takes out of recordings and reports, besides what is always taken out."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_regen.cassettes import Scrub

__all__ = ["scrubber_of"]

_SCRUBBER: "pytest.StashKey[Scrub | None]" = pytest.StashKey()


def scrubber_of(config: pytest.Config) -> "Scrub | None":
    """Return what the hook ``pytest_regen_scrubbers`` takes out, as one function made once a run.

    ``None`` where the project takes nothing out.
    """
    if _SCRUBBER not in config.stash:
        answers = config.hook.pytest_regen_scrubbers(config=config)
        config.stash[_SCRUBBER] = _joined([one for answer in answers for one in answer or ()])
    return config.stash[_SCRUBBER]


def _joined(scrubbers: "list[Scrub]") -> "Scrub | None":
    def scrub(text: str) -> str:
        for one in scrubbers:
            text = one(text)
        return text

    return scrub if scrubbers else None
