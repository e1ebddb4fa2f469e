"""``init``: a project's settings and its first types, functions or translations."""

import shlex
from pathlib import Path

import pytest
from command_line import at_terminal, command
from pages import blocks, environment, sessions
from warm_python import run_python

API = """\
openapi: 3.0.3
info: {title: Kites, version: "1"}
paths:
  /kites:
    post:
      responses: {"200": {$ref: "#/components/responses/Kite"}}
  /kites/latest:
    get:
      responses: {"200": {$ref: "#/components/responses/Kite"}}
components:
  responses:
    Kite:
      description: A kite.
      content: {application/json: {schema: {$ref: "#/components/schemas/Kite"}}}
  schemas:
    Kite:
      type: object
      required: [id]
      properties: {id: {type: integer}, colour: {type: string, enum: [red, blue]}}
"""
MODULE = '''\
def initials(name: str) -> str:
    """Return the initials of ``name``.

    >>> initials("Ada Lovelace")
    'A.L.'
    """
    return "".join(f"{word[0]}." for word in name.split())


def shout(name: str) -> str:
    """Return ``name`` in capitals."""
    return name.upper()
'''
STORE = "generated/schemas"
SETTINGS = """\
[tool.pytest-regen]
stores = ["generated/*"]
language = "python"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with something of each sort, as the working directory, and no settings."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "api.yaml": API,
        "src/acme/names.py": MODULE,
        "locales/en.json": '{"open": "Open the map", "berth": "Berth {n}"}',
        "locales/de.json": '{"berth": "Liegeplatz {n}"}',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, but for locks and caches."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {".regen", ".pytest_cache", "__pycache__"} & set(path.parts)
    }


def test_pytest_tests_the_first_store(here: Path) -> None:
    """In a project with tests and ``testpaths`` of its own; again it changes nothing."""
    (here / "tests").mkdir()
    (here / "tests" / "test_own.py").write_text("def test_own(): pass\n", "utf-8")
    (here / "tox.ini").write_text("[pytest]\ntestpaths = tests\n", "utf-8")

    ran = command("init", "api.yaml", "--yes")
    before = contents(here)
    again = command("init", "api.yaml", "--yes")

    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == "  next: pytest"
    assert (here / "tox.ini").read_text("utf-8") == "[pytest]\ntestpaths = tests\n"
    assert (here / ".pytest-regen.toml").read_text("utf-8") == SETTINGS
    assert not (here / "pyproject.toml").exists()
    assert (again.code, contents(here)) == (0, before)
    assert "nothing to do: all of it is there\n  next: pytest\n" in again.told
    gate = run_python(["-m", "pytest", "-q", "-p", "no:cacheprovider"], here, environment())
    assert gate.returncode == 0
    assert "3 passed" in gate.stdout


def test_nothing_is_written_without_a_yes(here: Path) -> None:
    """The plan has every line; the command that is named carries it out."""
    before = contents(here)
    plan = command("init", "api.yaml", "--language", "typescript")
    dry = command("init", "api.yaml", "--dry-run")
    as_json = command("init", "api.yaml", "--json")

    assert (plan.code, dry.code, as_json.code) == (2, 0, 2)
    assert contents(here) == before
    assert "".join(f"  + {line}".rstrip() + "\n" for line in SETTINGS.splitlines()) in dry.told
    assert plan.err.endswith("  next: pytest-regen init api.yaml --language typescript --yes\n")
    assert as_json.json["files"][0]["lines"] == [f"+{line}" for line in SETTINGS.splitlines()]
    assert as_json.json["written"] is False
    assert command(*shlex.split(as_json.json["next"])[1:]).code == 0


def test_a_terminal_is_asked(here: Path) -> None:
    no = at_terminal("init", "api.yaml", cwd=here, typed="n\n")
    assert (no.code, (here / "generated").exists()) == (0, False)

    done = at_terminal("init", "api.yaml", cwd=here, typed="\n")

    assert done.code == 0
    assert [path.name for path in (here / "generated").iterdir()] == ["schemas"]


INLINE = """\
swagger: "2.0"
info: {title: Kites, version: "1"}
paths:
  /kites:
    get: &kites
      responses:
        "200": {schema: {type: object, properties: {id: {type: integer}}}}
  /winds:
    get: *kites
  /motto:
    get:
      responses: {"200": {schema: {type: string}}}
