"""What is said where a request differs in its line or in its form: the member that does."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from vcr.errors import CannotOverwriteExistingCassetteException

from pytest_regen.cassettes import use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.emulator import Emulator
from pytest_regen.errors import CassetteMissError

HEAD = {"content-type": ("application/json",)}
API = "https://api.test"


def record(path: Path, *requests: tuple[str, str, bytes]) -> None:
    with use_cassette(path, mode="once", http_clients=False) as run:
        for method, uri, body in requests:
            run.record(Interaction(method, uri, {}, body, 200, "", HEAD, b"{}"))


def miss(path: Path, method: str, uri: str, **options: Any) -> CassetteMissError:
    with (
        pytest.raises(CassetteMissError) as caught,
        use_cassette(path),
        httpx2.Client() as client,
    ):
        client.request(method, uri, **options)
    return caught.value


def told(error: CassetteMissError) -> list[str]:
    return [line.strip() for line in error.why.splitlines()[1:]]


@pytest.mark.parametrize(
    ("recorded", "method", "sent", "line"),
    [
        ("?rows=20", "GET", "?rows=27", 'query.rows: recorded "20", sent "27"'),
        ("", "GET", "?q=x", 'query.q: recorded (absent), sent "x"'),
        ("?q=a&q=b", "GET", "?q=b&q=c", 'query.q[0]: recorded "a", sent "b"'),
        ("", "GET", "2", 'path: recorded "/works", sent "/works2"'),
        ("", "POST", "", 'method: recorded "GET", sent "POST"'),
    ],
)
def test_the_part_of_a_request_line_that_differs_is_named(
    tmp_path: Path, recorded: str, method: str, sent: str, line: str
) -> None:
    record(tmp_path / "c.yaml", ("GET", f"{API}/works{recorded}", b""))

    error = miss(tmp_path / "c.yaml", method, f"{API}/works{sent}")

    assert told(error)[0] == line
    assert error.causes[0].split()[0] == line.partition(":")[0].replace("[0]", "[*]")


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        ({"grant": "code", "scope": "c"}, 'form.scope: recorded "b", sent "c"'),
        ({"grant": "code", "scope": "b", "to": "x"}, 'form.to: recorded (absent), sent "x"'),
        ({"grant": "code", "scope": ["b", "c"]}, 'form.scope: recorded "b", sent ["b", "c"]'),
    ],
)
def test_the_field_of_a_form_that_differs_is_named(
    tmp_path: Path, sent: dict[str, Any], line: str
) -> None:
    record(tmp_path / "c.yaml", ("POST", f"{API}/token", b"grant=code&scope=b"))

    error = miss(tmp_path / "c.yaml", "POST", f"{API}/token", data=sent)

    assert told(error) == [line]


def test_what_is_private_in_a_request_line_or_form_is_not_shown(tmp_path: Path) -> None:
    record(
        tmp_path / "c.yaml",
        ("GET", f"{API}/works?api_key=planted-0123456789&rows=20", b""),
        ("POST", f"{API}/login", b"password=hunter2-planted&to=a"),
    )

    line = miss(tmp_path / "c.yaml", "GET", f"{API}/works?api_key=other-0123456789&rows=27")
    form = miss(
        tmp_path / "c.yaml", "POST", f"{API}/login", data={"password": "hunter3-other", "to": "b"}
    )

    assert told(line) == ['query.rows: recorded "20", sent "27"']
    assert told(form) == ['form.to: recorded "a", sent "b"']
    assert not any(word in f"{line}{form}" for word in ("planted", "other", "hunter"))


def test_the_nearest_recording_is_one_of_the_same_method_and_host(tmp_path: Path) -> None:
    record(
        tmp_path / "c.yaml",
        ("POST", "https://api.other/works/1", b""),
        ("GET", f"{API}/members/20?rows=20&offset=3&sort=asc", b""),
    )

    error = miss(tmp_path / "c.yaml", "GET", f"{API}/works/1")

    assert "nearest is interaction 2" in error.why
    assert told(error)[0] == 'path: recorded "/members/20", sent "/works/1"'


def test_where_nothing_is_like_it_what_is_recorded_is_listed(tmp_path: Path) -> None:
    """A price list, say, that a library fetches beside what the test is about."""
    chat = ("POST", f"{API}/v1/chat", b'{"messages": []}')
    record(
        tmp_path / "c.yaml", chat, chat, ("GET", f"{API}/v1/models?api_key=planted-01234567", b"")
    )

    error = miss(tmp_path / "c.yaml", "GET", "https://raw.test/prices.json")

    assert error.why.startswith(
        "nothing is recorded for GET https://raw.test/prices.json; the cassette has "
        f"POST {API}/v1/chat, GET {API}/v1/models ({tmp_path / 'c.yaml'}: 3 recorded, 0 played)"
    )
    assert 'if raw.test does not matter to the test: passthrough_hosts=["raw.test"]' in error.why
    assert error.causes == ("nothing is recorded for GET raw.test",)
    assert "planted" not in str(error)


def test_a_value_drawn_by_chance_is_offered_to_be_ignored(tmp_path: Path) -> None:
    """Recorded again, it would be another one; ignored, the recording answers."""
    body = b'{"calls": [{"id": "call_27db1a2b3c4d", "name": "%s"}]}'
    record(tmp_path / "c.yaml", ("POST", API, body % b"a"))
    drawn = body.replace(b"27db", b"ded2")

    error = miss(tmp_path / "c.yaml", "POST", API, content=drawn % b"a")
    beside = miss(tmp_path / "c.yaml", "POST", API, content=drawn % b"b")

    assert error.hint == 'ignore=["$.calls[*].id"], if that differs in each run'
    assert 'record it with mode="new_episodes"' in beside.hint
    assert beside.hint.endswith('ignore=["$.calls[*].id"], if that differs in each run')
    with use_cassette(tmp_path / "c.yaml", ignore=["$.calls[*].id"]), httpx2.Client() as client:
        assert client.post(API, content=drawn % b"a").json() == {}


def why(folder: Path, mode: str, url: str, **options: Any) -> str:
    config = {"match_on": ["method", "scheme", "host", "port", "path", "headers"]}
    with use_vcr_cassette(VcrOptions("c", folder, mode, config, (), lambda _: None)) as run:
        try:
            httpx2.get(f"{url}/v1/models", **options)
        except CannotOverwriteExistingCassetteException as error:
            missed = run.take_pending_miss(error)
            assert missed is not None
            return missed.why
    return ""


def test_a_recording_that_was_not_played_is_not_called_played(tmp_path: Path) -> None:
    """Host and port, and what else a suite compares, have no part in our own key."""
    with Emulator(lambda _body: "x") as emulator:
        url = emulator.base_url
        assert not why(tmp_path, "once", url)

    other = why(tmp_path, "none", "http://127.0.0.1:9")
    server = url.removeprefix("http://")
    assert f'host: recorded "{server}", sent "127.0.0.1:9"' in other
    assert "1 recorded, 0 played" in other

    other = why(tmp_path, "none", url, headers={"accept": "text/plain"})
    assert "match_on compares headers" in other


def test_a_turn_is_told_by_its_model_number_and_last_words(path: Path) -> None:
    """Also where the words stand in blocks, as they do where some are cached."""
    record(path, ("POST", f"{API}/v1/messages", b"{}"))
    blocks = [{"type": "text", "text": "Two,"}, {"type": "text", "text": "please."}]
    said = (("user", "One."), ("assistant", "1"), ("user", blocks))
    body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in said]}

    error = miss(path, "POST", f"{API}/v1/messages", json=body)

    assert "(model m, turn 2: 'Two, please.')" in str(error)
