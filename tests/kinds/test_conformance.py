"""Every kind that ships, held against the laws of the engine."""

import json
from pathlib import Path

import pytest
from killed_kinds import KilledKindConformance, StoreLab
from store_factory import GOOD, make_store

from pytest_regen.regeneration import verbs
from pytest_regen.testing.conformance import Lab


def write(root: Path, files: dict[str, str]) -> None:
    """Write the files of a project."""
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, "utf-8")


class TestTranslations(KilledKindConformance):
    """The kind that ships: a catalogue in another language.

    Killed at a sample of its writes, in the sweep at each.
    """

    kill_every = 4

    kind = "pytest_regen.kinds.translation:Translation"
    settings = (
        '[[tool.pytest-regen.translations]]\nsource = "locales/en.json"\n'
        'targets = "locales/*.json"\nstyle = "Say du."\n'
    )
    examples = (
        ("menu.open", "Öffne {name}", "Öffne {Name}"),
        ("menu.close", "Schließen", "Schließen {name}"),
        ("found", "{n, plural, one {ein Boot} other {# Boote}}", "{n} Boote"),
    )

    def make_project(self, root: Path, project: Path) -> None:
        """A catalogue, and a translation with one string."""
        english = {
            "title": "Harbour",
            "menu": {"open": "Open {name}", "close": "Close"},
            "found": "{n, plural, one {a boat} other {# boats}}",
        }
        german = '{\n    "title": "Hafen"\n}\n'
        write(root, {"locales/en.json": json.dumps(english), "locales/de.json": german})


class TestGettext(KilledKindConformance):
    """The kind that ships: a catalogue of gettext."""

    kill_every = 5

    kind = "pytest_regen.kinds.gettext:Gettext"
    settings = '[[tool.pytest-regen.translations]]\ntargets = "po/*.po"\n'
    examples = (
        ("menu|Open %(name)s", "Öffne %(name)s", "Öffne %(Name)s"),
        ("Close", "Schließen", "Schließen {name}"),
        ("a boat", '["ein Boot", "%d Boote"]', '["ein Boot"]'),
    )

    def make_project(self, root: Path, project: Path) -> None:
        """A catalogue as tools of gettext write it, with one text that is there."""
        header = (
            'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
            '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
        )
        german = (
            f'{header}#, python-format\nmsgctxt "menu"\nmsgid "Open %(name)s"\nmsgstr ""\n\n'
            'msgid "Close"\nmsgstr ""\n\nmsgid "Harbour"\nmsgstr "Hafen"\n\n#, python-format\n'
            'msgid "a boat"\nmsgid_plural "%d boats"\nmsgstr[0] ""\nmsgstr[1] ""\n'
        )
        write(root, {"po/de.po": german})


class TestFunctions(KilledKindConformance):
    """The kind that ships: bodies of functions, tried by the examples of their docstrings."""

    kill_every = 5

    kind = "pytest_regen.kinds.functions:Function"
    settings = '[tool.pytest-regen]\nfunctions = ["src/acme/*.py"]\n'
    examples = (
        ("double", "return 2 * x", "return x"),
        ("Boat.sail", "if not wind:\n    return 0\nreturn wind * self.sails", "return eval(wind)"),
    )

    def make_project(self, root: Path, project: Path) -> None:
        """A module with a function and a method, both stubs."""
        module = (
            'def double(x):\n    """Return it twice.\n\n    >>> double(2)\n    4\n    """\n'
            "    # [REGEN:BEGIN double]\n    ...\n    # [REGEN:END double]\n\n\n"
            "class Boat:\n    sails = 2\n\n    def sail(self, wind):\n"
            '        """Return the speed.\n\n        >>> Boat().sail(3)\n        6\n        """\n'
            "        # [REGEN:BEGIN Boat.sail]\n        # [REGEN:END Boat.sail]\n"
        )
        (root / "src").mkdir()
        write(root, {"src/acme/boats.py": module, "src/acme/__init__.py": ""})


class TestTypes(KilledKindConformance):
    """Types of an API: a store is held against the same laws as a file."""

    kill_every = 8

    @pytest.fixture
    def lab(self, tmp_path: Path) -> Lab:
        """A project with a store of three types, of which a model wrote two."""
        lab = StoreLab(
            tmp_path / "project",
            "generated/GET_projects",
            (
                ("Owner", GOOD["Owner", 1], GOOD["Owner", 1].replace('"name"', '"title"')),
                ("State", GOOD["State", 1], "public enum State\n{\n    Open,\n}"),
            ),
        )
        make_store(lab.root / lab.place)
        settings = '[tool.pytest.ini_options]\nregen_stores = ["generated/*"]\n'
        write(lab.root, {"pyproject.toml": settings})
        lab.ask(verbs.generate_steps, force=True)
        return lab
