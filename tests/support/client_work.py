"""One programme for every HTTP client: what it is told must be the same in replay."""

import asyncio
import gzip
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from small_site import told_headers

Told = dict[str, Any]
Ask = Callable[..., Told]

BODY = {"plan": "north wall ü"}
PACKED = ("gzip", "deflate", "br", "zstd")


def programme(ask: Ask, address: str) -> list[Told]:
    """Ask for all that servers do; returns what the client was told."""
    other = address.replace("127.0.0.1", "localhost")
    told = [
        ask("GET", f"{address}/redirect?to=/redirect"),
        ask("GET", f"{address}/redirect?to=echo"),
        ask("GET", f"{address}/redirect?to={other}/echo"),
        ask("GET", f"{address}/redirect?to=/cookie&cookie=ivy"),
        ask("GET", f"{address}/redirect?status=301", follow=False),
        ask("POST", f"{address}/redirect?status=303", body=json.dumps(BODY).encode()),
        ask("POST", f"{address}/redirect?status=307", body=json.dumps(BODY).encode()),
        ask("GET", f"{address}/loop"),
        ask("GET", f"{address}/etag"),
        ask("GET", f"{address}/etag", headers={"If-None-Match": '"v1"'}),
        ask("HEAD", f"{address}/chunk"),
        ask("DELETE", f"{address}/empty"),
        *(ask("GET", f"{address}/packed/{how}") for how in PACKED),
        ask("GET", f"{address}/chunked"),
        ask("GET", f"{address}/events"),
        *(ask("GET", f"{address}/status/{status}") for status in (404, 500)),
        ask("GET", f"{address}/G%C3%A4rten/%C3%BC?q=%C3%BC"),
        ask("PUT", f"{address}/echo", body=b"\x00\xff\xfe"),
        ask("POST", f"{address}/echo", body=UPLOAD, headers={"Content-Type": UPLOADED}),
    ]
    page = f"{address}/pages"
    while page:
        told.append(ask("GET", page))
        link = dict(told[-1]["headers"]).get("link", "")
        page = urllib.parse.urljoin(page, link[1 : link.index(">")]) if link else ""
    return told


UPLOAD = (
    b'--edge\r\nContent-Disposition: form-data; name="plan"; filename="plan.bin"\r\n\r\n'
    b"\x00\x01\xff\r\n--edge--\r\n"
)
UPLOADED = "multipart/form-data; boundary=edge"


def _failed(error: Exception) -> Told:
    return {"failed": type(error).__name__, "headers": []}


def _told(
    method: str, answer: tuple[int, str, str], headers: Any, cookies: Any, body: bytes
) -> Told:
    length = {name.lower(): value for name, value in headers}.get("content-length")
    return {
        "answer": answer,
        "headers": told_headers(headers),
        "length": length if method == "HEAD" else None,
        "cookies": sorted(cookies),
        "body": body,
    }


def with_requests(address: str) -> list[Told]:
    """Ask with requests."""
    import requests

    with requests.Session() as session:
        session.max_redirects = 5

        def ask(
            method: str, url: str, body: Any = None, headers: Any = None, *, follow: bool = True
        ) -> Told:
            try:
                got = session.request(
                    method, url, data=body, headers=headers, allow_redirects=follow
                )
            except requests.TooManyRedirects as error:
                return _failed(error)
            headers, cookies = [*got.headers.items()], session.cookies.keys()
            line = (got.status_code, got.reason, got.url)
            told = _told(method, line, headers, cookies, got.content)
            return {**told, "history": [(one.status_code, one.url) for one in got.history]}

        return programme(ask, address)


def _with_httpx(module: Any, address: str) -> list[Told]:
    with module.Client(max_redirects=5) as client:

        def ask(
            method: str, url: str, body: Any = None, headers: Any = None, *, follow: bool = True
        ) -> Told:
            try:
                got = client.request(
                    method, url, content=body, headers=headers, follow_redirects=follow
                )
            except module.TooManyRedirects as error:
                return _failed(error)
            line = (got.status_code, got.reason_phrase, str(got.url))
            told = _told(method, line, got.headers.multi_items(), client.cookies, got.content)
            return {**told, "history": [(one.status_code, str(one.url)) for one in got.history]}

        return programme(ask, address)


