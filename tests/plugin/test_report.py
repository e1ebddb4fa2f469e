"""``--regen-report``: what the report of a run holds, and where it is written."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planted_secrets import KINDS
from plugin_project import Project, emulated
from recorded_talk import CHANGED, FILE, TALK, say
from store_factory import GOOD

STORE = "generated/GET_v1_projects"
SOURCE = f"{STORE}/ProjectDataObject.cs"


def report_of(project: Project, *args: str) -> Any:
    """Run the project with a report as JSON; return it."""
    project.run("--regen-report=report.json", *args)
    return json.loads((project.path / "report.json").read_text("utf-8"))


def item(report: Any, name: str) -> Any:
    """Return the entry of the item whose node id ends so."""
    (found,) = [one for one in report["items"] if one["id"].endswith(name)]
    return found


def test_a_regenerated_type(project: Project) -> None:
    """Totals, the work with its findings, places and diff; passing types are entries, too."""
    project.broken()
    project.answered_by("Good")

    report = report_of(project, "--regen")

    assert (report["format"], report["version"]) == ("pytest-regen/report", 1)
    assert (
        report["run"].items()
        >= {
            "mode": "heal",
            "record": "none",
            "exit_code": 0,
            "stopped": "",
            "next": "pytest",
            "changed": [SOURCE, f"{STORE}/pages.json"],
        }.items()
    )
    totals = report["totals"]
    assert [totals[key] for key in ("items", "passed", "regenerated", "failed")] == [3, 2, 1, 0]
    assert [totals[key] for key in ("calls", "tokens_in", "tokens_out")] == [1, 100, 40]
    assert totals["cost_usd"] is None
    ids = [one["id"].partition("::")[2] for one in report["items"]]
    assert ids == ["Owner", "ProjectDataObject", "State"]
    (heal,) = item(report, "::Owner")["heals"]
    assert (heal["outcome"], heal["stop_reason"], heal["pages"]) == ("regenerated", "clean", [1])
    assert [(one["code"], one["path"], one["field"]) for one in heal["findings"]] == [
        ("MISSING_FIELD", SOURCE, "name"),
        ("PHANTOM_FIELD", SOURCE, "nmae"),
    ]
    assert '+    [JsonPropertyName("name")]' in heal["diff"]


def test_what_a_gate_finds(project: Project, in_ci: Callable[[], None]) -> None:
    """Issues as in the terminal, what would be asked, warnings, and what cannot be opened."""
    in_ci()
    project.broken()
    (project.store("GET_damaged") / "pages.json").write_text("{", "utf-8")
    path = project.store("GET_stale") / "ir.json"
    data = json.loads(path.read_text("utf-8"))
    data["types"][2]["description"] = "How far a project has come."
    path.write_text(json.dumps(data), "utf-8")

    report = report_of(project, "--regen-dry-run", "-o", "regen_stale=warn")

    owner = item(report, "GET_v1_projects::Owner")
    places = [f"{one['path']}:{one['line']}: {one['code']}" for one in owner["issues"]]
    assert all(place in owner["text"] for place in places)
    assert len(places) == 2
    assert (owner["kind"], owner["outcome"]) == ("type", "failed")
    assert owner["next"] == f"pytest {STORE}::Owner --regen --regen-record once"
    (heal,) = owner["heals"]
    assert (heal["outcome"], heal["pages"], heal["estimate"] > 100) == ("planned", [1], True)
    assert [one["code"] for one in item(report, "GET_stale::State")["issues"]] == ["STALE"]
    (damaged,) = [one for one in report["items"] if one["kind"] == "store"]
    assert (damaged["outcome"], "pages.json" in damaged["text"]) == ("failed", True)
    totals, run = report["totals"], report["run"]
    assert (totals["failed"], totals["warnings"], totals["passed"]) == (2, 1, 5)
    assert (run["mode"], run["ci"], run["exit_code"]) == ("dry_run", True, 1)


def test_a_type_that_could_not_be_mended(project: Project) -> None:
    """Stop reason, reason in words, and the next command are those of the summary."""
    project.broken()
    project.answered_by("Stubborn")

    report = report_of(project, "--regen", "--regen-attempts=4")

    (heal,) = item(report, "::Owner")["heals"]
    assert (heal["outcome"], heal["stop_reason"]) == ("failed", "no_progress")
    asked = [entry for entry in heal["transcript"] if entry["role"] == "user"]
    assert [entry["role"] for entry in heal["transcript"]] == [
        *("system", "user", "assistant", "trial")
    ]
    assert asked[0]["correction"].startswith("CORRECTION REQUIRED:\n")
    assert asked[0]["text"].startswith("OUTPUT MODE: ")
    trial = heal["transcript"][-1]
    assert (trial["kept"], [issue["code"] for issue in trial["issues"]]) == (
        False,
        ["MISSING_FIELD", "PHANTOM_FIELD"],
    )
    assert "the same errors came back" in heal["why"]
    assert heal["next"] == item(report, "::Owner")["next"] == report["run"]["next"]


OWN = """
    import pytest
    import pytest_regen
    from pytest_regen.validation.issues import Issue

    @pytest.mark.regen
    def test_issue():
        pytest_regen.fail(issues=Issue.of("STYLE", "no abbreviations", type_name="Owner"))

    @pytest.fixture
    def skips_at_its_end():
        yield
        pytest.skip("late")

    @pytest.mark.regen
    def test_words(skips_at_its_end):
        assert 1 == 2, "not the same"

    @pytest.mark.regen
    @pytest.mark.skip(reason="not today")
    def test_skipped(): pass

    @pytest.mark.regen
    @pytest.mark.xfail(reason="known")
    def test_known(): assert False

    @pytest.fixture
    def ends_badly():
        yield
        raise OSError("cannot close")

    @pytest.mark.regen
    def test_end(ends_badly): pass

    def test_of_no_concern(): assert False
