"""A recording says which values it holds otherwise than they were sent or answered."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from loopback import Answer, Asked, serving

from pytest_regen.cassettes import CassetteRun, use_cassette
from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
REFERENCES = {"references": [{"key": "b3"}, {"key": TOKEN}, {"key": f"see {TOKEN}, page 3"}]}
JSON = ("content-type", "application/json")
PACKED = (("content-encoding", "gzip"),)


def answer(asked: Asked) -> Answer:
    path = asked.target.partition("?")[0]
    if path.startswith("/plain"):
        return Answer(b'{"plan": "north wall"}', headers=(JSON, ("set-cookie", "a=b1c2d3e4f5")))
    if path == "/events":
        lines = [json.dumps({"delta": text}) for text in ("ivy", f"and {TOKEN} too")]
        text = "".join(f"data: {line}\n\n" for line in lines)
        return Answer(text.encode(), headers=(("content-type", "text/event-stream"),))
    if path == "/form":
        return Answer(f"plan=wall&access_token={TOKEN}".encode())
    if path == "/renamed":
        return Answer(json.dumps({TOKEN: "ivy"}).encode(), headers=(JSON,))
    if path == "/away":
        place = f"http://{asked.headers['host']}/plain?token={TOKEN}"
        return Answer(status=302, headers=(("location", place),))
    body = json.dumps(REFERENCES).encode()
    return (
        Answer(gzip.compress(body), headers=(JSON, *PACKED)) if path == "/packed" else Answer(body)
    )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving({"/*": answer}) as served:
        yield served


KEY = {"authorization": f"Bearer {TOKEN}", "x-api-key": "opaque"}


def recorded(path: Path, url: str, **options: Any) -> CassetteRun:
    with use_cassette(path, mode="once") as run:
        httpx2.request(options.pop("method", "GET"), url, **options)
    return run


def recorded_by_vcrpy(path: Path, url: str, **options: Any) -> Any:
    cassette = VcrOptions(path.name, path.parent, "once", {}, (), lambda _: None)
    with use_vcr_cassette(cassette) as run:
        httpx2.request(options.pop("method", "GET"), url, **options)
    return run


WAYS = pytest.mark.parametrize("record", [recorded, recorded_by_vcrpy])


EXPECTED = {
    "/plain": [],
    "/references": ["response body $.references[1].key", "response body $.references[2].key"],
    "/packed": ["response body $.references[1].key", "response body $.references[2].key"],
    "/events": ["response body $[1].delta"],
    "/form": ["response body"],
    "/renamed": ["response body"],
    "/away": ["response header location"],
    f"/plain?api_key={TOKEN}&page=2": ["request query api_key"],
    f"/plain/{TOKEN}": ["request path"],
}


@WAYS
@pytest.mark.parametrize("target", EXPECTED)
def test_a_member_that_was_replaced_is_named(
    tmp_path: Path, address: str, target: str, record: Any
) -> None:
    """That the keys of the provider are gone is no news."""
    run = record(tmp_path / "c.yaml", address + target, headers=KEY)

    assert [value.member for value in run.changed] == EXPECTED[target]


def test_the_lengths_are_told_and_the_value_is_not(tmp_path: Path, address: str) -> None:
    path, sent = tmp_path / "c.yaml", {"token": TOKEN, "n": [1, "x"]}

    run = recorded(path, f"{address}/references", method="POST", json=sent, headers=KEY)

    assert [str(value) for value in run.changed] == [
        "request body $.token came out different: 40 characters live, 17 in replay",
        "response body $.references[1].key came out different: 40 characters live, 14 in replay",
        "response body $.references[2].key came out different: 52 characters live, 26 in replay",
    ]
    assert [value.is_answer for value in run.changed] == [False, True, True]
