"""What a project keeps out of its recordings itself, besides credentials."""

from pathlib import Path

import pytest
from recorded import record, replaying
from turn_values import turn

from pytest_regen.cassettes import read_cassette, use_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.errors import CassetteMissError

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
    ],
)
def test_every_kind_of_text_is_seen(tmp_path: Path, content_type: str, body: bytes) -> None:
    """Names of members, plain text, the events of a stream, and the address."""
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


def test_what_is_no_text_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    image = b"\x89PNG\xff\xfe"
    headers = {"content-type": ("image/png",)}

    with use_cassette(path, mode="once", http_clients=False, scrub=anonymous) as run:
        run.record(
            Interaction("POST", "https://example.test/", headers, image, 200, "OK", {}, image)
        )

    [stored] = read_cassette(path).interactions  # type: ignore[union-attr]  # just recorded
    assert stored.interaction.response_body == image