"""


def test_tests_of_ones_own(project: Project) -> None:
    """Those marked are entries; the worst of set-up, call and end counts, with what it showed."""
    project.store()
    project.pytester.makepyfile(test_own=OWN)

    report = report_of(project, "test_own.py")

    told = {one["id"].partition("::")[2]: one for one in report["items"]}
    assert {name: one["outcome"] for name, one in told.items()} == {
        "test_end": "failed",
        "test_issue": "failed",
        "test_known": "skipped",
        "test_skipped": "skipped",
        "test_words": "failed",
    }
    assert [(one["code"], one["path"]) for one in told["test_issue"]["issues"]] == [
        ("STYLE", SOURCE)
    ]
    assert "not the same" in told["test_words"]["text"]
    assert told["test_skipped"]["text"] == "Skipped: not today"
    assert told["test_known"]["text"] == "known"
    assert "cannot close" in told["test_end"]["text"]
    assert report["totals"]["skipped"] == 2
    assert "of_no_concern" not in json.dumps(report)


@pytest.fixture
def talking(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with a recorded test of five turns, of which the third has changed since."""
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(test_talk=TALK)
    with emulated(monkeypatch, say):
        project.run("--regen-record=once")
        project.pytester.makepyfile(test_talk=CHANGED)
        yield project


