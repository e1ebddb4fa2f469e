"""Every kind that ships or is shown in the docs, held against the laws of the engine."""

import json
from pathlib import Path

import pytest
from killed_kinds import KilledKindConformance, StoreLab
from pages import ROOT, blocks, blocks_of
from store_factory import GOOD, make_store

from pytest_regen.regeneration.policies import Policy
from pytest_regen.testing.conformance import Lab

PATTERNS, QUERIES, BOOKINGS, GUIDE = (
    next(block.text for block in blocks_of(ROOT / "docs" / page) if "(Kind)" in block.text)
    for page in (
        "kinds.md",
        "how-to/check-sql.md",
        "how-to/check-records.md",
        "how-to/check-markdown-blocks.md",
    )
)
"""The kinds that articles show."""


def write(root: Path, files: dict[str, str]) -> None:
    """Write the files of a project."""
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, "utf-8")


class TestPatterns(KilledKindConformance):
    """The first kind of the page: regular expressions with texts to try them on."""

    kill_every = 2

    kind = "regen_kinds:Patterns"
    examples = (("imo", r"IMO ?\d{7}", r"IMO \d+"), ("draught", r"\d+[.,]?\d* m", "("))

    def make_project(self, root: Path, project: Path) -> None:
        """As the page has it."""
        wanted = blocks("docs/kinds.md", "toml")[0]
        write(root, {"regen_kinds.py": PATTERNS, "patterns.toml": wanted})


class TestQueries(KilledKindConformance):
    """Marked blocks behind ``--``, explained by a database."""

    kill_every = 3

    kind = "queries_kinds:Queries"
    examples = (
        ("late", "SELECT id\nFROM bookings\nWHERE until = date('now')", "SELECT id FROM booking"),
        ("free_berths", "SELECT name FROM berths", "SELECT name FROM berths; DROP TABLE berths"),
    )

    def make_project(self, root: Path, project: Path) -> None:
        """A schema, and a file with a place for each query."""
        markers = (
            f"-- [REGEN:BEGIN {name}]\n-- [REGEN:END {name}]\n" for name in ("free_berths", "late")
        )
        schema = "CREATE TABLE berths (id, name);\nCREATE TABLE bookings (id, berth, until);\n"
        files = {
            "queries_kinds.py": QUERIES,
            "schema.sql": schema,
            "queries.sql": "\n".join(markers),
        }
        write(root, files)


class TestBookings(KilledKindConformance):
    """JSON values, checked by a schema."""

    kill_every = 4

    kind = "bookings_kinds:Bookings"
    examples = (
        ("short", '{"nights": 1, "guests": 2}', '{\n  "nights": "one"\n}'),
        ("long", '{\n  "nights": 120,\n  "guests": 0\n}', "[]"),
    )

    def make_project(self, root: Path, project: Path) -> None:
        """A schema; the file with the records is not there yet."""
        number = {"type": "integer", "minimum": 0}
        schema = {
            "type": "object",
            "properties": {"nights": number, "guests": number},
            "required": ["nights", "guests"],
        }
        write(root, {"bookings_kinds.py": BOOKINGS, "booking.schema.json": json.dumps(schema)})


class TestGuide(KilledKindConformance):
    """A region of one's own, and a check that runs the text."""

    kill_every = 5

    kind = "guide_kinds:Guide"
    examples = (
        ("a_sum", "print(sum([1, 2]))", "print(sum(1, 2))"),
        ("a_loop", 'for name in ("a", "b"):\n    print(name)', "for name in"),
    )

    def make_project(self, root: Path, project: Path) -> None:
        """A page with two blocks."""
        page = "# Guide\n\n```python a_sum\n\n```\n\nThen:\n\n```python a_loop\n\n```\n\nThe end.\n"
        write(root, {"guide_kinds.py": GUIDE, "guide.md": page})


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
        lab.ask(Policy({name: {1: ()} for name, *_ in lab.examples}), lab.learn(1))
        return lab


for law in (
    "test_a_text_never_weakens_itself",
    "test_what_is_missing_is_generated",
    "test_a_changed_input_makes_it_stale",
    "test_text_from_before_the_ledger_is_unrecorded",
    "test_what_nothing_names_is_an_orphan",
):
    # Types of an API have no kind that says it, and no ledger.
    setattr(TestTypes, law, None)
