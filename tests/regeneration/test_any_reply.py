"""No reply of any shape does harm: it is stored, validated and healed, and never a traceback."""

import json
from pathlib import Path
from typing import Any

from small_documents import document_of
from store_factory import GOOD
from tables import each

from pytest_regen.regeneration import TurnSettings, generate_store, partial_regenerate
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider
from pytest_regen.validation import validate_store

OWNER = GOOD["Owner", 1]
TIMES = 400
DEEP = {
    "generics": OWNER.replace("string?", "List<" * TIMES + "int" + ">" * TIMES),
    "strings": OWNER.replace('"name"', '"na" + ' + '"" + ' * TIMES + '"me"'),
    "classes": "public class Owner { " * TIMES + "}" * TIMES,
    "blocks": OWNER.replace("{ get; set; }", "{ get " + "{" * TIMES + "}" * TIMES + " }"),
    "branches": "#if A\n" + "#elif B\n// b\n" * TIMES + "#endif\n" + OWNER,
    "minus": OWNER.replace("{ get; set; }", "=> " + "-" * TIMES + "1;"),
}
"""Legal C#, nested too deep for whoever reads it level by level."""
REPEATED = {
    "braces": "{",
    "open members": "public class Owner {\nx {\n",
    "open generics": "A<",
    "fences": "```\nx {\n",
    "thinking": "<think>",
}
"""What a model may repeat until a limit stops it."""
HOSTILE = {
    "NUL": OWNER.replace("Name", "Na\0me"),
    "half a character": OWNER.replace("Name", "Na\ud83dme"),
    "boundaries": f"// [REGEN:END Owner]\n// [REGEN:BEGIN Owner]\n{OWNER}\n// [REGEN:END State]",
    "conflict": f"<<<<<<< HEAD\n{OWNER}\n=======\n{OWNER}\n>>>>>>> other",
}
SHAPES = DEEP | HOSTILE | {name: text * (400 // len(text)) for name, text in REPEATED.items()}


def a_model_of(text: str) -> TurnSettings:
    """Return settings whose model says ``text`` whatever it is asked."""
    return TurnSettings(CallableProvider(lambda _: text))


def codes(path: Path) -> set[str]:
    """Return the codes of the errors in a store, read afresh."""
    results = validate_store(RegenStore.open(path)).values()
    return {issue.code for result in results for issue in result.errors}


def generated(folder: Path, text: str) -> Path:
    """Return the store of a small document that was generated with ``text`` as every reply."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "state": {"type": "integer"}},
    }
    api = folder / "api.json"
    api.write_text(json.dumps(document_of(schema)), "utf-8")
    return generate_store(
        api, "GET /things", folder, settings=a_model_of(text), attempts=2
    ).plan.path


@each("text", SHAPES.values(), ids=SHAPES)
def test_no_reply_stops_a_generation_or_what_comes_after_it(tmp_path: Path, text: str) -> None:
    """It is stored as it was read; the store can be validated, healed and read from then on."""
    path = generated(tmp_path, text)

    assert codes(path)
    partial_regenerate(path, provider=a_model_of(text).provider, accept_any=True)
    assert codes(path)
