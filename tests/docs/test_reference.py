"""The reference is what the code says, and what stands in files is in it."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import reference

ROOT = Path(__file__).parents[2]
STORE = ROOT / "examples/csharp_dto/generated/GET_v1_tides"
LEDGER = ROOT / "examples/translations/.regen/units/locales/de.json/account.add-bc267d96926d.json"
PAGES = dict(reference.pages())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_reference_is_what_the_code_says(page: Path) -> None:
    """The marked places of a page say what the code says now."""
    assert page.read_text("utf-8") == PAGES[page], f"out of date: {reference.COMMAND}"


def test_every_name_of_the_package_is_in_the_reference() -> None:
    """Under one of the tasks; modules are there with what they offer."""
    text = reference.PLACES["api"]()

    assert not [
        name
        for name in import_module("pytest_regen").__all__
        if not re.search(rf"^- `{name}\b", text, re.MULTILINE)
    ]


def keys(value: Any) -> Iterator[str]:
    """Yield the keys of an object and of the objects in lists below it."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield key
            if key != "inputs":  # because kinds name these
                yield from keys(child)
    elif isinstance(value, list):
        for child in value:
            yield from keys(child)


@pytest.mark.parametrize("file", [STORE / "prompts.json", STORE / "pages.json", LEDGER])
def test_what_stands_in_a_file_is_in_the_reference(file: Path) -> None:
    """Every key of a real store and of a real ledger is explained."""
    text = (reference.DOCS / "reference" / "formats.md").read_text("utf-8")
    explained = set(re.findall(r"`(\w+)`", text))

    assert set(keys(json.loads(file.read_text("utf-8")))) <= explained
