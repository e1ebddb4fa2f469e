"""How C# is compiled and asked. There may be no SDK here: what is built and read back is text."""

import json
import shutil
from pathlib import Path

import pytest
from run_stores import behaviour_issues, run_store

from pytest_regen.documents.ir import FieldIR, Scalar, TypeIR
from pytest_regen.languages import find_language, find_runner
from pytest_regen.languages.csharp.runner import CSharpRunner, read_answers
from pytest_regen.languages.runner import Answers, Question, Reply, RunFault
from pytest_regen.sandbox import Outcome
from pytest_regen.validation.stores import behaviour_of_store

SHIP = TypeIR(
    name="Ship",
    schema_id="#/Ship",
    kind="object",
    fields=(FieldIR(json_name="id", type=Scalar(kind="integer"), required=True),),
)
QUESTIONS = [Question(SHIP, {"id": "Id"}, ('{"id":1}', '{"id":"1"}'))]


def answers_to(printed: str, code: int = 0) -> Answers:
    """Return what is read of what dotnet printed."""
    return read_answers(Outcome(code, printed.encode(), b"", b"", None), "w", QUESTIONS)


def test_what_it_prints_is_read() -> None:
    """Paths of the serializer become steps; an error of the compiler is told once, on its line."""
    frame = {"replies": [['{"id":1}', None, ""], [None, "no", "$.id[0]['first name']"]]}
    printed = f"restored\nw {json.dumps({'loaded': True})}\nnoise\nw {json.dumps(frame)}\n"
    error = "/tmp/x/Store.cs(3,5): error CS0246: no type is called 'Berth' [/tmp/x/B.csproj]"

    answers = answers_to(printed)
    failed = answers_to(f"{error}\n\nBuild FAILED.\n{error}\n", code=1)

    assert answers.replies == {
        "Ship": (Reply(('{"id":1}',)), Reply((), "no", ("id", 0, "first name")))
    }
    assert failed.faults == (RunFault("CS0246: no type is called 'Berth'", line=3),)


def test_no_sdk_is_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is validated as ever, and whoever asks is told why it was not run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = find_runner(find_language("csharp"), "default")
    assert isinstance(runner, CSharpRunner)

    assert runner.is_rare
    assert runner.missing(tmp_path) == "dotnet 9 or later is not on the PATH"
    assert find_runner(find_language("csharp"), "xchange") is None


@pytest.mark.skipif(shutil.which("dotnet") is None, reason="dotnet is not on the PATH")
def test_what_the_template_writes_is_right(tmp_path: Path) -> None:
    """It compiles, and loads and dumps what the description allows."""
    store = run_store(tmp_path, language="csharp", profile="default")

    assert not behaviour_issues(store)
    assert behaviour_of_store(store).asked
