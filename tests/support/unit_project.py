"""A project with the kind of the documentation, run by pytest and commands."""

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from unit_work import ENGLISH, GERMAN, record, write_json

from pytest_regen.emulator import EmulatedReply
from pytest_regen.settings import read_settings
from pytest_regen.units.loading import load_kinds
from pytest_regen.units.place import open_units

KIND = '''\
import functools
import json
import re

from pytest_regen import Kind, quoted, regions


@functools.cache
def english(file):
    return json.loads(file.with_name("en.json").read_text("utf-8"))


class German(Kind):
    """German strings, asked key by key from the English ones."""

    files = "locales/de.json"
    region = regions.JsonStrings()
    system = "You translate the user interface of a harbour app. Say du."

    def units(self, file):
        return english(file)

    def inputs(self, unit):
        return [english(unit.path)[unit.name]]

    def prompt(self, unit):
        return f"Translate into German: {quoted(english(unit.path)[unit.name])}"

    def check(self, unit):
        source = english(unit.path)[unit.name]
        want, have = (sorted(re.findall(r"\\{\\w+\\}", text)) for text in (source, unit.text))
        if want != have:
            yield "PLACEHOLDER", f"has {have}, the English text has {want}"
'''

SETTINGS = """
[tool.pytest.ini_options]
[tool.pytest-regen]
kinds = ["regen_kinds:German"]
"""

ANSWERS = {ENGLISH[name]: text for name, text in GERMAN.items()}


def translate(body: Mapping[str, object]) -> EmulatedReply:
    """Answer like a model that knows the German strings."""
    messages = json.dumps(body["messages"], ensure_ascii=False)
    for english, german in ANSWERS.items():
        if json.dumps(json.dumps(english))[1:-1] in messages:
            return EmulatedReply(german)
    return EmulatedReply("?")


def record_file(root: Path, file: Path) -> None:
    """Record what stands in a file of a project as what a model wrote."""
    record(open_units(load_kinds(root, read_settings(root)), file))
    # Each run imports the kinds of its own project.
    sys.modules.pop("regen_kinds", None)


class UnitProject:
    """A project whose one kind translates ``locales/en.json``."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path: Path = pytester.path
        (self.path / "pyproject.toml").write_text(SETTINGS, "utf-8")
        (self.path / "regen_kinds.py").write_text(KIND, "utf-8")
        self.write(english=ENGLISH, german=GERMAN)

    @property
    def german_file(self) -> Path:
        """The file with units."""
        return self.path / "locales/de.json"

    def write(
        self,
        *,
        english: Mapping[str, str] | None = None,
        german: Mapping[str, str] | None = None,
    ) -> None:
        """Write catalogues."""
        if english is not None:
            write_json(self.path / "locales/en.json", english)
        if german is not None:
            write_json(self.german_file, german)

    def german(self) -> dict[str, str]:
        """Return what stands in the file."""
        strings: dict[str, str] = json.loads(self.german_file.read_text("utf-8"))
        return strings

    def settings(self, text: str) -> None:
        """Write other settings."""
        (self.path / "pyproject.toml").write_text(textwrap.dedent(text), "utf-8")

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process, without plugins that have no part in it."""
        return self.pytester.runpytest_inprocess("-p", "no:syrupy", "-p", "no:randomly", *args)

    def recorded(self) -> "UnitProject":
        """Record what stands there, as what a model wrote."""
        record_file(self.path, self.german_file)
        return self
