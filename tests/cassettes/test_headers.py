"""Which headers a cassette keeps: all of an answer but secrets, few of a request."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from loopback import Answer, Asked, serving
from recorded import answering, loaded

from pytest_regen.cassettes import use_cassette

TOKEN = "ghp_" + "aB3dE6gH9" * 4
SESSION = "s3ss10nQ7xK9mZ2pL5vB8nR4"


def exchanged(path: Path, answer: httpx2.Response, **call: Any) -> httpx2.Response:
    url = call.pop("url", "https://api.example.com/v1/things")
    with answering(lambda _: answer), use_cassette(path, mode="once"):
        httpx2.request(call.get("method", "GET"), url, headers=call.get("headers"))
    with use_cassette(path):
        return httpx2.request(call.get("method", "GET"), url)


def on_disk(path: Path) -> str:
    return path.read_text("utf-8")


KEPT = {
    "link": '<https://api.example.com/v1/things?page=2>; rel="next"',
    "etag": 'W/"0123456789abcdef0123"',
    "content-disposition": 'attachment; filename="plants.csv"',
    "x-ratelimit-remaining-requests": "49",
    "request-id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    "x-request-id": "8a1f0c55-0b86-4e0c-9a0e-5d1c8f8f0f11",
    "x-amzn-requestid": "d3b07384-d113-4ec6-a5f6-2f0d4f9c8a11",
    "location": "https://api.example.com/v1/things/7",
    "date": "Sun, 22 Nov 2026 12:00:00 GMT",
    "x-of-its-own": "any value",
    "access-control-allow-credentials": "true",
    "x-next-page-token": "12",
}


def test_headers_of_an_answer_are_replayed(path: Path) -> None:
    """What a client pages, caches and paces itself by; a token that is handed out is not kept."""
    links = [("link", "<https://a.example/1>"), ("link", "<https://a.example/2>")]
    headers = [*KEPT.items(), *links, ("x-auth-token", "short-1")]

    replayed = exchanged(path, httpx2.Response(200, headers=headers, content=b"{}"))

    assert {name: replayed.headers.get_list(name)[0] for name in KEPT} == KEPT
    assert replayed.headers.get_list("link")[1:] == [value for _, value in links]
    assert replayed.headers["x-auth-token"] == "[assigned-secret]"
    assert "short-1" not in on_disk(path)


@pytest.mark.parametrize(
    "name",
    ["authorization", "cookie", "openai-organization", "x-account-id", "x-goog-user-project"],
)
def test_a_header_that_opens_something_or_names_an_account_is_never_kept(
    path: Path, name: str
) -> None:
    answer = httpx2.Response(200, headers={name: "acme-42"}, content=b"{}")

    exchanged(path, answer, headers={name: "acme-42"})

    assert "acme-42" not in on_disk(path)
    assert name not in on_disk(path)


# Cookies


def test_a_cookie_does_not_expire_while_it_waits(path: Path) -> None:
    cookies = [
        ("date", "Sun, 22 Nov 2026 12:00:00 GMT"),
        ("set-cookie", f"sid={SESSION}; Expires=Sun, 22 Nov 2026 13:00:00 GMT; Path=/"),
        ("set-cookie", "old=x; expires=Thu, 01 Jan 1970 00:00:00 GMT"),
        ("set-cookie", "gone=; Max-Age=0"),
    ]

    replayed = exchanged(path, httpx2.Response(200, headers=cookies, content=b""))

    assert replayed.headers.get_list("set-cookie") == [
        "sid=[key]; Path=/",
        "old=[key]; expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "gone=; Max-Age=0",
    ]


def test_what_a_form_sends_back_of_a_cookie_still_matches(path: Path) -> None:
    """The token of a form stands in the page, in a cookie, and in the next request."""

    def answer(asked: Asked) -> Answer:
        form = f'<input name="csrf" value="{SESSION}">'.encode()
        if asked.method == "GET":
            return Answer(form, headers=(("set-cookie", f"csrf={SESSION}"),))
        return Answer(b"done", 200 if SESSION.encode() in asked.body else 403)

    def session(url: str) -> int:
        with httpx2.Client(base_url=url) as client:
            page = client.get("/form").text
            token = page.partition('value="')[2].partition('"')[0]
            return client.post("/form", json={"csrf": token}).status_code

    with serving({"/*": answer}) as url, use_cassette(path, mode="once"):
        assert session(url) == 200
    with use_cassette(path):
        assert session("http://127.0.0.1:9") == 200

    assert SESSION not in on_disk(path)


# Addresses


LOCATIONS: dict[str, Callable[[str], str]] = {
    "same origin": lambda url: f"{url}/end",
    "signature": lambda url: f"{url}/end?X-Amz-Signature={'3f' * 32}&size=5",
    "token in path": lambda url: f"{url}/{TOKEN}/end",
    "user and password": lambda url: url.replace("//", "//user:pa55word@") + "/end",
}


@pytest.mark.parametrize("where", LOCATIONS)
def test_a_redirect_leads_to_what_was_recorded(path: Path, where: str) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.target == "/start":
            return Answer(status=302, headers=(("location", LOCATIONS[where](url)),))
        return Answer(b"the end")

    def fetched(url: str) -> httpx2.Response:
        with httpx2.Client(follow_redirects=True) as client:
            return client.get(f"{url}/start")

    with serving({"/*": answer}) as url, use_cassette(path, mode="once"):
        live = fetched(url)
    with use_cassette(path):
        replayed = fetched("http://127.0.0.1:9")

    assert replayed.status_code == live.status_code == 200
    assert replayed.text == "the end"
    for secret in (TOKEN, "3f3f", "pa55word"):
        assert secret not in on_disk(path)
    assert url.partition("//")[2] not in on_disk(path), "the port changes with every recording"
    if where == "same origin":
        assert str(replayed.url) == "http://127.0.0.1:9/end"
        assert replayed.history[0].headers["location"] == "http://127.0.0.1:9/end"


# What a project says


def test_headers_of_a_request_are_few_and_more_on_request(path: Path) -> None:
    sent = {"x-tenant-region": "eu", "x-feature-a": "1", "user-agent": "ua", "accept": "text/html"}

    def recorded(**options: Any) -> dict[str, Any]:
        with (
            answering(lambda _: httpx2.Response(200, content=b"{}")),
            use_cassette(path, mode="rewrite", **options),
        ):
            httpx2.get("https://api.example.com/", headers=sent)
        [stored] = loaded(path).interactions
        return dict(stored.interaction.request_headers)

    assert recorded() == {"accept": ("text/html",)}
    assert recorded(keep_headers=["X-Feature-*", "User-Agent"]) == {
        "accept": ("text/html",),
        "user-agent": ("ua",),
        "x-feature-a": ("1",),
    }
    assert recorded(drop_headers=["ACCEPT"]) == {}


def test_what_kind_an_answer_is_stays(path: Path) -> None:
    """Without it a stream would be none."""
    head = {"content-type": "text/event-stream", "x-a": "1"}
    with (
        answering(lambda _: httpx2.Response(200, headers=head, content=b"data: 1\n\n")),
        use_cassette(path, mode="once", drop_headers=["*"]),
    ):
        httpx2.post("https://api.example.com/", json={})

    [stored] = loaded(path).interactions
    assert stored.interaction.is_stream
    assert set(stored.interaction.response_headers) == {"content-length", "content-type"}
    assert set(stored.interaction.request_headers) == {"content-type"}


@pytest.mark.parametrize("name", ["Authorization", "x-goog-api-key", "cookie", "openai-project"])
def test_a_private_header_is_not_kept_either(path: Path, name: str) -> None:
    """By its name or by a pattern that covers it; that keeps the others."""
    with (
        answering(lambda _: httpx2.Response(200, content=b"{}")),
        use_cassette(path, mode="once", keep_headers=["*", name]),
    ):
        httpx2.get("https://api.example.com/", headers={name: "value-1", "x-mine": "2"})
    assert "value-1" not in on_disk(path)
    assert "x-mine" in on_disk(path)
