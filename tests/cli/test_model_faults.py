"""The line fails, the model refuses, the key is missing: told once, nothing lost."""

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from reference_writer import ReferenceWriter
from store_work import tree

from pytest_regen.emulator import EmulatedReply, Emulator, Fault
from pytest_regen.stores import RegenStore

KITES = "GET /kites"
STORE = Path("generated", "GET_kites")

FAULTS: dict[str, tuple[Fault | EmulatedReply, str, str]] = {
    "401": (Fault(401), "did not accept the key", "set ANTHROPIC_API_KEY"),
    "proxy": (Fault(403, body="<html>Blocked [/b] by policy</html>"), "Blocked [/b]", "key"),
    "cut": (Fault(kind="cut", retry_after_ms=1), "could not be reached", "next: check the network"),
    "refused for a reason": (
        EmulatedReply("", stop_reason="refusal", category="cyber", explanation="It may do harm."),
        "'refusal': cyber: It may do harm.",
        "--model",
    ),
}


class SecondFails:
    """Answers the first page, then fails."""

    def __init__(self, fault: Fault | EmulatedReply) -> None:
        self._fault = fault
        self._writer = ReferenceWriter()
        self._said = 0

    def __call__(self, body: dict[str, Any]) -> str | Fault | EmulatedReply:
        """Return a page once."""
        self._said += 1
        return self._writer(body) if self._said == 1 else self._fault


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_once_and_nothing_is_lost(name: str, document: Path, api: Emulator) -> None:
    """One message with value, reason and next step; exit code 3; the first page is kept."""
    fault, reason, then = FAULTS[name]
    api.responder = SecondFails(fault)

    ran = command("generate", document, KITES)

    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("\nerror: ") == 1
    assert reason in ran.err
    assert then in ran.err
    assert "Traceback" not in ran.err
    assert [key.type_name for key in RegenStore.open(STORE).pages] == ["KiteDataObject"]

    api.responder = ReferenceWriter()
    api.requests.clear()
    assert command("generate", document, KITES).code == 0
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("fails", "told"), [(lambda: os.environ["NO_SUCH_KEY"], "KeyError"), (lambda: 42, "int")]
)
def test_a_provider_that_fails_is_told(
    broken: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[[], object], told: str
) -> None:
    """Somebody else's exception, or a reply of the wrong kind, is one message, no traceback."""
    module = types.ModuleType("faulty")
    vars(module)["provider"] = types.SimpleNamespace(send=lambda _request: fails())
    monkeypatch.setitem(sys.modules, "faulty", module)

    ran = command("regenerate", broken, "--type", "Owner", "--provider", "faulty:provider")

    assert ran.code == 3
    assert ran.err.count("\nerror: ") == 1
    assert told in ran.err


NO_ANSWER: dict[str, tuple[str, ...]] = {
    "network": ("--provider", "models_of_a_test:unreachable"),
    "budget": ("--budget", "1", "--provider", "models_of_a_test:unreachable"),
    "recording": ("--cassette", "none.yaml"),
    "recorded": (
        *("--cassette", "new.yaml", "--record", "once"),
        *("--provider", "models_of_a_test:unreachable"),
    ),
    "key": (),
}


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key in the environment, and a provider whose line is down."""

    def unreachable(_: list[dict[str, str]]) -> str:
        raise ConnectionError("no route to host")

    module = types.ModuleType("models_of_a_test")
    module.unreachable = unreachable  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "models_of_a_test", module)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


@pytest.mark.usefixtures("unanswered")
@pytest.mark.parametrize("reason", NO_ANSWER)
def test_where_nobody_answers_nothing_is_left(reason: str, here: Path, document: Path) -> None:
    """No store, no folder, no lock and no half recording; what is told does not claim otherwise."""
    before = tree(here)

    ran = command("generate", document, KITES, *NO_ANSWER[reason])

    assert ran.code == (1 if reason == "budget" else 3)
    assert tree(here) == before
    assert not (here / "generated").exists()
    assert "added" not in ran.err
    assert "what was finished is stored" not in ran.err


@pytest.mark.usefixtures("unanswered")
def test_where_nobody_answers_a_store_stays_as_it_is(here: Path, document: Path) -> None:
    """A document that moved on while the line is down breaks nothing that served until now."""
    assert command("generate", document, KITES, "--provider", "template").code == 0
    document.write_text(document.read_text("utf-8").replace('"span"', '"width"'), "utf-8")
    before = tree(here)

    ran = command("generate", document, KITES, *NO_ANSWER["network"])

    assert (ran.code, tree(here)) == (3, before)


@pytest.mark.parametrize("place", ["generated/GET_kites", ".regen"])
def test_what_cannot_be_kept_is_not_asked_for(
    place: str, here: Path, document: Path, api: Emulator
) -> None:
    """A file where a folder is to be: told before the first page is paid for."""
    (here / place).parent.mkdir(exist_ok=True)
    (here / place).write_text("in the way", "utf-8")

    ran = command("generate", document, KITES)

    assert (ran.code, len(api.requests)) == (2, 0)
    assert "cannot be written" in ran.err
    assert (here / place).read_text("utf-8") == "in the way"
