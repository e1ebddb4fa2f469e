"""A project with German strings, asked key by key from the English ones."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_regen import Kind, Unit, quoted, regions
from pytest_regen.units.ledger import Entry, short_hash
from pytest_regen.units.loading import KindOfFile, ProjectKinds
from pytest_regen.units.place import UnitFile, open_units
from pytest_regen.units.view import FileUnits

ENGLISH = {"berth": "Berth {number}", "mooring": "Moor here", "leave": "Leave at {time}"}
GERMAN = {"berth": "Liegeplatz {number}", "mooring": "Hier anlegen", "leave": "Ab {time}"}
PLACE = "locales/de.json"


def read_english(file: Path) -> dict[str, str]:
    """Return the English strings beside a file; read anew, for tests change them."""
    strings: dict[str, str] = json.loads(file.with_name("en.json").read_text("utf-8"))
    return strings


class German(Kind):
    """German strings, asked key by key from the English ones."""

    files: str | Sequence[str] = PLACE
    region: regions.Region = regions.JsonStrings()
    system = "You translate the user interface of a harbour app. Say du."

    def units(self, file: Path) -> Mapping[str, str]:
        """The keys of the English catalogue."""
        return read_english(file)

    def inputs(self, unit: Unit) -> list[str | Path]:
        """The English string."""
        return [read_english(unit.path)[unit.name]]

    def prompt(self, unit: Unit) -> str:
        """The order."""
        return f"Translate into German: {quoted(read_english(unit.path)[unit.name])}"

    def check(self, unit: Unit) -> Iterator[tuple[str, str]]:
        """Placeholders are the same."""
        source = read_english(unit.path)[unit.name]
        want, have = (sorted(re.findall(r"\{\w+\}", text)) for text in (source, unit.text))
        if want != have:
            yield "PLACEHOLDER", f"has {have}, the English text has {want}"


class Queries(Kind):
    """Blocks between markers."""

    files = "queries.sql"
    system = "Write SQL."

    def prompt(self, unit: Unit) -> str:
        """The order."""
        return unit.name


def write_json(path: Path, value: object) -> None:
    """Write a catalogue."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


def kinds_with(root: Path, *kinds: Kind) -> ProjectKinds:
    """Return a project with these kinds."""
    return ProjectKinds(root, tuple(KindOfFile(kind, type(kind).__name__) for kind in kinds))


def project(
    root: Path,
    german: Mapping[str, str] | None = GERMAN,
    *,
    english: Mapping[str, str] = ENGLISH,
    is_recorded: bool = True,
    kind: Kind | None = None,
) -> UnitFile:
    """Make a project and return its one file with units.

    Args:
        root: an empty folder.
        german: the strings in the file; ``None`` where it is not there.
        english: what they are asked from.
        is_recorded: whether the ledger has them.
        kind: instead of ``German``.
    """
    write_json(root / "locales/en.json", english)
    (root / "pyproject.toml").write_text("[tool.pytest-regen]\n", "utf-8")
    if german is not None:
        write_json(root / PLACE, german)
    file = open_units(kinds_with(root, kind or German()), root / PLACE)
    if is_recorded and german is not None:
        record(file)
    return file


def record(file: UnitFile) -> UnitFile:
    """Record what stands in a file as what a model wrote."""
    with file.update() as write:
        units = write.view
        for name in units.names:
            if not units.missing(name):
                write.entries[name] = Entry(
                    name,
                    units.texts[name].text,
                    "claude-opus-5",
                    generated_at="2026-11-01T08:00:00Z",
                    prompt_sha256=short_hash(units.prompt(name)),
                    system_sha256=units.system_sha256,
                    inputs=units.inputs(name),
                )
        write.commit()
    return file


def german(root: Path) -> dict[str, str]:
    """Return what stands in the file with units."""
    strings: dict[str, str] = json.loads((root / PLACE).read_text("utf-8"))
    return strings


def codes(units: FileUnits) -> dict[str, list[str]]:
    """Return the codes of what is wrong with each unit that has something."""
    found = {name: [issue.code for issue in units.issues(name)] for name in units.names}
    return {name: listed for name, listed in found.items() if listed}


def entry_of(file: UnitFile, name: str) -> Entry:
    """Return what the ledger has of a unit."""
    found = file.open().entry(name)
    assert found is not None
    return found
