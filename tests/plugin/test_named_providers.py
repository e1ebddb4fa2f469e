"""``--regen-provider openai:MODEL`` and its like: healed over HTTP, replayed without."""

import json

import openai  # noqa: F401 - pytester forgets what an inner run imported; see conftest.py
import pytest
from chat_service import MODEL, Said, chat_service
from function_project import FAILING, FunctionProject
from unit_project import SETTINGS, UnitProject
from unit_work import GERMAN

KEY = "sk-proj-" + "Zz9" * 12
BROKEN = {**GERMAN, "berth": "Liegeplatz"}
HEAL = ("--regen", "--regen-record", "once", "--regen-only", "locales/de.json::berth")


def broken(pytester: pytest.Pytester) -> UnitProject:
    """Return a project with a translation that lacks its placeholder."""
    project = UnitProject(pytester)
    project.write(german=BROKEN)
    return project.recorded()


@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("openai:gpt-5", "OPENAI_BASE_URL", "/v1"),
        ("ollama:qwen3:8b", "OLLAMA_HOST", ""),
    ],
)
def test_a_heal_is_recorded_and_replayed(
    name: str, variable: str, path: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger says who answered; the replay needs neither key nor server.

    Where another service is the default, nobody who is paid is proposed in its place.
    """
    project = broken(pytester)
    project.settings(SETTINGS + f'provider = "{name}"\n')
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with chat_service(Said(GERMAN["berth"])) as service:
        monkeypatch.setenv(variable, service.address + path)
        healed = project.run(*HEAL)

    healed.stdout.fnmatch_lines(["*1 regenerated*"])
    assert project.german() == GERMAN
    ledger = [json.loads(file.read_text("utf-8")) for file in project.path.rglob("*berth*.json")]
    who = name.partition(":gpt")[0].partition(":qwen")[0].partition("/")[0]
    assert (who, MODEL) in [(entry.get("provider"), entry["model"]) for entry in ledger]
    (cassette,) = (project.path / "cassettes").rglob("*.yaml")
    assert KEY not in cassette.read_text("utf-8")

    monkeypatch.delenv("OPENAI_API_KEY")
    project.write(german=BROKEN)
    project.recorded().settings(SETTINGS)
    project.run("--regen").stdout.fnmatch_lines(
        [
            f"  nothing was sent: it is recorded with {name}",
            f"next: pytest locales/de.json::berth --regen --regen-provider {name}",
        ]
    )
    project.settings(SETTINGS + f'provider = "{name}"\n')
    replayed = project.run("--regen", "--regen-only", "locales/de.json::berth")

    replayed.stdout.fnmatch_lines(["*1 regenerated*"])
    assert project.german() == GERMAN


def test_what_to_do_next_names_the_provider_and_its_key(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command, once the key is set; two models in one command contradict each other."""
    project = broken(pytester)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    unrecorded = project.run("--regen", "--regen-provider", "openai:gpt-5")
    without_key = project.run(*HEAL, "--regen-provider", "openai:gpt-5")
    two = project.run("--regen", "--regen-provider", "openai:gpt-5", "--regen-model", "gpt-4o")

    unrecorded.stdout.fnmatch_lines(["*--regen-record once*--regen-provider openai:gpt-5*"])
    without_key.stdout.fnmatch_lines(["*OPENAI_API_KEY*--regen-provider openai:gpt-5*"])
    assert two.ret == pytest.ExitCode.USAGE_ERROR
    two.stderr.fnmatch_lines(["*contradict each other*"])


@pytest.mark.parametrize("heals", [True, False])
def test_commands_keep_who_was_asked(
    functions: FunctionProject, pytester: pytest.Pytester, *, heals: bool
) -> None:
    """A command of ``pytest-regen`` asks the provider and the model that were typed."""
    functions.write("", module=FAILING)
    pytester.makepyfile(my_model="def provider(messages):\n    return 'return 2'")
    asked = ("--regen-provider", "my_model:provider", "--regen-model", "m-1")
    heal = ("--regen", "--regen-record=once", "--regen-attempts=9") if heals else ()

    result = pytester.runpytest_inprocess("src/acme/times.py", *heal, *asked)

    does = "--unit minutes --correction 'what is wrong'" if heals else "--from-errors"
    who = "--provider my_model:provider --model m-1"
    result.stdout.fnmatch_lines([f"next: pytest-regen regenerate src/acme/times.py {does} {who}"])
