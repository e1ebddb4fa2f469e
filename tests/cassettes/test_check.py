"""What ``cassettes check`` warns of: unused, stale, oversize, drifting and varying recordings."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cassette_commands import checked, codes, foreign, run
from recorded import record
from turn_values import turn

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded_days_ago(path: Path, days: int) -> None:
    """Record a cassette and say that it happened long ago."""
    record(path, [turn("one")])
    text = path.read_text("utf-8")
    before = text.partition("recorded_at: ")[2].partition("\n")[0]
    day = (datetime.now(UTC) - timedelta(days=days)).date()
    path.write_text(text.replace(before, f'"{day}"', 1), "utf-8")


def test_what_is_older_than_asked_is_stale(folder: Path, capsys: Capture) -> None:
    """Age counts only where a limit is given; recordings of others have none."""
    recorded_days_ago(folder / "old.yaml", 400)
    recorded_days_ago(folder / "young.yaml", 10)
    foreign(folder / "foreign.yaml", {"a": 1})

    assert checked(capsys, ".")[1]["findings"] == []
    _, found = checked(capsys, ".", "--max-age", "100")

    assert [(one["code"], one["path"]) for one in found["findings"]] == [("STALE", "old.yaml")]
    assert "recorded 400 days ago, over 100" in found["findings"][0]["message"]


def test_what_another_program_laid_out_is_stale_too(folder: Path, capsys: Capture) -> None:
    """A file that is not laid out as ours says when it was recorded all the same."""
    path = foreign(folder / "c.yaml", {"a": 1})
    data = yaml.safe_load(path.read_text("utf-8"))
    data["metadata"] = {"recorded_at": (datetime.now(UTC) - timedelta(days=400)).date()}
    path.write_text(yaml.safe_dump(data), "utf-8")

    _, found = checked(capsys, ".", "--max-age", "100")

    assert [(one["code"], one["path"]) for one in found["findings"]] == [("STALE", "c.yaml")]


def test_what_is_larger_than_asked_is_oversize(folder: Path, capsys: Capture) -> None:
    """A megabyte, unless another size is given."""
    record(folder / "c.yaml", [turn("one" * 1_000)])
    foreign(folder / "large.yaml", {"prompt": "word " * 250_000})

    _, found = checked(capsys, ".")
    _, smaller = checked(capsys, ".", "--max-size", "2")

    assert [(one["code"], one["path"]) for one in found["findings"]] == [("OVERSIZE", "large.yaml")]
    assert "kB, over 1000" in found["findings"][0]["message"]
    assert codes(smaller) == ["OVERSIZE", "OVERSIZE"]


def test_what_a_run_left_is_partial_and_nothing_else(folder: Path, capsys: Capture) -> None:
    """Size and age of something that is to be looked at anyway are not told."""
    record(folder / "c.yaml", [turn("one" * 1_000)])
    (folder / "c.yaml").rename(folder / "c.yaml.partial")

    code, found = checked(capsys, ".", "--max-size", "1", "--max-age", "0")

    assert (code, codes(found)) == (0, ["PARTIAL"])


@pytest.mark.parametrize("where", [".", "cassettes", "absolute", "inside"])
def test_what_drifted_is_known_however_it_is_named(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """From the rootdir, a folder below it, by an absolute path."""
    record(folder / "cassettes/c.yaml", [turn("one")])
    known = folder / ".pytest_cache/v/regen/drifted"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps(["cassettes/c.yaml", "cassettes/gone.yaml"]), "utf-8")
    if where == "inside":
        monkeypatch.chdir(folder / "cassettes")
    named = {"absolute": str(folder / "cassettes"), "inside": "."}.get(where, where)

    code, found = checked(capsys, named)

    assert (code, codes(found)) == (0, ["DRIFT"])


@pytest.mark.parametrize("text", ["", "{", "[1, null]", '{"a": 1}'])
def test_a_spoilt_cache_is_no_business_of_the_check(
    folder: Path, capsys: Capture, text: str
) -> None:
    """It is pytest's, and may be deleted at any time."""
    record(folder / "c.yaml", [turn("one")])
    known = folder / ".pytest_cache/v/regen/drifted"
    known.parent.mkdir(parents=True)
    known.write_text(text, "utf-8")

    assert checked(capsys, "c.yaml")[1]["findings"] == []


MODULE = """
from elsewhere import Shared, test_imported

NAME = "given"
SHORT = ["t", "", "."]
test_made = Shared.make()

def test_a(cassette): pass
if True:
    def test_conditional(cassette): pass

class TestB:
    def test_c(self): pass
    class TestInner:
        def test_d(self): pass

class TestShared(Shared): pass

class TestUnit(unittest.TestCase):
    def test_e(self): pass
"""
USED = [
    "test_a", "test_a[x-1]", "test_imported", "test_made", "test_conditional", "TestB.test_c",
    "TestInner.test_d", "TestUnit.test_e", "TestShared.test_anything", "given",
    "test_a_xxxxxxxxxxxxxxxx_0daceca6",
]  # fmt: skip
UNUSED = [
    "test_z",
    "TestB.test_z",
    "TestZ.test_c",
    "TestUnit.test_z",
    "test_z_xxxxxxxxxxxxxxxx_0daceca6",
]


