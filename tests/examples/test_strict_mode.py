"""The examples replay strictly: all that is recorded is played, and one changed word fails."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import played_recordings
import pytest
from warm_python import run_in

EXAMPLES = Path(__file__).parents[2] / "examples"
BREAK = "import demo, pathlib; demo.break_one_type(pathlib.Path(demo.STORE))"

# What notes the cassettes has imported the package by the time pytest wants to.
PYTEST = ("-m", "pytest", "-q", "-W", "ignore:Module already imported")
PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "csharp_dto": (
        ("-m", "pytest_regen", "generate", "api.yaml", "GET /v1/tides", "--out", "again",
         "--namespace", "Vell.Harbour.Tides", "--cassette", "cassettes/generate_tides.yaml"),
        ("-m", "pytest_regen", "generate", "api.yaml", "GET /v1/port-calls/{callId}",
         "--out", "again", "--namespace", "Vell.Harbour.PortCalls",
         "--cassette", "cassettes/generate_port_call.yaml"),
        (*PYTEST, "--regen"),
    ),
    "clarifying_agent": (PYTEST, ("flow.py",)),
}  # fmt: skip
"""What plays the recordings of an example; the tests of the others play theirs."""


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a copy of an example; where one heals, there is something to heal."""

    def copy(name: str) -> Path:
        folder = tmp_path / name
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(EXAMPLES / name, folder, ignore=ignored)
        if name == "csharp_dto":
            assert run_in(folder, "-c", BREAK).returncode == 0
        return folder

    return copy


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_recording_is_played_and_the_check_has_nothing_to_tell(
    name: str, copied: Callable[[str], Path], tmp_path: Path
) -> None:
    """By the example's own tests and programs; nothing is left over, drifted, old or leaking."""
    folder, notes = copied(name), tmp_path / "notes.jsonl"

    for program in PROGRAMS[name]:
        done = run_in(folder, played_recordings.__file__, str(notes), *program)
        assert done.returncode == 0, done.stdout + done.stderr
    checked = run_in(folder, "-m", "pytest_regen", "cassettes", "check", "cassettes", "--json")

    used = [json.loads(line) for line in notes.read_text("utf-8").splitlines()]
    recordings = {str(path.resolve()) for path in folder.rglob("cassettes/**/*.yaml")}
    assert {one["path"] for one in used} == recordings
    assert all(one["played"] and not one["unplayed"] + one["recorded"] for one in used)
    assert {one["drift"] for one in used} == {"fail"}
    found = {"checked": len(recordings), "ok": True, "findings": [], "skipped": []}
    assert json.loads(checked.stdout) == found


@pytest.mark.parametrize(
    ("name", "file", "words", "told"),
    [
        (
            "policy_scenarios",
            "compiler.py",
            ("changed as little", "altered as little"),
            ["turn 2: 'These scenarios fail ", "$.messages[2].content[0].text: ", "record.py"],
        ),
        # The transcript of a flow is looked at first; it knows parts of a prompt by their headings.
        (
            "clarifying_agent",
            "test_subject_line.py",
            ("in my city", "in my town"),
            [
                "turn 1 tells the model something else",
                "in 'Original Issue'",
                "next: pytest test_subject_line.py::test_questions_are_answered --regen-record",
            ],
        ),
    ],
    ids=["session", "agent"],
)
def test_one_changed_word_fails(
    copied: Callable[[str], Path], name: str, file: str, words: tuple[str, str], told: list[str]
) -> None:
    """The message names the turn, the place in the request, both values, and the next command."""
    folder = copied(name)
    text = (folder / file).read_text("utf-8")
    assert words[0] in text
    (folder / file).write_text(text.replace(*words, 1), "utf-8")

    done = run_in(folder, *PYTEST)

    assert done.returncode != 0
    shown = done.stdout + done.stderr
    assert [part for part in (*told, *words) if part not in shown] == []