def with_httpx(address: str) -> list[Told]:
    """Ask with httpx."""
    import httpx

    return _with_httpx(httpx, address)


def with_httpx2(address: str) -> list[Told]:
    """Ask with httpx2."""
    import httpx2

    return _with_httpx(httpx2, address)


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows nothing."""

    def redirect_request(self, *_: Any) -> None:
        """Let the redirect be the answer."""


def with_urllib(address: str) -> list[Told]:
    """Ask with the standard library."""
    jar = urllib.request.HTTPCookieProcessor()
    follows = urllib.request.build_opener(jar)
    stays = urllib.request.build_opener(jar, _Stays)

    def ask(
        method: str, url: str, body: Any = None, headers: Any = None, *, follow: bool = True
    ) -> Told:
        sent = {"Accept-Encoding": "gzip", **(headers or {})}
        asked = urllib.request.Request(url, body, sent, method=method)
        try:
            got: Any = (follows if follow else stays).open(asked)
        except urllib.error.HTTPError as error:
            got = error
        except ValueError as error:
            return _failed(error)
        with got:
            headers, cookies = got.headers.items(), [cookie.name for cookie in jar.cookiejar]
            content: bytes = got.read()
            if got.headers["content-encoding"] == "gzip":  # as programs do that ask for it
                content = gzip.decompress(content)
            return _told(method, (got.status, got.reason, got.url), headers, cookies, content)

    return programme(ask, address)


def with_aiohttp(address: str) -> list[Told]:
    """Ask with aiohttp."""
    import aiohttp

    loop = asyncio.new_event_loop()

    async def opened() -> Any:
        return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    session = loop.run_until_complete(opened())

    async def asked(
        method: str, url: str, body: Any = None, headers: Any = None, *, follow: bool = True
    ) -> Told:
        options = {"data": body, "headers": headers, "allow_redirects": follow, "max_redirects": 5}
        try:
            async with session.request(method, url, **options) as got:
                headers, cookies = got.headers.items(), [one.key for one in session.cookie_jar]
                body = await got.read()
                line = (got.status, got.reason, str(got.url))
                told = _told(method, line, headers, cookies, body)
                return {**told, "history": [(one.status, str(one.url)) for one in got.history]}
        except aiohttp.TooManyRedirects as error:
            return _failed(error)

    def ask(*args: Any, **options: Any) -> Told:
        return loop.run_until_complete(asked(*args, **options))

    try:
        return programme(ask, address)
    finally:
        loop.run_until_complete(session.close())
        loop.close()


def with_boto3(address: str) -> list[Told]:
    """Keep and get an object with boto3."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import ClientError

    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="eu-west-1",
        aws_access_key_id="opaque",
        aws_secret_access_key="opaque",
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    plan = {"Bucket": "garden", "Key": "plan"}
    put = client.put_object(**plan, Body=b"\x00 north wall", Metadata={"kind": "ivy"})
    head = client.head_object(**plan)
    got = client.get_object(**plan)
    body = got.pop("Body").read()
    try:
        client.get_object(Bucket="garden", Key="none")
    except ClientError as error:
        failed = error.response
    for told in (put, head, got, failed):
        told["ResponseMetadata"].pop("HTTPHeaders")
    return [put, head, got, failed, {"body": body}]


CLIENTS: dict[str, Callable[[str], list[Told]]] = {
    "requests": with_requests,
    "httpx": with_httpx,
    "httpx2": with_httpx2,
    "urllib.request": with_urllib,
    "aiohttp": with_aiohttp,
}
"""By the module they need; each follows the whole programme."""

SDKS: dict[str, Callable[[str], list[Told]]] = {
    "boto3": with_boto3,
}
"""By the module they need; each does what it is for."""
