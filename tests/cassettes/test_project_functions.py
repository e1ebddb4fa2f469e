"""Functions a project hands in (``normalize=``, ``scrub=``): what they return, how they fail."""

from pathlib import Path
from typing import Any

import anthropic
import pytest
from recorded import KEY, echo, record, replaying
from turn_values import MODEL, turn

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.emulator import Emulator
from pytest_regen.errors import CassetteError, CassetteMissError


def forgets_to_return(body: Any) -> None:
    body.pop("metadata", None)


def fails(_value: Any) -> Any:
    raise KeyError("metadata")


def returns_a_set(body: Any) -> Any:
    return set(body)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"normalize": forgets_to_return}, r"normalize=forgets_to_return (?s:.*)returned None"),
        ({"normalize": returns_a_set}, "normalize=returns_a_set failed"),
        ({"scrub": fails}, r"scrub=fails (?s:.*)KeyError"),
        ({"scrub": lambda _text: None}, r"scrub=.*<lambda> (?s:.*)returned NoneType"),
    ],
)
@pytest.mark.parametrize("mode", ["once", "none"])
def test_a_function_that_does_not_do_its_work_is_named(
    tmp_path: Path, options: dict[str, Any], what: str, mode: Any
) -> None:
    """It does not make all requests equal; the client neither hides the error nor retries."""
    path = tmp_path / "c.yaml"
    with Emulator(echo) as emulator:
        client = anthropic.Anthropic(api_key=KEY, base_url=emulator.base_url, max_retries=2)

        def ask() -> None:
            said: Any = [{"role": "user", "content": "x"}]
            client.messages.create(model=MODEL, max_tokens=20, messages=said)

        if mode == "none":
            with use_cassette(path, mode="once"):
                ask()
        with pytest.raises(CassetteError, match=what), use_cassette(path, mode=mode, **options):
            ask()

        assert len(emulator.requests) <= 1


# What scrub= takes out


CUSTOMER = "Miller & Sons"


def anonymous(text: str) -> str:
    return text.replace(CUSTOMER, "[customer]").replace("Miller%20%26%20Sons", "[customer]")


@pytest.mark.parametrize("answers_turns", [True, False])
def test_what_the_function_takes_out_is_in_no_file(path: Path, answers_turns: bool) -> None:  # noqa: FBT001 - a case
    """The request is found all the same, and a miss does not tell what a recording would not."""
    record(path, [turn(f"Write to {CUSTOMER}.")], scrub=anonymous)
    text = path.read_text("utf-8")

    with use_cassette(path, scrub=anonymous, answers_turns=answers_turns):
        reply = replaying().send(turn(f"Write to {CUSTOMER}."))
        with pytest.raises(CassetteMissError) as caught:
            replaying().send(turn(f"Send {CUSTOMER} a reminder."))

    assert CUSTOMER not in text + str(caught.value)
    assert text.count("Write to [customer].") == 2
    assert reply.text == "Write to [customer]."
    assert "Send [customer] a reminder." in str(caught.value)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"Miller & Sons": ["Miller & Sons", 1, null]}'),
        ("text/plain", b"about Miller & Sons"),
        ("text/event-stream", b'data: {"type": "x", "of": "Miller & Sons"}\n\n'),
        ("image/png", b"\x89PNG\xff\xfe[customer]"),
    ],
)
def test_every_kind_of_text_is_seen(tmp_path: Path, content_type: str, body: bytes) -> None:
    """Names of members, plain text, the events of a stream, and the address; an image is none."""
    path = tmp_path / "c.yaml"
    headers = {"content-type": (content_type,)}
    uri = "https://example.test/Miller%20%26%20Sons?of=Miller%20%26%20Sons"

    with use_cassette(path, mode="once", http_clients=False, scrub=anonymous) as run:
        run.record(Interaction("POST", uri, headers, body, 200, "OK", headers, body))
    with use_cassette(path, http_clients=False, scrub=anonymous) as run:
        found = run.take("POST", uri, body)

    assert "Miller" not in path.read_text("utf-8")
    assert found is not None
    assert b"[customer]" in found.response_body