"""


def test_a_document_without_names_gets_a_store_per_operation(here: Path) -> None:
    """And it is said; what is answered with plain values has none."""
    (here / "api.yaml").write_text(INLINE, "utf-8")

    ran = command("init", "api.yaml", "--yes")

    assert ran.code == 0, ran.err
    assert "2 operations, a store each, because no schema has a name" in ran.told
    assert sorted(path.name for path in (here / "generated").iterdir()) == [
        "GET_kites",
        "GET_winds",
    ]
    assert (here / "pyproject.toml").read_text("utf-8") == SETTINGS
    assert "nothing to do" in command("init", "api.yaml", "--yes").told


def test_functions_with_examples_are_recorded(here: Path) -> None:
    """Those of the file, or the one that is named, of which is told that nothing runs it."""
    first = command("init", "src/acme/names.py", "--yes")
    second = command("init", "src/acme/names.py::shout", "--yes")

    assert (first.code, second.code) == (0, 0)
    text = (here / "src/acme/names.py").read_text("utf-8")
    assert "# [REGEN:BEGIN initials]" in text
    assert "# [REGEN:BEGIN shout]" in text
    assert (here / "pyproject.toml").read_text("utf-8") == (
        '[tool.pytest-regen]\nfunctions = ["src/acme/*.py"]\n'
    )
    assert "only reads" not in first.told
    assert "shout has no example in the docstring: pytest only reads it" in second.told
    assert 'mark a test with @pytest.mark.regen(unit="src/acme/names.py::shout")' in second.told
    assert "2 units, no errors" in command("validate").told
    assert "nothing to do" in command("init", "src/acme/names.py", "--yes").told


def test_a_stub_is_marked_and_written_next(here: Path) -> None:
    """There is nothing to record; the command that follows asks a model for it."""
    # A stub, because that is what the test is about.
    (here / "src/acme/names.py").write_text("def f():\n    raise NotImplementedError\n", "utf-8")

    done = command("init", "src/acme/names.py", "--yes")

    assert (done.code, "recorded" in done.told) == (0, False)
    assert done.told.endswith(
        "  to write    1 unit: f\n  next: pytest-regen generate src/acme/names.py\n"
    )
    assert "f [MISSING_UNIT] nothing but a stub stands there" in command("validate").told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(:\n", "src/acme/names.py:1 is not legal Python"),
        ("def f(): pass\ndef g(): pass\n", "next: pytest-regen init src/acme/names.py --unit f"),
        ("def f(): ...\n", "line 1: the code of f shares a line with its signature or docstring"),
    ],
)
def test_what_cannot_be_recorded_writes_nothing(here: Path, text: str, told: str) -> None:
    (here / "src/acme/names.py").write_text(text, "utf-8")
    before = contents(here)

    ran = command("init", "src/acme/names.py", "--yes")

    assert ran.code == 2
    assert told in ran.told
    assert contents(here) == before


def test_a_refusal_writes_nothing(here: Path) -> None:
    """A target of another catalogue, a test module, a file of a kind of one's own."""
    made = command("init", "locales/en.json", "--yes")
    assert made.err.endswith("  next: pytest-regen generate locales/de.json\n")
    (here / "tests").mkdir()
    (here / "tests/test_x.py").write_text(MODULE, "utf-8")
    (here / "kinds_here.py").write_text(
        "import pytest_regen\n\n\nclass Whole(pytest_regen.Kind):\n"
        '    files = "src/acme/*.py"\n    region = pytest_regen.regions.WholeFile()\n',
        "utf-8",
    )
    settings = here / "pyproject.toml"
    table, _, tables = settings.read_text("utf-8").partition("[[")
    settings.write_text(
        f'{table}[tool.pytest-regen]\nkinds = ["kinds_here:Whole"]\n\n[[{tables}', "utf-8"
    )
    before = contents(here)

    for source, told in [
        ("locales/de.json", "locales/de.json is translated from another catalogue already"),
        ("tests/test_x.py", "it is a test module"),
        ("nothing.yaml", "there is no file nothing.yaml"),
        ("src", "src is a folder"),
        ("src/acme/names.py", "it has units of another kind"),
    ]:
        ran = command("init", source, "--yes")
        assert ran.code == 2
        assert told in ran.err
        assert contents(here) == before


