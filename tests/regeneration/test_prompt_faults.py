"""What the prompts ask for wrongly is one finding about the prompts, and no call is paid for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from slate_language import answer, install
from small_documents import document_of

from pytest_regen import languages
from pytest_regen.regeneration import TurnSettings, generate_store, heal_store
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider

PARTS = {
    name: {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {"type": "integer"}, "name": {"type": "string"}},
    }
    for name in ("Bow", "Keel", "Mast")
}
ROOT = {
    "type": "object",
    "title": "Ship",
    "properties": {
        **{name.lower(): {"$ref": f"#/components/schemas/{name}"} for name in PARTS},
        "crew": {"type": "integer"},
    },
}
PLACES = [("ShipRoot", "crew"), ("Bow", "size"), ("Keel", "size"), ("Mast", "size")]


@pytest.fixture(autouse=True)
def _slate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a language whose prompts ask for the wrong spelling of integers."""
    install(tmp_path / "site", value="slate_language:MisspeltSlate")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nregen_stores = ["out/*"]\n', "utf-8"
    )
    languages.forget_languages()
    yield
    languages.forget_languages()


class Model:
    """Does as it is told, but for what ``spoil`` makes of its first answers; counts calls."""

    def __init__(self, spoil: Mapping[str, str] | None = None) -> None:
        self.spoil = dict(spoil or {})
        self.requests: list[str] = []

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the answer to a request."""
        asked = messages[1]["content"]
        self.requests.append(asked)
        reply = answer(messages)
        if "CORRECTION REQUIRED:" not in asked:
            for right, wrong in self.spoil.items():
                reply = reply.replace(right, wrong)
        return reply


def make(model: Model, attempts: int = 1) -> Path:
    """Return a store as ``model`` writes it."""
    document = Path("api.json")
    document.write_text(json.dumps(document_of(ROOT, PARTS)), "utf-8")
    return generate_store(
        document,
        "GET /things",
        "out",
        settings=TurnSettings(CallableProvider(model)),
        language="slate",
        attempts=attempts,
    ).plan.path


def heal(path: Path, model: Model) -> Any:
    """Heal a store with a model."""
    return heal_store(path, settings=TurnSettings(CallableProvider(model)), attempts=3)


def test_no_call_is_paid_for_what_the_prompt_asks_for() -> None:
    """Four types do as they were told: one fault, no request, and all of them named."""
    path, model = make(Model()), Model()

    result = heal(path, model)

    assert (result.calls, model.requests) == (0, [])
    assert set(result.stop_reasons.values()) == {"unfixable"}
    (fault,) = result.prompt_faults
    assert (fault.code, sorted(fault.places)) == ("WRONG_TYPE", sorted(PLACES))
    assert len(result.validation.errors) == 4


def test_what_a_reply_can_correct_is_still_asked_for() -> None:
    """A type with a fault of its own beside it: that alone is in the correction, and is healed."""
    path = make(Model({'name "name": text?': 'name "nom": text?'}))
    model = Model()

    result = heal(path, model)

    assert len(model.requests) == 3  # The root has no name.
    assert not [request for request in model.requests if "WRONG_TYPE" in request]
    assert {issue.code for issue in result.validation.errors} == {"WRONG_TYPE"}
    assert set(result.stop_reasons.values()) == {"unfixable"}
    assert sorted(result.prompt_faults[0].places) == sorted(PLACES)


def test_another_spelling_than_the_ordered_one_is_healed() -> None:
    """The code has the fault in other words: whether a reply corrects it is not known before."""
    path = make(Model({'size "size": text': 'size "size": flag'}))
    model = Model()

    result = heal(path, model)

    assert len(model.requests) == 3
    assert set(result.stop_reasons.values()) == {"unfixable"}
    assert {place for fault in result.prompt_faults for place in fault.places} == set(PLACES)


def test_a_language_that_cannot_write_pages_heals_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What its prompts ask for is not known: each type is asked for, as before."""
    path, model = make(Model()), Model()

    def broken(*_: object, **__: object) -> str:
        raise RuntimeError("not written yet")

    language = languages.find_language(RegenStore.open(path).ir.language)
    monkeypatch.setattr(type(language), "write_page", broken)

    result = heal(path, model)

    assert len(model.requests) == 4
    assert not result.prompt_faults


def test_commands_tell_it_once() -> None:
    """For people in one line, for programs as one finding; no key is needed to learn it."""
    path = make(Model())

    told = command("regenerate", path, "--from-errors")
    as_json = command("regenerate", path, "--from-errors", "--json")
    planned = command("regenerate", path, "--from-errors", "--dry-run")

    assert told.code == as_json.code == 1
    assert told.err.count("it is what the prompts ask for, so that no reply can correct it") == 1
    assert "WRONG_TYPE in 4 types" in told.err
    assert "next: change the spelling that the prompts ask for" in told.err
    (fault,) = as_json.json["prompt_faults"]
    assert (fault["code"], fault["issue"], len(fault["places"])) == ("UNFIXABLE", "WRONG_TYPE", 4)
    assert "0 pages to ask" in planned.err


def test_generate_tells_it_once() -> None:
    """At the end of the command that made the types, with what to do about it."""
    document = Path("api.json")
    document.write_text(json.dumps(document_of(ROOT, PARTS)), "utf-8")

    ran = command(
        "generate", document, "GET /things", "--language", "slate", "--provider", "template"
    )

    assert ran.code == 1
    assert ran.err.count("it is what the prompts ask for") == 1
    assert "next: change the spelling that the prompts ask for" in ran.err


def test_pytest_tells_it_once(pytester: pytest.Pytester) -> None:
    """Each type fails, nothing is asked, and the summary has one line for all of them."""
    make(Model())
    pytester.makeini("[pytest]\nregen_stores = out/*\n")
    pytester.makeconftest(
        "def pytest_regen_before_turn(config, request):\n    raise SystemExit(9)\n"
    )

    planned = pytester.runpytest_inprocess("-p", "no:syrupy", "--regen", "--regen-dry-run")
    options = ("-p", "no:syrupy", "--regen", "--regen-report", "r.json")
    result = pytester.runpytest_inprocess(*options)

    planned.stdout.fnmatch_lines(["dry run: *::Keel: nothing a reply could correct"])

    result.assert_outcomes(failed=4)
    lines = [line for line in result.outlines if "is what the prompts ask for" in line]
    assert len(lines) == 1
    assert lines[0].startswith("unfixable: WRONG_TYPE in 4 types")
    assert "still failing" not in result.stdout.str()
    result.stdout.fnmatch_lines(["next: change the spelling that the prompts ask for*"])
    report = json.loads((pytester.path / "r.json").read_text("utf-8"))
    (fault,) = report["run"]["prompt_faults"]
    assert len(fault["places"]) == 4
    assert {heal["calls"] for item in report["items"] for heal in item["heals"]} == {0}