@pytest.mark.parametrize("module", ["test_m", "m_test"])
@pytest.mark.parametrize("where", ["cassettes", "absolute", "inside"])
def test_cassettes_without_a_test_are_unused(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, module: str, where: str
) -> None:
    """Whatever way a test can get its name is understood, and a shortened name as well."""
    (folder / f"{module}.py").write_text(MODULE, "utf-8")
    for name in (*USED, *UNUSED):
        foreign(folder / "cassettes" / module / f"{name}.yaml", {"prompt": name})
    if where == "inside":
        monkeypatch.chdir(folder / "cassettes")
    named = {"absolute": str(folder / "cassettes"), "inside": module}.get(where, where)

    code, found = checked(capsys, named)

    assert code == 0
    assert codes(found) == ["UNUSED"] * len(UNUSED)
    assert sorted(Path(one["path"]).stem for one in found["findings"]) == sorted(UNUSED)


def test_cassettes_without_a_module_are_unused(folder: Path, capsys: Capture) -> None:
    """Only those that lie where a module's do: what was healed belongs to a store."""
    for name in ("test_gone/test_a", "regen/store/Type", "plain"):
        foreign(folder / "cassettes" / f"{name}.yaml", {"prompt": name})

    _, found = checked(capsys, "cassettes")

    [one] = found["findings"]
    assert (one["code"], one["path"]) == ("UNUSED", "cassettes/test_gone/test_a.yaml")
    assert one["message"] == "its test module test_gone.py is gone"


@pytest.mark.parametrize("text", [b"def test(:", b"\xff\xfe", b"x = 1\x00"])
def test_a_module_that_cannot_be_read_says_nothing(
    folder: Path, capsys: Capture, text: bytes
) -> None:
    """Its tests are not known, so none of its cassettes is called unused."""
    (folder / "test_m.py").write_bytes(text)
    foreign(folder / "cassettes/test_m/test_a.yaml", {"a": 1})

    assert checked(capsys, "cassettes")[1]["findings"] == []


def test_what_varies_between_recordings_is_named(folder: Path, capsys: Capture) -> None:
    """Ids and dates in requests that are otherwise the same, as paths to declare."""
    first = {"model": "m", "metadata": {"user_id": "user_01ABCDEF4711"}, "at": "2026-01-02"}
    other = {"model": "m", "metadata": {"user_id": "user_02GHIJKL0815"}, "at": "2026-05-06"}
    foreign(folder / "a.yaml", first)
    foreign(folder / "b.yaml", other, {"model": "another", "metadata": {}})

    code, found = checked(capsys, ".")

    assert code == 0
    assert [(one["code"], one["path"]) for one in found["findings"]] == [("VARIES", "b.yaml")] * 2
    assert {one["message"] for one in found["findings"]} == {
        "$.at varies between recordings; ignore = ['$.at']",
        "$.metadata.user_id varies between recordings; ignore = ['$.metadata.user_id']",
    }


def test_a_prompt_that_varies_in_part_is_not_to_be_ignored_whole(
    folder: Path, capsys: Capture
) -> None:
    """Ignoring it would compare nothing; what varies is shown, to be taken out by a function."""
    for name, day in (("a", "2026-01-02"), ("b", "2026-05-06")):
        message = {"role": "user", "content": f"Today is {day}. What is in season?"}
        foreign(folder / f"{name}.yaml", {"model": "m", "messages": [message]})

    _, found = checked(capsys, ".")

    [one] = found["findings"]
    assert "$.messages[0].content varies between recordings in part: " in one["message"]
    assert '"Today is 2026-01-02. ' in one["message"]
    assert '"Today is 2026-05-06. ' in one["message"]
    assert "normalize=" in one["message"]
    assert "ignore" not in one["message"]


def test_other_words_are_other_requests(folder: Path, capsys: Capture) -> None:
    """Two prompts that ask for different things do not vary."""
    record(folder / "c.yaml", [turn("Name a fern."), turn("Name a moss."), turn("Name 3 ferns.")])

    assert checked(capsys, ".")[1]["findings"] == []


def test_of_a_folder_only_cassettes_are_checked(folder: Path, capsys: Capture) -> None:
    """Other YAML and JSON is skipped and listed; what should be a cassette and is broken is not."""
    record(folder / "c.yaml", [turn("one")])
    (folder / "api.yaml").write_text("openapi: 3.1.0\nx:\n  interactions: []\n", "utf-8")
    (folder / "lists.json").write_text('{"a": {"interactions": 1}}', "utf-8")
    (folder / "broken.yaml").write_text("interactions:\n- {", "utf-8")
    (folder / "broken.json").write_text('{"version": 1, "interactions": [', "utf-8")
    (folder / "cassettes").mkdir()
    (folder / "cassettes/empty.yaml").touch()

    code, found = checked(capsys, ".")

    assert (code, found["checked"], found["skipped"]) == (2, 4, ["api.yaml", "lists.json"])
    assert [(one["code"], one["path"]) for one in found["findings"]] == [
        ("UNREADABLE", name) for name in ("broken.json", "broken.yaml", "cassettes/empty.yaml")
    ]
    assert checked(capsys, "api.yaml")[0] == 2
    assert codes(checked(capsys, "cassettes")[1]) == ["UNREADABLE"]
    run("check", ".")
    said = "skipped, because they hold no interactions: api.yaml and 1 more\n4 checked, 3 errors"
    assert said in capsys.readouterr().err


def test_for_people_each_warning_is_one_line(folder: Path, capsys: Capture) -> None:
    """With place and code; warnings do not fail the check."""
    foreign(folder / "cassettes/test_gone/test_a.yaml", {"a": 1})

    assert run("check", "cassettes") == 0

    said = capsys.readouterr().err.splitlines()
    assert said == [
        "cassettes/test_gone/test_a.yaml: warning: [UNUSED] its test module test_gone.py is gone",
        "1 checked, 0 errors, 1 warning",
    ]
