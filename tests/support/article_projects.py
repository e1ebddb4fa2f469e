"""What the project of a reader already has when an article begins.

Each is a function of the reader; an article names it: ``<!-- given: function model -->``.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from articles import Reader, write
from chat_service import Said, chat_service
from hypothesis import Phase, settings
from talk import FILE, RECORDING, TEST

from pytest_regen.emulator import EmulatedReply, Emulator

STUB = '''\
def initials(name: str) -> str:
    """Return the initials of ``name``.

    >>> initials("Ada Lovelace")
    'A.L.'
    >>> initials("")
    \'\'
    """
    # [REGEN:BEGIN initials]
    raise NotImplementedError
    # [REGEN:END initials]
'''
RIGHT = 'return "".join(f"{word[0]}." for word in name.split())'
STRICTER = f"{RIGHT[:-1]} if word[0].isupper())"
WRONG = 'return ".".join(word[0] for word in name.split()) + "."'
FUNCTIONS = '[tool.pytest-regen]\nfunctions = ["src/acme/*.py"]\n'

KITES = """\
openapi: 3.0.3
info: {title: Kites, version: "1"}
paths:
  /kites/latest:
    get:
      responses:
        "200":
          description: A kite.
          content:
            application/json:
              schema: {$ref: "#/components/schemas/Kite"}
components:
  schemas:
    Kite:
      type: object
      required: [id]
      properties:
        id: {type: integer, minimum: 1}
        colour: {type: string, enum: [red, blue]}
        sail: {$ref: "#/components/schemas/Sail"}
    Sail:
      type: object
      required: [area]
      properties:
        area: {type: number}
"""
STORES = '[tool.pytest.ini_options]\nregen_stores = ["generated/*"]\n'
STORE = "generated/GET_kites_latest"

TRANSLATIONS = {
    "Berth {number}": "Liegeplatz {number}",
    "Moor your boat here": "Mach dein Boot hier fest",
    "Leave at {time}": "Leg um {time} ab",
}


_made: dict[str, Mapping[str, bytes]] = {}
"""What was made once, by name: files by their paths in the project, results of runs among them."""


def _once(reader: Reader, name: str, command: str, *folders: str) -> None:
    """Make folders by a command, or take those that an earlier article made."""
    if name not in _made:
        said = reader.run(command)
        _made[name] = {
            str(file.relative_to(reader.folder)): file.read_bytes()
            for folder in (*folders, ".regen/cache")
            for file in (reader.folder / folder).rglob("*")
            if file.is_file()
        }
        assert _made[name], said
    for place, content in _made[name].items():
        (reader.folder / place).parent.mkdir(parents=True, exist_ok=True)
        (reader.folder / place).write_bytes(content)


def nothing(reader: Reader) -> None:
    """Empty the folder, because the next part of the article is about another project."""
    for child in reader.folder.iterdir():
        if child.is_dir():
            shutil.rmtree(child)
        else:
            child.unlink()


def function(reader: Reader, body: str = RIGHT) -> None:
    """Give a function that a person wrote, recorded."""
    write(reader.folder / "src/acme/names.py", STUB.replace("raise NotImplementedError", body))
    write(reader.folder / "pyproject.toml", FUNCTIONS)
    _once(reader, body, "pytest-regen adopt src/acme/names.py", "src", ".regen")


def store(reader: Reader) -> None:
    """Give a store of two types in Python, as the template writes them."""
    description(reader)
    write(reader.folder / "pyproject.toml", STORES)
    _once(
        reader,
        "store",
        'pytest-regen generate api.yaml "GET /kites/latest" --language python --provider template',
        STORE,
    )


def description(reader: Reader) -> None:
    """Give the description of an API, and no store yet."""
    write(reader.folder / "api.yaml", KITES)


def broken_store(reader: Reader) -> None:
    """Give one in which a field of ``Sail`` has another name than in the description."""
    store(reader)
    pages = reader.folder / STORE / "pages.json"
    source = next((reader.folder / STORE).glob("*.py"))
    for file in (pages, source):
        file.write_text(file.read_text("utf-8").replace("area", "aera"), "utf-8")
    reader.run(f"pytest-regen adopt {STORE}")


def repository(reader: Reader) -> None:
    """Commit what is there."""
    for line in ("git init -q -b main", "git add -A", "git commit -qm first"):
        reader.run(line)


def pattern_model(reader: Reader) -> None:
    """Give a model that writes the patterns of docs/kinds.md, the second better than the first."""
    first = {"IMO number": r"IMO ?\d{7}", "3 m": r"\d+([.,]\d+)? m", "draught": r"\d+[.,]\d+ m"}
    reader.serve(
        Emulator(lambda body: next(first[part] for part in first if part in str(body["messages"])))
    )


def duration_model(reader: Reader) -> None:
    """Give a model that writes the body of docs/functions.md."""
    body = (
        'hours, _, minutes = text.replace(" ", "").rpartition("h")\n'
        'return int(hours or 0) * 60 + int(minutes.rstrip("m") or 0)\n'
    )
    reader.serve(Emulator(lambda _: f"```python\n{body}```"))


def model(reader: Reader) -> None:
    """Give a key, and a model that knows the right answers."""
    reader.serve(Emulator(_answer))


def endpoint(reader: Reader, variable: str = "MY_MODEL_URL") -> None:
    """Give a model behind an address of the reader's own."""
    service = reader.enter(chat_service(Said(RIGHT)))
    reader.monkeypatch.setenv(variable, f"{service.address}/v1/chat/completions")


