"""What ``cassettes check`` warns of: unused, stale, oversize and drifting recordings."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cassette_commands import checked, codes, foreign, run
from planted_secrets import NEWER
from recorded import record
from tables import each
from turn_values import turn

from pytest_regen.cassettes.upkeep.check import check_cassettes
from pytest_regen.credentials.search import find_secrets

pytestmark = pytest.mark.usefixtures("folder")

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 5
Capture = pytest.CaptureFixture[str]


def recorded_days_ago(path: Path, days: int) -> None:
    record(path, [turn("one")])
    text = path.read_text("utf-8")
    before = text.partition("recorded_at: ")[2].partition("\n")[0]
    day = (datetime.now(UTC) - timedelta(days=days)).date()
    path.write_text(text.replace(before, f'"{day}"', 1), "utf-8")


def test_age_can_be_an_error(folder: Path, capsys: Capture) -> None:
    """The exit code is that of an error, and a command records the file anew."""
    recorded_days_ago(folder / "old.yaml", 400)
    recorded_days_ago(folder / "young.yaml", 10)

    assert checked(capsys, ".")[1]["findings"] == []
    assert checked(capsys, ".", "--max-age", "100")[0] == 0
    assert run("check", ".", "--max-age", "100", "--fail-on", "stale") == 1

    told = capsys.readouterr().err
    assert "old.yaml: [STALE] recorded 400 days ago" in told
    assert "young.yaml" not in told
    assert "next: rm old.yaml && pytest --regen-record once\n" in told


@pytest.mark.usefixtures("folder")
def test_a_warning_that_is_misspelt_is_refused(capsys: Capture) -> None:
    """Else a gate would stay green that tests nothing."""
    assert run("check", ".", "--fail-on", "STALED") == 2
    assert "use one of DRIFT, EMPTY, " in capsys.readouterr().err


def test_what_is_larger_than_asked_is_oversize(folder: Path, capsys: Capture) -> None:
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


MODULE = """
from elsewhere import Shared, test_imported

NAMES = "given", "nul.txt"
SHORT = ["t", "", "."]
test_made = Shared.make()

def test_a(cassette): pass
if True:
    def test_conditional(cassette): pass

class TestB:
    def test_c(self): pass
    def check_f(self): pass
    class TestInner:
        def test_d(self): pass

class TestShared(Shared): pass

class TestUnit(unittest.TestCase):
    def test_e(self): pass
