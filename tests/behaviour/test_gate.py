"""What running the types of a Python store finds: right type, right field, a small instance."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from run_stores import behaviour_issues, edit, run_store
from small_documents import document_of

from pytest_regen.documents import read_document
from pytest_regen.languages.python.runner import PythonRunner
from pytest_regen.languages.runner import Answers, Question
from pytest_regen.regeneration import generate_store
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.regeneration.store_view import with_pages
from pytest_regen.stores import RegenStore
from pytest_regen.turns import TemplateProvider
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Issue
from pytest_regen.validation.stores import behaviour_of_store

_IMPORT = "from pydantic import BaseModel, ConfigDict, Field, PlainSerializer"
_MORE = f"{_IMPORT}, field_serializer, field_validator"

FAULTS = {
    _IMPORT: _MORE,
    "    name: str = Field(min_length=2)": "    name: str",
    "    note: str | None = None\n": (
        "    note: str | None = None\n\n"
        '    @field_validator("length")\n'
        "    @classmethod\n"
        "    def _whole(cls, value: float) -> float:\n"
        "        return float(round(value))\n\n"
        '    @field_validator("free_from")\n'
        "    @classmethod\n"
        "    def _local(cls, value: dt.datetime | None) -> dt.datetime | None:\n"
        "        return value and value.replace(tzinfo=None)\n"
    ),
    "    maker: str\n    model: str\n": (
        '    maker: str = Field(alias="model")\n    model: str = Field(alias="maker")\n'
    ),
    "    lifts: float | None = None\n": (
        "    lifts: float | None = None\n\n"
        "    def model_post_init(self, context: object) -> None:\n"
        "        if self.lifts is None:\n"
        '            self.__dict__["lifts"] = 0.5\n'
    ),
}
"""Only running them shows what is wrong: the annotations are right."""


def python_store(path: Path, changes: dict[str, str] | None = None) -> RegenStore:
    """Return a store of models."""
    return run_store(path, changes, language="python", profile="default")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Issue]]:
    """The issues of a store with a fault in each class."""
    return behaviour_issues(python_store(tmp_path_factory.mktemp("faults"), FAULTS))


def test_what_a_type_does_is_told_of_its_field(found: dict[str, list[Issue]]) -> None:
    """Of the innermost type alone, with a small instance and the page that is to be asked again."""
    told = {issue.field: issue for issues in found.values() for issue in issues}

    length = told["length"]
    given = json.loads((length.detail or "").removeprefix("instance: "))
    assert given.keys() == {"id", "length"}
    back = float(round(given["length"]))
    assert length.message == f"'length' comes back as {back}, not as {given['length']}"
    assert (length.code, length.page, length.line is None) == ("ROUND_TRIP", 1, False)
    assert {issue.field for issue in found["Harbour"]} == {"name"}
    assert told["name"].code == "ACCEPTS_INVALID"
    assert told["name"].message.endswith(", shorter than 2")
    messages = {issue.message for issue in found["Crane"]}
    assert "'maker' holds the value of 'model', not that of 'maker'" in messages
    assert "'lifts' is absent, but 'lifts' holds 0.5: absence must show" in messages


@pytest.mark.parametrize("how", ["forbid", "ignore"])
def test_a_type_that_loses_what_an_api_adds_is_found(tmp_path: Path, how: str) -> None:
    """A property that the document allows and does not declare comes back, or the data is lost."""
    config = f'    model_config = ConfigDict(extra="{how}")\n\n    maker: str\n'

    found = behaviour_issues(python_store(tmp_path, {"    maker: str\n": config}))

    assert found.keys() == {"Crane"}
    assert {issue.code for issue in found["Crane"]} == {"ROUND_TRIP"}
    [shown] = [f"{issue.message} {issue.detail}" for issue in found["Crane"]][:1]
    assert "x-new" in shown or "newField" in shown


def test_types_are_only_loaded_where_its_codes_are_ignored(tmp_path: Path) -> None:
    """``behaviour = "off"`` ignores both: what types are is told, what they do is not asked."""
    changes = {
        "    name: str = Field(min_length=2)": "    name: str",
        "    model: str\n": "    model: Optional[str]\n",
    }
    store = python_store(tmp_path, changes)

    found = validate_store(store, ignore=["ROUND_TRIP", "ACCEPTS_INVALID", "DRIFT"])

    [issue] = [issue for result in found.values() for issue in result.issues]
    assert (issue.code, issue.type_name, issue.field) == ("UNDECLARED_TYPE", "Crane", "model")
    assert issue.message.endswith("add the line: from typing import Optional")


def test_where_nothing_can_be_run_types_are_read_and_ci_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are still compared; that no type was tried is told, and an error in CI."""
    store = python_store(tmp_path, {"    maker: str\n": "    builder: str\n"})
    monkeypatch.setattr("pytest_regen.sandbox.missing", lambda: "nothing limits it there")
    monkeypatch.setenv("CI", "")
    here = validate_store(store, ignore=["DRIFT"])
    monkeypatch.setenv("CI", "true")
    in_ci = validate_store(store, ignore=["DRIFT"])
    off = validate_store(store, ignore=["DRIFT", "ROUND_TRIP", "ACCEPTS_INVALID"])

    assert {issue.code for issue in here["Crane"].issues} == {"MISSING_FIELD", "PHANTOM_FIELD"}
    assert behaviour_of_store(store).why_not == "nothing limits it there"
    [told] = [one for result in in_ci.values() for one in result.issues if not one.field]
    assert told.message == "the types were only read: nothing limits it there"
    assert off == here


