"""What children do while they are killed or run side by side: regenerate pages over HTTP.

They ask the API that ``ANTHROPIC_BASE_URL`` names.
"""

import json
import signal
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import anthropic
from many_operations import FIELDS_PER_PAGE

from pytest_regen.cli.app import main
from pytest_regen.regeneration import partial_regenerate
from pytest_regen.stores import RegenStore
from pytest_regen.turns import AnthropicProvider

JOBS = 8
"""Requests that ``generate_all`` has in flight at most."""

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


def generate_all(folder: Path, number: int = 0, *options: str) -> None:
    """Run the command that generates every operation of ``api.json``, with many requests."""
    path = folder / f"output{number or ''}"
    options = options or (f"--jobs={JOBS}",)
    with (
        path.open("w") as output,
        redirect_stdout(output),
        redirect_stderr(output),
        chdir(folder),
    ):
        try:
            pages = f"--fields-per-page={FIELDS_PER_PAGE}"
            main(["generate", "api.json", "--all", pages, *options])
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(path.read_text()) from ended