def test_drift(talking: Project) -> None:
    """The test is an entry; the note has the cassette, the path that differs and the command.

    Where it is tolerated, it is in the report though the test passes.
    """
    report = report_of(talking, "-W", "ignore")
    talking.pytester.makeini("[pytest]\nregen_drift = warn\n")
    tolerated = report_of(talking, "-W", "ignore")

    (note,) = report["cassettes"]["notes"]
    assert (note["kind"], note["cassette"], note["failed"]) == ("miss", FILE, True)
    assert '$.messages[4].content: recorded "third", sent "third, reworded"' in note["what"]
    assert "--regen-record new_episodes" in note["next"]
    assert report["cassettes"]["drifted"] == [FILE]
    assert report["totals"]["drifted"] == 1
    (entry,) = report["items"]
    assert (entry["outcome"], entry["next"]) == ("failed", note["next"])
    notes, totals = tolerated["cassettes"]["notes"], tolerated["totals"]
    assert [(note["kind"], note["failed"]) for note in notes] == [("drift", False)] * 3
    assert (totals["passed"], totals["drifted"]) == (1, 1)


def test_what_cannot_be_collected(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is told once, and that the run stopped for it.

    A relative path starts where pytest was called; folders are made, and nothing else is left.
    """
    project.store()
    project.pytester.makepyfile(test_bad="import nothing_of_that_name")
    (project.path / "below").mkdir()
    monkeypatch.chdir(project.path / "below")

    result = project.run("--regen-report=a/b/report.json", "--rootdir=..", "-c../tox.ini", "..")

    result.stdout.fnmatch_lines(["*= regen =*", f"report: {Path('a/b/report.json')}"])
    (file,) = (project.path / "below/a/b").iterdir()
    report = json.loads(file.read_text("utf-8"))
    (error,) = report["collection_errors"]
    assert error["id"] == "test_bad.py"
    assert "nothing_of_that_name" in error["text"]
    assert (report["totals"]["passed"], report["run"]["exit_code"]) == (0, 2)
    assert "1 error during collection" in report["run"]["stopped"]


def test_an_interrupted_run(project: Project) -> None:
    """Ctrl-C: what is known is written, and what was running then is unfinished."""
    project.store()
    project.pytester.makepyfile(
        test_own="""
        import os, signal, time
        import pytest

        @pytest.mark.regen
        def test_before(): pass

        @pytest.mark.regen
        def test_running():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

        @pytest.mark.regen
        def test_after(): pass
        """
    )

    project.pytester.runpytest_subprocess("--regen-report=r.json", "test_own.py")

    report = json.loads((project.path / "r.json").read_text("utf-8"))
    assert [(one["id"].partition("::")[2], one["outcome"]) for one in report["items"]] == [
        ("test_before", "passed"),
        ("test_running", "unfinished"),
    ]
    assert report["run"]["stopped"] == "KeyboardInterrupt"
    assert report["run"]["exit_code"] == 2


def test_a_worker_that_dies(project: Project) -> None:
    """Its item is an entry that failed, though nothing came back from it."""
    project.store()
    project.pytester.makeconftest(
        """
        import os

        def pytest_regen_validators(config, store, type_name):
            if type_name == "State":
                os._exit(1)
        """
    )

    report = report_of(project, "-n", "2")

    assert item(report, "::State")["outcome"] == "failed"
    assert "crashed" in item(report, "::State")["text"]


def test_no_credential_gets_in(project: Project) -> None:
    """Nor what the project's own hook takes out, in failures, outputs and names.

    A long message is cut after it was scrubbed: half a key is no key that anything finds.
    """
    secret = KINDS["github"]
    wrong = GOOD["Owner", 1].replace('("name")', f'("{KINDS["anthropic"]}")')
    project.store(wrong={("Owner", 1): wrong})
    project.answered_by(
        "Good",
        f"""
    import dataclasses
    from pytest_regen.pytest_plugin.transcripts import MAX_MESSAGE

    def pytest_regen_scrubbers(config):
        return [lambda text: text.replace("Miller", "[customer]")]

    _send = PROVIDER.send

    def send(request):
        reply = _send(request)
        text = "// " + "x" * (MAX_MESSAGE - 20) + " {KINDS["anthropic"]}" + "\\n" + reply.text
        return dataclasses.replace(reply, text=text)

    PROVIDER.send = send
    """,
    )
    project.pytester.makepyfile(
        test_own=f"""
        import pytest

        @pytest.mark.regen
        @pytest.mark.parametrize("key", ["{secret}"])
        def test_it(key):
            assert not key, "Miller has " + key
        """
    )

    (heal,) = item(report_of(project, "--regen"), "::Owner")["heals"]
    project.store("again", wrong={("Owner", 1): wrong})
    project.run("--regen-report=report.html")
    (said,) = [entry for entry in heal["transcript"] if entry["role"] == "assistant"]

    texts = [(project.path / f"report.{end}").read_text("utf-8") for end in ("json", "html")]
    assert "[customer] has [github-token]" in texts[0]
    assert "[anthropic-key]" in texts[0]
    for text in texts:
        assert secret not in text
        assert KINDS["anthropic"][:8] not in text
        assert "Miller" not in text
    assert said["cut"] > 100
    assert len(said["text"]) == 12_000


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (".html", "ERROR: --regen-report .html*: no report ends in *"),
        ("folder.html", "ERROR: --regen-report folder.html cannot be written"),
    ],
)
def test_a_name_that_cannot_serve_is_a_usage_error(project: Project, name: str, told: str) -> None:
    """It is told before anything runs, with what would be right."""
    project.store()
    (project.path / "folder.html").mkdir()

    result = project.run(f"--regen-report={name}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told, "*next: *"])
    result.stdout.no_fnmatch_line("generated/*")


def test_a_page_needs_its_extra(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told before anything runs, with the line that installs it; JSON needs none."""
    project.store()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    # Another test of this process may have imported it.
    monkeypatch.delitem(sys.modules, "pytest_regen.pytest_plugin.report_page", raising=False)
    monkeypatch.delattr("pytest_regen.pytest_plugin.report_page", raising=False)

    page = project.run("--regen-report=report.html")
    plain = project.run("--regen-report=report.json")

    assert page.ret == pytest.ExitCode.USAGE_ERROR
    page.stderr.fnmatch_lines(["ERROR: reports as HTML need *jinja2*", "*'pytest-regen[[]report]'"])
    page.stdout.no_fnmatch_line("generated/*")
    assert plain.ret == 0


def test_a_session_that_learned(project: Project, in_ci: Callable[[], None]) -> None:
    """What the test said to the session is the finding.

    It changes no store, so that CI lets it pass, unless the project wants no regeneration at all.
    """
    in_ci()
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(
        test_session="""
        import json
        import pytest
        from pydantic import BaseModel
        from pytest_regen.turns import ScriptedProvider

        class Answer(BaseModel):
            number: int

        @pytest.fixture
        def regen_provider():
            return ScriptedProvider([json.dumps({"number": n}) for n in (1, 2)])

        @pytest.mark.regen(attempts=2)
        def test_two(generator_session):
            session = generator_session(system="Count.", response=Answer)
            assert session.ask("How many?").number == 2, "two are wanted"
        """
    )

    report = report_of(project)
    refused = project.run("-o", "regen_fail_on=regenerated")

    assert (report["run"]["exit_code"], refused.ret) == (0, 1)
    refused.stdout.fnmatch_lines(["exit 1: a test passed only after another turn *"])
    (found,) = report["items"]
    (heal,) = found["heals"]
    assert (found["outcome"], found["kind"]) == ("regenerated", "test")
    assert "two are wanted" in heal["findings"][0]["message"]
    assert (heal["calls"], heal["attempts"]) == (1, 2)
    said = [(entry["role"], entry.get("correction", "")[:16]) for entry in heal["transcript"]]
    assert said == [
        *[("system", ""), ("user", ""), ("assistant", "")],
        *[("user", "Your last answer"), ("assistant", ""), ("trial", "")],
    ]
    assert heal["transcript"][-1]["kept"]
    assert [(kind["kind"], kind["regenerated"]) for kind in report["kinds"]] == [("sessions", 1)]