def test_settings_are_put_back_where_nothing_was_made(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when nobody answers."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    before = contents(here)

    ran = command("init", "api.yaml", "--yes", "--provider", "anthropic:claude-sonnet-5-5")

    assert ran.code > 1
    assert contents(here) == before


def po_files(here: Path) -> Path:
    """Write catalogues of gettext, as Flask-Babel has them; return the one with a text missing."""
    for language, text in (("en", ""), ("es", ""), ("fr", "Ouvrir")):
        path = here / "app/translations" / language / "LC_MESSAGES/messages.po"
        path.parent.mkdir(parents=True)
        path.write_text(f'msgid ""\nmsgstr ""\n\nmsgid "Open"\nmsgstr "{text}"\n', "utf-8")
    return path.parents[2] / "es/LC_MESSAGES/messages.po"


def test_catalogues_of_gettext_are_set_up(here: Path) -> None:
    """The one that is named; or by a glob, which ``init`` alone names, all but the msgids'."""
    path = po_files(here).relative_to(here).as_posix()
    pattern, french = path.replace("/es/", "/*/"), path.replace("/es/", "/fr/")
    settings = here / "pyproject.toml"
    offered = command("init")
    assert offered.code == 2
    for source in ("api.yaml", "src/acme/names.py", "locales/en.json", f"'{pattern}'"):
        assert f"    pytest-regen init {source} --yes\n" in offered.told

    one = command("init", path, "--yes")
    assert one.err.endswith(f"  next: pytest-regen generate {path}\n")
    assert settings.read_text("utf-8").endswith(f'\ntargets = "{path}"\n')
    assert "source =" not in settings.read_text("utf-8")
    assert "nothing to do" in command("init", path, "--yes").err
    assert command("init", french, "--yes").code == 0
    assert settings.read_text("utf-8").endswith(f'\ntargets = "{french}"\n')

    settings.unlink()
    every = command("init", pattern, "--yes")
    assert f"{path}, {french}, from their msgids" in every.err
    assert settings.read_text("utf-8").endswith(f'\ntargets = "{pattern}"\n')
    assert "nothing to do" in command("init", pattern, "--yes").err


def test_a_catalogue_that_is_alone_is_told_how_to_go_on(here: Path) -> None:
    """The next command makes one for another language."""
    (here / "locales/de.json").unlink()

    alone = command("init", "locales/en.json", "--yes")
    following = alone.err.splitlines()[-1].removeprefix("  next: ")
    ran = command(*shlex.split(following)[1:], "--yes")

    assert (alone.code, ran.code) == (2, 0)
    assert following == "pytest-regen init locales/en.json --out locales/de.json"
    assert ran.told.endswith("  next: pytest-regen generate locales/de.json\n")


def test_an_empty_project_gets_what_it_needs(here: Path) -> None:
    """A file of settings, what git is to say of the others, and a workflow if it is wanted."""
    (here / ".gitattributes").write_text("*.png binary", "utf-8")
    workflow = here / ".github/workflows/pytest-regen.yml"

    plain = command("init", "api.yaml", "--yes")
    assert "CI: pip install 'pytest-regen[all]', then pytest" in plain.told
    assert (here / "pyproject.toml").read_text("utf-8") == SETTINGS
    assert (here / STORE / "Schemas.py").is_file()
    # What is generated next is in the same language.
    assert command("generate", "api.yaml", "POST /kites", "--provider", "template").code == 0
    assert list((here / "generated" / "POST_kites").glob("*.py"))

    assert command("init", "src/acme/names.py", "--yes").code == 0
    assert command("init", "api.yaml", "--yes", "--out", "my types").code == 0
    assert (here / ".gitattributes").read_text("utf-8") == (
        "*.png binary\ngenerated/**/*.json linguist-generated\n"
        ".regen/** linguist-generated\n.regen/hand/** merge=union\n"
        '"my types/**/*.json" linguist-generated\n'
    )

    assert command("init", "api.yaml", "--yes", "--ci", "github").code == 0
    assert "      - run: pip install 'pytest-regen[all]'  # and" in workflow.read_text("utf-8")
    workflow.write_text("mine\n", "utf-8")
    assert command("init", "api.yaml", "--yes", "--ci", "github").code == 0
    assert workflow.read_text("utf-8") == "mine\n"
    assert command("init", "api.yaml", "--yes", "--ci", "gitlab").code == 0
    assert "    - pytest\n" in (here / ".gitlab-ci.yml").read_text("utf-8")


def test_the_page_shows_what_it_does() -> None:
    """Each line of docs/commands.md, in its order."""
    for words, shown in [
        session
        for block in blocks("docs/commands.md", "console")[:2]
        for session in sessions(block)
    ]:
        ran = command(*shlex.split(words)[1:])

        said = iter(line.strip() for line in ran.told.splitlines())
        assert ran.code == 0
        assert not [line for line in shown if line != "…" and line not in said]


def test_a_repository_is_set_up_within_its_border(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of a folder above the repository are not edited."""
    (here / "pyproject.toml").write_text("[project]\nname = 'outer'\n", "utf-8")
    inner = here / "src"
    (inner / ".git").mkdir()
    monkeypatch.chdir(inner)

    ran = command("init", "acme/names.py", "--yes")

    assert ran.code == 0, ran.err
    assert (here / "pyproject.toml").read_text("utf-8") == "[project]\nname = 'outer'\n"
    assert 'functions = ["acme/*.py"]' in (inner / "pyproject.toml").read_text("utf-8")
    assert not (here / ".gitattributes").exists()


def test_an_operation_is_named() -> None:
    """In the words of ``generate``; one that is not there is told with its neighbours."""
    wrong = command("init", "api.yaml", "--operation", "GET /kite", "--yes")

    assert wrong.code == 2
    assert "GET /kites/latest" in wrong.told
    assert command("init", "api.yaml", "--operation", "POST /kites", "--yes").code == 0
    assert Path("generated/POST_kites").is_dir()
