"""What children do while they are killed or run side by side: regenerate pages over HTTP.

They ask the API that ``ANTHROPIC_BASE_URL`` names.
"""

import json
import signal
import time
from pathlib import Path

import anthropic

from pytest_regen.regeneration import partial_regenerate
from pytest_regen.stores import RegenStore
from pytest_regen.turns import AnthropicProvider

__all__ = ["regenerate", "regenerate_and_rest", "regenerate_one_of_many"]

_ = anthropic.Anthropic(api_key="none")
"""Made once before children are forked: what is measured is not the import of a client."""


def regenerate(folder: Path, page: int = 1) -> None:
    """Regenerate one page of the store's first type."""
    name = RegenStore.open(folder).type_names[0]
    provider = AnthropicProvider()
    try:
        partial_regenerate(folder, [name], {name: [page]}, provider=provider)
    finally:
        provider.close()


def regenerate_and_rest(folder: Path) -> None:
    """Regenerate a page, then wait to be killed."""
    regenerate(folder)
    signal.pause()


def regenerate_one_of_many(folder: Path, number: int) -> None:
    """Regenerate page ``number + 1`` and leave beside the store when that began and ended."""
    began = time.time()
    regenerate(folder, number + 1)
    told = folder.parent / f"time_{number}.json"
    told.write_text(json.dumps([began, time.time()]))
