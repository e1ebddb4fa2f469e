"""The reference is what the code says, and what stands in files is in it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import code_words
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


def test_every_place_is_in_one_page() -> None:
    """What is written from the code is found by its readers, and once."""
    places = re.findall(r"^<!-- (\w+) -->$", "\n".join(PAGES.values()), re.MULTILINE)

    assert sorted(places) == sorted(reference.PLACES)


def test_every_name_of_the_package_is_in_the_reference() -> None:
    """Under one of the tasks; modules are there with what they offer."""
    text = reference.PLACES["api"]()

    assert not [
        name
        for name in import_module("pytest_regen").__all__
        if not re.search(rf"^- `{name}\b", text, re.MULTILINE)
    ]


def test_a_field_without_a_word_is_refused() -> None:
    """There is no blank line in a table: the docstring below the field is missing, and is named."""

    @dataclass
    class Silent:
        said: int = 0
        """Something."""
        silent: int = 0

    with pytest.raises(LookupError, match=r"Silent: silent"):
        code_words.fields_of(Silent)


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


def test_what_a_docstring_says_of_arguments_becomes_markdown() -> None:
    """Each on one line, as a sentence; what an error is raised for is left out."""

    def example() -> None:
        """Do ``this`` at once.

        Args:
            this: what is done, however
                long.
            that: ``<b>`` or < nothing.

        Raises:
            ValueError: never.
        """

    assert code_words.arguments_of(example) == [
        ("`this`", "What is done, however long."),
        ("`that`", "`<b>` or &lt; nothing."),
    ]
