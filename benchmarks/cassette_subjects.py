"""What is compared: this package, vcrpy, cassetter, each behind the same few methods."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["JSON_TYPE", "MAKERS", "URI", "Subject", "exchanges", "made"]

Subject = Any
"""One of the classes below."""

URI = "https://api.anthropic.com/v1/messages"
JSON_TYPE = {"content-type": "application/json", "x-api-key": "opaque-key-of-a-gateway"}


def exchanges(count: int, seed: int = 7) -> list[tuple[bytes, bytes]]:
    """Return requests and answers of about eight kilobytes together."""
    source = random.Random(seed)
    words = ["tool", "invoice", "policy", "customer", "the", "of", "field", "value", "when", "is"]

    def text(length: int) -> str:
        return " ".join(source.choice(words) for _ in range(length))

    pairs = []
    for number in range(count):
        prompt = f"{seed}-{number} {text(400)}"
        sent = {"model": "claude-sonnet-5-5", "max_tokens": 1000, "system": text(500),
                "messages": [{"role": "user", "content": prompt}]}  # fmt: skip
        reply = {"type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text(400)}]}  # fmt: skip
        pairs.append((json.dumps(sent).encode(), json.dumps(reply).encode()))
    return pairs


class Ours:
    """This package."""

    name = "pytest-regen"

    @contextmanager
    def use(self, path: Path, mode: str, *, clients: bool = False) -> Iterator[Any]:
        """Open a cassette."""
        from pytest_regen.cassettes import use_cassette

        anyhow: Any = mode
        with use_cassette(path, mode=anyhow, http_clients=clients, answers_turns=False) as run:
            yield run

    def keep(self, run: Any, sent: bytes, reply: bytes) -> None:
        """Record one exchange."""
        from pytest_regen.cassettes.interactions import Interaction

        sent_headers = {name: (value,) for name, value in JSON_TYPE.items()}
        said_headers = {"content-type": ("application/json",)}
        run.record(Interaction("POST", URI, sent_headers, sent, 200, "OK", said_headers, reply))

    def play(self, run: Any, sent: bytes) -> bytes:
        """Return the answer to a request."""
        return bytes(run.take("POST", URI, sent).response_body)

    def skip(self, run: Any, bodies: list[bytes]) -> None:
        """Play these."""
        for sent in bodies:
            run.take("POST", URI, sent)

    def count(self, path: Path) -> int:
        """Return how many interactions stand on disk after a crash."""
        from pytest_regen.cassettes import read_cassette

        files = (read_cassette(path), read_cassette(Path(f"{path}.partial")))
        return sum(len(file.interactions) for file in files if file)


class Vcrpy:
    """The engine of pytest-recording, body compared."""

    name = "vcrpy"

    @contextmanager
    def use(self, path: Path, mode: str, *, clients: bool = False) -> Iterator[Any]:
        """Open a cassette; ``clients``: as pytest-recording matches by default."""
        import vcr

        match = ["method", "scheme", "host", "port", "path", "query"]
        engine = vcr.VCR(record_mode=mode, match_on=match if clients else [*match, "body"])
        with engine.use_cassette(path) as run:
            yield run

    def _request(self, sent: bytes) -> Any:
        from vcr.request import Request

        return Request("POST", URI, sent, dict(JSON_TYPE))

    def keep(self, run: Any, sent: bytes, reply: bytes) -> None:
        """Record one exchange."""
        status = {"code": 200, "message": "OK"}
        headers = {"content-type": ["application/json"]}
        answer = {"status": status, "headers": headers, "body": {"string": reply}}
        run.append(self._request(sent), answer)

    def play(self, run: Any, sent: bytes) -> bytes:
        """Return the answer to a request."""
        request = self._request(sent)
        if not run.can_play_response_for(request):
            raise LookupError
        return bytes(run.play_response(request)["body"]["string"])

    def skip(self, run: Any, bodies: list[bytes]) -> None:
        """Mark these as played: playing them would take minutes."""
        for number in range(len(bodies)):
            run.play_counts[number] = 1

    def count(self, path: Path) -> int:
        """Return how many interactions stand on disk."""
        return path.read_text("utf-8").count("\n- request:") if path.exists() else 0


class Cassetter:
    """The Rust core, JSON bodies compared."""

    name = "cassetter"

    @contextmanager
    def use(self, path: Path, mode: str, *, clients: bool = False) -> Iterator[Any]:
        """Open a cassette; ``clients``: as it matches by default."""
        import cassetter  # type: ignore[import-not-found]  # a rival, installed by hand

        options: Any = {} if clients else {"match_on": ["method", "uri", "json_body"]}
        with cassetter.use_cassette(path, record_mode=mode, **options) as run:
            yield run

    def keep(self, run: Any, sent: bytes, reply: bytes) -> None:
        """Record one exchange."""
        run.record(method="POST", uri=URI, request_headers={n: [v] for n, v in JSON_TYPE.items()},
                   request_body=sent, status=200,
                   response_headers={"content-type": ["application/json"]}, response_body=reply,
                   order=run.reserve_record_order())  # fmt: skip

    def play(self, run: Any, sent: bytes) -> bytes:
        """Return something for a request."""
        response = run.match("POST", URI, {n: [v] for n, v in JSON_TYPE.items()}, sent)
        return str(response[1]).encode()

    def skip(self, run: Any, bodies: list[bytes]) -> None:
        """Play these."""
        for sent in bodies:
            self.play(run, sent)

    def count(self, path: Path) -> int:
        """Return how many interactions stand on disk."""
        return path.read_text("utf-8").count("request:\n") if path.exists() else 0


class UnderVcr(Vcrpy):
    """This package under the mark ``vcr``: vcrpy, whose files we read and write."""

    name = "under the mark vcr"

    @contextmanager
    def use(self, path: Path, mode: str, *, clients: bool = False) -> Iterator[Any]:
        """Open a cassette."""
        from pytest_regen.cassettes.clients.vcr_run import VcrOptions, use_vcr_cassette

        match = ["method", "scheme", "host", "port", "path", "query"]
        config = {"match_on": match if clients else [*match, "body"]}
        options = VcrOptions(path.name, path.parent, mode, config, (), lambda _vcr: None)
        with use_vcr_cassette(options) as run:
            yield run.cassette


MAKERS: dict[str, Callable[[], Any]] = {
    maker.name: maker for maker in (Ours, Vcrpy, Cassetter, UnderVcr)
}


def made(subject: Any, folder: Path, count: int) -> Path:
    """Return a cassette of so many interactions, made once per run."""
    path = folder / f"{type(subject).__name__}-{count}.yaml"
    if not path.exists():
        with subject.use(path, "new_episodes") as run:
            for sent, reply in exchanges(count):
                subject.keep(run, sent, reply)
    return path
