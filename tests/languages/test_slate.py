"""A language of somebody else's does all that C# does: generate, validate, drift, heal."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from slate_language import answer, install
from small_documents import document_of

from pytest_regen import languages
from pytest_regen.regeneration import TurnSettings, generate_store, heal_store
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider
from pytest_regen.validation import validate_store

SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Kite",
    "required": ["kite_id", "colour"],
    "properties": {
        "kite_id": {"type": "integer"},
        "colour": {"$ref": "#/components/schemas/Colour"},
        "tail-length": {"type": "number"},
        "knots": {"type": "array", "items": {"type": "string"}},
        "winds": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Wind"}},
    },
}
COMPONENTS = {
    "Colour": {"type": "string", "enum": ["sky-blue", "moss green"]},
    "Wind": {"type": "object", "required": ["from"], "properties": {"from": {"type": "string"}}},
}
DOTNET = re.compile(
    r"\bJson[A-Z]|\bclass\b|\bproperty\b|\bget;|\binit;|C#|\.NET|\bSystem\b|\[\w+\("
)


@pytest.fixture(autouse=True)
def _slate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install Slate as a distribution on the import path."""
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    languages.forget_languages()
    yield
    languages.forget_languages()


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Return an API description with a record, another one, and an enum."""
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document_of(SCHEMA, COMPONENTS)), "utf-8")
    return path


class Model:
    """Answers as it should, but for what ``spoil`` makes of the first answers."""

    def __init__(self, *spoil: tuple[str, str]) -> None:
        self.spoil = dict(spoil)
        self.prompts: list[str] = []

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the answer to a request, and remember what was asked."""
        text = "\n".join(message["content"] for message in messages)
        self.prompts.append(text)
        reply = answer(messages)
        if "CORRECTION REQUIRED:" in messages[1]["content"]:
            return reply
        for right, wrong in self.spoil.items():
            reply = reply.replace(right, wrong)
        return reply

    @property
    def corrections(self) -> list[str]:
        """The correction blocks that were sent."""
        blocks = (prompt.partition("\nCORRECTION REQUIRED:")[2] for prompt in self.prompts)
        return [block.partition("\nOUTPUT MODE:")[0] for block in blocks if block]


def generated(document: Path, model: Model) -> Path:
    """Return the store of the document's operation, as ``model`` answers for it."""
    return generate_store(
        document,
        "GET /things",
        document.parent / "out",
        settings=TurnSettings(CallableProvider(model)),
        language="slate",
        namespace="acme.kites",
        attempts=1,
        fields_per_page=2,
    ).plan.path


def issues(path: Path) -> list[tuple[str, str | None, str | None]]:
    """Return code, type and field of each issue of a store."""
    results = validate_store(RegenStore.open(path)).values()
    return [
        (issue.code, issue.type_name, issue.field) for result in results for issue in result.issues
    ]


def test_a_store_is_generated_behind_its_comment_sign(document: Path) -> None:
    """Header, boundaries, pages joined; no request has a word of another language in it."""
    model = Model()
    path = generated(document, model)

    store = RegenStore.open(path)
    assert store.source_path.name == "KiteRoot.slate"
    assert store.source == (
        "module acme.kites\n\n"
        "# [REGEN:BEGIN KiteRoot]\n"
        "record KiteRoot\n"
        '  kite_id "kite_id": whole\n'
        '  colour "colour": Colour\n'
        '  tail_length "tail-length": real?\n'
        '  knots "knots": list(text)?\n'
        '  winds "winds": map(Wind)?\n'
        "end\n"
        "# [REGEN:END KiteRoot]\n\n"
        "# [REGEN:BEGIN Colour]\n"
        "choice Colour\n"
        '  sky_blue "sky-blue"\n'
        '  moss_green "moss green"\n'
        "end\n"
        "# [REGEN:END Colour]\n\n"
        "# [REGEN:BEGIN Wind]\n"
        'record Wind\n  from "from": text\nend\n'
        "# [REGEN:END Wind]\n"
    )
    assert issues(path) == []
    assert len(model.prompts) == 5
    assert not [match for prompt in model.prompts for match in DOTNET.findall(prompt)]
    assert all("the complete record TYPE" in prompt for prompt in model.prompts)


def test_faults_are_found_and_healed(document: Path) -> None:
    """Each fault is told of its field; a correction a page heals it, in words of the language."""
    model = Model(
        ("whole", "text"),
        ("real?", "real"),
        ("map(Wind)", "map(Gale)"),
        ('  moss_green "moss green"\n', ""),
        ("from", "(from"),
    )
    path = generated(document, model)
    found = issues(path)
    asked = len(model.prompts)

    heal_store(path, settings=TurnSettings(CallableProvider(model)))

    assert found == [
        ("WRONG_TYPE", "KiteRoot", "kite_id"),
        ("NULLABILITY", "KiteRoot", "tail-length"),
        ("UNDECLARED_TYPE", "KiteRoot", "winds"),
        ("ENUM_MEMBER", "Colour", "moss green"),
        ("MISSING_FIELD", "Wind", "from"),
        ("SYNTAX", "Wind", "from"),
    ]
    assert issues(path) == []
    assert len(model.prompts) == asked + len(model.corrections) == asked + 5
    assert not [match for text in model.corrections for match in DOTNET.findall(text)]