def chat(reader: Reader) -> None:
    """Give a server that speaks the API of OpenAI, and a key."""
    service = reader.enter(chat_service(Said(RIGHT)))
    reader.monkeypatch.setenv("OPENAI_BASE_URL", f"{service.address}/v1")
    reader.monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-planted-0123456789")


def quick_hypothesis(reader: Reader) -> None:
    """Let hypothesis draw few values, the same in each run, without a deadline."""
    phases = [phase for phase in Phase if phase is not Phase.explain]
    profile = settings(
        max_examples=60, phases=phases, database=None, deadline=None, derandomize=True
    )
    settings.register_profile("article", profile)
    settings.load_profile("article")
    left = ExitStack()
    left.callback(settings.load_profile, "default")
    reader.enter(left)


def talk(reader: Reader) -> None:
    """Give the recorded conversation of docs/cassettes.md, and change a prompt of its test."""
    text = TEST.replace("Which of them feeds bees?", "Which of them feeds bees and moths?")
    write(reader.folder / "test_talk.py", text)
    (reader.folder / FILE).parent.mkdir(parents=True)
    shutil.copy(RECORDING, reader.folder / FILE)


def _answer(body: Mapping[str, Any]) -> EmulatedReply:
    text = json.dumps(body["messages"], ensure_ascii=False)
    if "initials" in text:
        return EmulatedReply(STRICTER if "lower case" in text else RIGHT)
    for name, content in _made.get("store", {}).items():
        if name.endswith("pages.json"):
            for page in json.loads(content)["pages"]:
                if f'TYPE: \\"{page["type_name"]}\\"' in text:
                    return EmulatedReply(f"```python\n{page['output']}\n```")
    for english, german in TRANSLATIONS.items():
        if json.dumps(json.dumps(english))[1:-1] in text:
            return EmulatedReply(german)
    return EmulatedReply("I cannot say.")


GIVEN: Mapping[str, Callable[[Reader], None]] = {
    "nothing": nothing,
    "description": description,
    "function": function,
    "broken-function": lambda reader: function(reader, WRONG),
    "store": store,
    "broken-store": broken_store,
    "repository": repository,
    "model": model,
    "pattern-model": pattern_model,
    "duration-model": duration_model,
    "endpoint": endpoint,
    "letters": lambda reader: endpoint(reader, "LETTERS_URL"),
    "chat": chat,
    "talk": talk,
    "quick-hypothesis": quick_hypothesis,
}