def test_only_what_names_an_edited_type_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though all lines below it move, by another process too; its own types are loaded alone."""
    store = python_store(tmp_path, {"    crane: Crane | None = None\n": ""})
    assert not behaviour_issues(store)
    asked = behaviour_of_store(store).asked
    assert asked == {"Harbour", "Berth", "Crane", "State"}
    store.memo.clear()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "no-python"))  # Nothing could be run.
        assert behaviour_of_store(store).asked == asked
    runs: list[tuple[set[str], set[str]]] = []
    run = PythonRunner.run

    def noted(
        self: PythonRunner,
        code: str,
        questions: Sequence[Question],
        folder: Path,
        blocks: Mapping[str, tuple[int, int]],
    ) -> Answers:
        runs.append(({question.type.name for question in questions}, {*blocks}))
        return run(self, code, questions, folder, blocks)

    monkeypatch.setattr(PythonRunner, "run", noted)
    for line, again, loaded in (
        ("    maker: str\n", {"Crane"}, {"Crane"}),
        ("    id: int\n", {"Harbour", "Berth"}, {"Harbour", "Berth", "State"}),
    ):
        runs.clear()
        edit(store, {line: f"    # One line more.\n{line}"})
        validate_store(RegenStore.open(store.path))
        assert [again, loaded] in ([*run] for run in runs)
        assert all(of_run == loaded for _, of_run in runs)


def test_a_type_that_does_not_load_has_the_issue(tmp_path: Path) -> None:
    """Python says why, and the line where; the types beside it are run."""
    method = "    @unheard_of\n    def lift(self) -> None: ...\n\n    lifts: float"
    store = python_store(tmp_path, {"    lifts: float": method})

    [issue] = validate_store(store, ignore=["DRIFT"])["Crane"].issues

    assert issue.code == "IMPORT_FAILED"
    assert issue.message == "NameError: name 'unheard_of' is not defined"
    assert issue.line == store.source.split("\n").index("    @unheard_of") + 1
    assert behaviour_of_store(store).asked == {"Berth", "State"}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import unheard_of", "ModuleNotFoundError: No module named 'unheard_of'"),
        ("__import__('os')._exit(0)", "it ended its process with exit code 0"),
    ],
)
def test_lines_around_the_types_are_at_fault_themselves(
    tmp_path: Path, code: str, reason: str
) -> None:
    """The issue is about the file, and no reply is asked for because of it."""
    store = python_store(tmp_path, {_IMPORT: f"{_IMPORT}\n{code}"})

    [(name, [issue])] = behaviour_of_store(store).issues.items()

    assert (name, issue.code, issue.page) == ("Harbour", "IMPORT_FAILED", None)
    assert issue in validate_store(store)["Harbour"].issues
    assert reason in (issue.detail or "")
    if "import unheard" in code:
        assert issue.line == store.source.split("\n").index(code) + 1
    assert not fixable_issues([issue])
    assert behaviour_of_store(RegenStore.open(store.path)).issues == {name: (issue,)}


def test_a_type_that_ends_the_process_has_the_issue(tmp_path: Path) -> None:
    """An exit is no answer, whatever its code; the others are asked without it."""
    leaves = (
        "    note: str | None = None\n\n"
        "    def model_post_init(self, context: object) -> None:\n"
        "        __import__('os')._exit(0)\n"
    )
    store = python_store(tmp_path, {"    note: str | None = None\n": leaves})

    [(name, [issue])] = behaviour_issues(store).items()

    assert (name, issue.code) == ("Berth", "ROUND_TRIP")
    assert {"Crane", "State"} <= behaviour_of_store(store).asked


def test_what_an_illegal_page_lacks_is_not_told_of_its_fields(tmp_path: Path) -> None:
    """The type is run without that page: that its fields are lost follows from it."""
    fields = {name: {"type": "integer", "minimum": 1} for name in ("a", "b", "c", "d")}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "api.json").write_text(json.dumps(document_of(schema)), "utf-8")
    document = read_document(tmp_path / "api.json")
    made = generate_store(
        document,
        document.operations[0],
        tmp_path / "kites",
        provider=TemplateProvider(),
        language="python",
        fields_per_page=2,
    )
    store = RegenStore.open(made.plan.path)
    last = store.envelope.pages[-1]
    broken = replace(last, output=last.output.replace("ge=1)", "ge=1", 1))

    (result,) = validate_store(with_pages(store, [broken]), ignore=["DRIFT"]).values()

    assert [(issue.code, issue.page) for issue in result.issues] == [("SYNTAX", 2)]


def test_what_is_made_of_a_stale_type_is_not_asked(tmp_path: Path) -> None:
    """The document allows a new value of an enum: no class that has it is at fault for that."""
    store = python_store(tmp_path)
    document = tmp_path / "api.yaml"
    text = document.read_text("utf-8")
    document.write_text(text.replace("enum: [free, taken]", "enum: [free, taken, closed]"), "utf-8")

    assert behaviour_issues(store) == {}
    assert behaviour_of_store(store).asked == {"Crane"}
    results = validate_store(store)
    assert {name for name, result in results.items() if result.issues} == {"State"}