"""
USED = [
    "test_a", "test_a[x-1]", "test_imported", "test_made", "test_conditional", "TestB.test_c",
    "TestB.check_f", "TestInner.test_d", "TestUnit.test_e", "TestShared.test_anything", "given",
    "test_a_xxxxxxxxxxxxxxxx_0daceca6", "nul_txt",
]  # fmt: skip
UNUSED = ["test_z", "TestB.test_z", "TestZ.test_c", "TestUnit.test_z"]


@pytest.mark.parametrize(("module", "inside"), [("test_m", False), ("m_test", True)])
def test_cassettes_without_a_test_are_unused(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, module: str, *, inside: bool
) -> None:
    """Whatever way a test can get its name is understood, and a shortened name as well."""
    (folder / f"{module}.py").write_text(MODULE, "utf-8")
    for name in (*USED, *UNUSED):
        foreign(folder / "cassettes" / module / f"{name}.yaml", {"prompt": name})
    if inside:
        monkeypatch.chdir(folder / "cassettes")

    code, found = checked(capsys, module if inside else "cassettes")

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
    assert run("check", "cassettes") == 0
    assert "  next: rm cassettes/test_gone/test_a.yaml\n" in capsys.readouterr().err

    (folder / "conftest.py").write_text("def vcr_cassette_dir(): ...", "utf-8")
    assert checked(capsys, "cassettes")[1]["findings"] == []


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
    assert codes(checked(capsys, "api.yaml")[1]) == ["FOREIGN"]
    assert codes(checked(capsys, "cassettes")[1]) == ["UNREADABLE"]
    run("check", ".")
    said = "skipped, because they hold no interactions: api.yaml, lists.json\n4 checked, 3 errors"
    assert said in capsys.readouterr().err


def with_headers(path: Path, headers: dict[str, list[str]], said: object = b"{}") -> Path:
    return foreign(path, {"a": 1}, headers=headers, said=said)


@each(
    "headers,code",
    [
        ({"x-api-key": ["X-API-KEY-XXX"], "authorization": ["AUTHORIZATION-XXX"]}, ""),
        ({"authorization": ["Bearer ntn_***"], "x-api-key": ["xoxb-<redacted>"]}, ""),
        ({"authorization": ["Bearer {token}"], "x-api-key": ["sk-proj-aB3...9kQ"]}, ""),
        ({"authorization": ["Bearer runningbox_api_key"], "x-api-key": ["OPENAI_API_KEY"]}, ""),
        ({"anthropic-organization-id": ["ORGANIZATION-ID-XXX"]}, ""),
        ({"cookie": ["__cf_bm=I1KszUjNwv2uNOtjsRRs-1.0.1.1; _cfuvid=Y5f9H6gZ9ioI2buidXBn"]}, ""),
        ({"set-cookie": ["session=[REDACTED]; Path=/; Secure"]}, ""),
        ({"x-api-key": ["opaque-4711"]}, "error"),
        ({"authorization": ["Bearer q7Xv2Lm9 (redacted)"]}, "error"),
        ({"cookie": ["__cf_bm=I1Ksz; session=8f2a"]}, "error"),
        ({"authorization": ["Basic am9lOmh1bnRlcjI="]}, "error"),
        ({"anthropic-organization-id": ["04aa8588-6567-40cb-9042-a54b20ebaf4f"]}, "warning"),
    ],
)
def test_headers_that_say_something_are_found(
    tmp_path: Path, headers: dict[str, list[str]], code: str
) -> None:
    """A credential is an error; who pays is a warning; what stands for a value is neither."""
    findings = check_cassettes([with_headers(tmp_path / "c.yaml", headers)])

    assert [(one.code, one.severity) for one in findings] == ([("HEADER", code)] if code else [])


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\ninteractions:\n- kind: message\n  direction: sent\n  data: {type: a}\n",
        (
            "interactions:\n- request:\n    body: {messages: []}\n    headers: {}\n"
            "    method: POST\n    uri: http://a.test/\n  response:\n    body: {choices: []}\n"
            "    headers: {}\n"
            "    status: {code: 200, message: OK}\nversion: 1\n"
        ),
    ],
    ids=["messages of a socket", "bodies laid out"],
)
def test_recordings_of_another_make_are_named_as_such(
    folder: Path, capsys: Capture, text: str
) -> None:
    """They are not broken; a credential in their text is found all the same."""
    (folder / "cassettes").mkdir()
    path = folder / "cassettes/c.yaml"
    path.write_text(text, "utf-8")

    code, found = checked(capsys, "cassettes")

    assert (code, codes(found)) == (0, ["FOREIGN"])
    assert "only its text was searched" in found["findings"][0]["message"]

    path.write_text(text + f"x-own: {NEWER['pinecone']}\n", "utf-8")
    assert codes(checked(capsys, "cassettes")[1]) == ["FOREIGN", "SECRET"]


def test_a_header_is_told_once_for_each_file(folder: Path, capsys: Capture) -> None:
    """With its first line and how many recordings have it, not once for each of them."""
    path = with_headers(folder / "c.yaml", {"openai-organization": ["user-4711"]})
    data = yaml.safe_load(path.read_text("utf-8"))
    data["interactions"] *= 3
    path.write_text(yaml.safe_dump(data), "utf-8")

    _, found = checked(capsys, ".")

    [one] = found["findings"]
    assert one["message"] == (
        "the header 'openai-organization', which identifies an account (in 3 recordings)"
    )
    assert one["line"] == 2


class TestBaseline:
    """What a team looked at is not reported again; what is new is."""

    secret = NEWER["pinecone"]

    @pytest.fixture
    def looked_at(self, folder: Path, capsys: Capture) -> Path:
        """A cassette with a credential and a header, and a baseline that knows them."""
        with_headers(folder / "a/c.yaml", {"x-api-key": ["opaque-4711"]}, said=self.secret)
        assert checked(capsys, "a")[0] == 1
        assert checked(capsys, "a", "--baseline", "known.json", "--update-baseline")[0] == 0
        return folder / "known.json"

    def test_it_is_not_reported_again(self, looked_at: Path, capsys: Capture) -> None:
        """From wherever the check is called; the file holds hashes, and no line that could move."""
        code, found = checked(capsys, "a", "--baseline", "known.json")
        text = looked_at.read_text("utf-8")
        known = json.loads(text)

        assert (code, found["findings"]) == (0, [])
        assert checked(capsys, str(looked_at.parent / "a"), "--baseline", str(looked_at))[0] == 0
        assert self.secret not in text
        assert "opaque" not in text
        assert {(one["code"], one["kind"], one["path"]) for one in known["findings"]} == {
            ("HEADER", "x-api-key", "a/c.yaml"),
            ("SECRET", "pinecone-key", "a/c.yaml"),
        }
        assert find_secrets(text) == ()

    def test_another_value_is_reported(
        self, folder: Path, looked_at: Path, capsys: Capture
    ) -> None:
        """Of the same kind in the same file, in its text or in a compressed body."""
        path = folder / "a/c.yaml"
        path.write_text(path.read_text("utf-8") + f"# {self.secret}x9\n", "utf-8")
        assert codes(checked(capsys, "a", "--baseline", looked_at.name)[1]) == ["SECRET"]

        packed = gzip.compress(f"{self.secret}y8".encode())
        foreign(folder / "a/c.yaml", {"said": self.secret}, said=packed)
        found = checked(capsys, "a", "--baseline", looked_at.name)[1]

        assert "SECRET" in codes(found)

    def test_what_no_longer_applies_goes_with_the_next_update(
        self, folder: Path, looked_at: Path, capsys: Capture
    ) -> None:
        """What lies elsewhere stays."""
        foreign(folder / "b/e.yaml", {"said": self.secret})
        run("check", "b", "--baseline", looked_at.name, "--update-baseline")
        assert len(json.loads(looked_at.read_text("utf-8"))["findings"]) == 3
        capsys.readouterr()
        foreign(folder / "a/c.yaml", {"a": 1})

        run("check", "a", "--baseline", looked_at.name, "--update-baseline")

        [left] = json.loads(looked_at.read_text("utf-8"))["findings"]
        assert left["path"] == "b/e.yaml"

    def test_the_project_may_name_it(
        self, folder: Path, looked_at: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From its root, wherever in it the check is called; an update needs a name."""
        assert run("check", "a", "--update-baseline") == 2
        assert "no baseline is named" in capsys.readouterr().err
        text = f'[tool.pytest-regen.cassettes]\nbaseline = "{looked_at.name}"\n'
        (folder / "pyproject.toml").write_text(text, "utf-8")
        monkeypatch.chdir(folder / "a")

        assert checked(capsys, "c.yaml")[0] == 0
        assert checked(capsys, "c.yaml", "--update-baseline")[0] == 0

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (None, "known.json: No such file"),
            ("[]", "known.json is not a baseline"),
            (
                '{"version": 1, "findings": [{"path": 1}]}',
                "findings.0.path: Input should be a valid string",
            ),
        ],
    )
    def test_what_is_none_is_refused(
        self, folder: Path, capsys: Capture, text: str | None, why: str
    ) -> None:
        """With what to do about it, before anything is checked."""
        foreign(folder / "c.yaml", {"a": 1})
        if text is not None:
            (folder / "known.json").write_text(text, "utf-8")

        assert run("check", ".", "--baseline", "known.json") == 2

        said = capsys.readouterr().err
        assert why in said
        assert "--update-baseline" in said
