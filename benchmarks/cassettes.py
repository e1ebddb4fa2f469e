"""What cassettes cost and lose: ours beside vcrpy with pytest-recording, and cassetter, in one run.

The rivals are measured where they are installed, otherwise their columns say so:

    python -m pip install pytest-recording cassetter
    python benchmarks/cassettes.py [--full]

Each figure comes from a process of its own; times are CPU time, the best of several (of whole runs
of pytest the median), but for the rows that wait (a miss, a retry), which are wall time. ``--full``
adds 5,000 interactions for all.
"""

# ruff: noqa: ANN401, PLC0415, BLE001 - subjects are foreign, and imported where they are measured

import argparse
import asyncio
import importlib.util
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from byte_code import keep_byte_code
from table import print_table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

SUBJECTS = ("pytest-regen", "vcrpy", "cassetter")
NEEDS = {"pytest-regen": (), "vcrpy": ("pytest_recording",), "cassetter": ("cassetter",)}
PLUGINS = {
    "pytest-regen": "pytest_regen.pytest_plugin.plugin",
    "vcrpy": "pytest_recording.plugin",
    "cassetter": "cassetter.pytest_plugin",
}
URI = "https://api.anthropic.com/v1/messages"
JSON_TYPE = {"content-type": "application/json", "x-api-key": "opaque-key-of-a-gateway"}
LARGE = 5_000
_LAST = 5
PORT = 18_734
ROUNDS = 15


def exchanges(count: int, seed: int = 7) -> list[tuple[bytes, bytes]]:
    """Return requests and answers of about eight kilobytes together."""
    source = random.Random(seed)
    words = ["tool", "invoice", "policy", "customer", "the", "of", "field", "value", "when", "is"]

    def text(length: int) -> str:
        return " ".join(source.choice(words) for _ in range(length))

    found = []
    for number in range(count):
        prompt = f"{seed}-{number} {text(400)}"
        sent = {"model": "claude-sonnet-5-5", "max_tokens": 1000, "system": text(500),
                "messages": [{"role": "user", "content": prompt}]}  # fmt: skip
        said = {"type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text(400)}]}  # fmt: skip
        found.append((json.dumps(sent).encode(), json.dumps(said).encode()))
    return found


class Ours:
    """This package."""

    @contextmanager
    def use(self, path: Path, mode: str, *, clients: bool = False) -> Iterator[Any]:
        """Open a cassette."""
        from pytest_regen.cassettes import use_cassette

        anyhow: Any = mode
        with use_cassette(path, mode=anyhow, http_clients=clients, answers_turns=False) as run:
            yield run

    def keep(self, run: Any, sent: bytes, said: bytes) -> None:
        """Record one exchange."""
        from pytest_regen.cassettes.recording import WireExchange

        sent_headers = {name: (value,) for name, value in JSON_TYPE.items()}
        said_headers = {"content-type": ("application/json",)}
        run.record(WireExchange("POST", URI, sent_headers, sent, 200, "OK", said_headers, said))

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

    def keep(self, run: Any, sent: bytes, said: bytes) -> None:
        """Record one exchange."""
        status = {"code": 200, "message": "OK"}
        headers = {"content-type": ["application/json"]}
        answer = {"status": status, "headers": headers, "body": {"string": said}}
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

    @contextmanager
    def use(self, path: Path, mode: str, *, clients: bool = False) -> Iterator[Any]:
        """Open a cassette; ``clients``: as it matches by default."""
        import cassetter  # type: ignore[import-not-found]  # a rival, installed by hand

        options: Any = {} if clients else {"match_on": ["method", "uri", "json_body"]}
        with cassetter.use_cassette(path, record_mode=mode, **options) as run:
            yield run

    def keep(self, run: Any, sent: bytes, said: bytes) -> None:
        """Record one exchange."""
        run.record(method="POST", uri=URI, request_headers={n: [v] for n, v in JSON_TYPE.items()},
                   request_body=sent, status=200,
                   response_headers={"content-type": ["application/json"]}, response_body=said,
                   order=run.reserve_record_order())  # fmt: skip

    def play(self, run: Any, sent: bytes) -> bytes:
        """Return something for a request."""
        found = run.match("POST", URI, {n: [v] for n, v in JSON_TYPE.items()}, sent)
        return str(found[1]).encode()

    def skip(self, run: Any, bodies: list[bytes]) -> None:
        """Play these."""
        for sent in bodies:
            self.play(run, sent)

    def count(self, path: Path) -> int:
        """Return how many interactions stand on disk."""
        return path.read_text("utf-8").count("request:\n") if path.exists() else 0


MAKERS: dict[str, Callable[[], Any]] = {
    "pytest-regen": Ours, "vcrpy": Vcrpy, "cassetter": Cassetter,
}  # fmt: skip


def name_of(subject: object) -> str:
    """Return what a subject is called."""
    return next(name for name, maker in MAKERS.items() if type(subject) is maker)


def made(subject: Any, folder: Path, count: int) -> Path:
    """Return a cassette of so many interactions, made once per run."""
    path = folder / f"{type(subject).__name__}-{count}.yaml"
    if not path.exists():
        with subject.use(path, "new_episodes") as run:
            for sent, said in exchanges(count):
                subject.keep(run, sent, said)
    return path


def cpu(work: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of the fastest of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


# Figures, each measured in a process of its own


def match(subject: Any, folder: Path, count: int) -> str:
    """Milliseconds for one of the last requests, all others played."""
    every = exchanges(count)
    with subject.use(made(subject, folder, count), "none") as run:
        subject.skip(run, [sent for sent, _ in every[:-_LAST]])
        left = iter(every[-_LAST:])
        return f"{cpu(lambda: subject.play(run, next(left)[0]), _LAST) * 1e3:.2f} ms"


def load(subject: Any, folder: Path, count: int) -> str:
    """Seconds to open, and memory over the file's size."""
    # In another process: what making it takes must not hide what loading it takes.
    child(name_of(subject), "_made", str(folder), str(count))
    path = made(subject, folder, count)
    with subject.use(folder / "none.yaml", "new_episodes"):
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def opened() -> None:
        with subject.use(path, "none"):
            pass

    first = cpu(opened, 1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return f"{min(first, cpu(opened, 2)):.3f} s, {max(grown, 0) / path.stat().st_size:.1f}x"


def add(subject: Any, folder: Path, count: int) -> str:
    """Bytes written, and CPU time, for one more interaction."""
    source = made(subject, folder, count)
    path = folder / f"add-{source.name}"
    path.write_bytes(source.read_bytes())
    [(sent, said)] = exchanges(1, seed=99)
    with subject.use(folder / "warm.yaml", "new_episodes") as run:
        subject.keep(run, sent, said)
    counts = Path("/proc/self/io")

    def written() -> int:
        return int(counts.read_text("ascii").split("wchar: ")[1].split()[0])

    start, before = time.process_time(), written()
    with subject.use(path, "new_episodes") as run:
        subject.keep(run, sent, said)
    return f"{(written() - before) / 1e3:,.0f} kB, {(time.process_time() - start) * 1e3:,.0f} ms"


@contextmanager
def served(responder: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """Run an emulated API; yield its address."""
    from pytest_regen.emulator import Emulator

    with Emulator(responder, port=PORT) as emulator:
        yield emulator.base_url


def echo(body: dict[str, Any]) -> str:
    """Say what the last message said."""
    return str(body["messages"][-1]["content"])


def ask(client: Any, text: str) -> Any:
    """Make one call with the SDK, plain or asynchronous."""
    messages = [{"role": "user", "content": text}]
    return client.messages.create(model="claude-sonnet-5-5", max_tokens=200, messages=messages)


def said_by(message: Any) -> str:
    """Return the text of a message."""
    return "".join(getattr(block, "text", "") for block in message.content)


def concurrent(subject: Any, folder: Path, _count: int) -> str:
    """Wrong answers of 24 calls in 8 threads, and of 8 calls gathered."""
    import anthropic

    def in_threads(url: str) -> int:
        client = anthropic.Anthropic(api_key="x", base_url=url)
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda n: said_by(ask(client, f"number {n}")), range(24)))
        return sum(text != f"number {n}" for n, text in enumerate(texts))

    async def gathered(url: str) -> int:
        client = anthropic.AsyncAnthropic(api_key="x", base_url=url)
        found = await asyncio.gather(*(ask(client, f"number {n}") for n in range(8)))
        return sum(said_by(one) != f"number {n}" for n, one in enumerate(found))

    worst = [0, 0]
    with served(echo) as url:
        for number in range(3):
            threads, both = folder / f"t{number}.yaml", folder / f"g{number}.yaml"
            for mode in ("once", "none"):
                with subject.use(threads, mode, clients=True):
                    worst[0] = max(worst[0], in_threads(url))
                with subject.use(both, mode, clients=True):
                    worst[1] = max(worst[1], asyncio.run(gathered(url)))
    return f"{worst[0]} / {worst[1]}"


def missed(subject: Any, folder: Path, _count: int) -> str:
    """Milliseconds until a call that was not recorded is told, and as what."""
    import anthropic

    path = folder / "miss.yaml"
    with served(echo) as url:
        client = anthropic.Anthropic(api_key="x", base_url=url)
        with subject.use(path, "once", clients=True):
            ask(client, "recorded")
        start, told = 0.0, "nothing"
        try:
            with subject.use(path, "none", clients=True):
                ask(client, "recorded")
                start = time.perf_counter()
                ask(client, "recorded")
        except Exception as error:
            told = type(error).__name__
        return f"{(time.perf_counter() - start) * 1e3:,.0f} ms, {told}"


def retried(subject: Any, folder: Path, _count: int) -> str:
    """Milliseconds of a replayed 529 that asked for a second, and the answer after it."""
    import anthropic

    from pytest_regen.emulator import Fault

    answers: list[Any] = [Fault(529, retry_after=1), "late"]
    with served(lambda _body: answers.pop(0)) as url:
        client = anthropic.Anthropic(api_key="x", base_url=url)
        with subject.use(folder / "retry.yaml", "once", clients=True):
            ask(client, "x")
        with subject.use(folder / "retry.yaml", "none", clients=True):
            start = time.perf_counter()
            ask(client, "x")
            return f"{(time.perf_counter() - start) * 1e3:,.0f} ms"


def record_some(subject: Any, path: Path, name: str, count: int, *, crash: bool) -> None:
    """Record calls, and end well or not at all."""
    with subject.use(path, "new_episodes", clients=False) as run:
        for number, (sent, said) in enumerate(exchanges(count)):
            subject.keep(run, sent.replace(b"7-", f"{name}{number}-".encode(), 1), said)
        if crash:
            os._exit(1)


def kept(subject: Any, folder: Path, _count: int) -> str:
    """How many of 5 calls are on disk after a crash, and how many of 4 writers' are kept."""
    crash, shared = folder / "crash.yaml", folder / "shared.yaml"
    name = name_of(subject)
    child(name, "_record", str(crash), "c", "5", "crash")
    children = [start_child(name, "_record", str(shared), f"w{n}", "1", "") for n in range(4)]
    for one in children:
        one.wait()
    return f"{subject.count(crash)} of 5, {subject.count(shared)} of 4"


def secrets(subject: Any, folder: Path, _count: int) -> str:
    """How many kinds of planted credential stand on disk."""
    from planted_secrets import KINDS

    path = folder / "secrets.yaml"
    with subject.use(path, "new_episodes") as run:
        for number, secret in enumerate(KINDS.values()):
            sent = {"model": "m", "messages": [{"role": "user", "content": f"{number} {secret}"}]}
            said = {"content": [{"type": "text", "text": f"it is {secret}"}]}
            subject.keep(run, json.dumps(sent).encode(), json.dumps(said).encode())
    text = path.read_text("utf-8").replace("\n", " ").replace('\\"', '"')
    squeezed = "".join(text.split())
    left = [s for s in KINDS.values() if "".join(s.replace("\n", "\\n").split()) in squeezed]
    return f"{len(left)} of {len(KINDS)}"


FIRST_TURN = {
    "pytest-regen": """
        from pathlib import Path
        from pytest_regen.cassettes import ReplayProvider
        from pytest_regen.turns.values import Message, TurnRequest
        turn = TurnRequest("", (Message("user", "hello"),), "claude-sonnet-5-5", 200)
        assert ReplayProvider(Path({path!r})).send(turn).text == "hello"
    """,
    "vcrpy": """
        import anthropic, vcr
        with vcr.use_cassette({path!r}, record_mode="none"):
            client = anthropic.Anthropic(api_key="x", base_url={url!r})
            client.messages.create(model="claude-sonnet-5-5", max_tokens=200,
                                   messages=[{{"role": "user", "content": "hello"}}])
    """,
    "cassetter": """
        import anthropic, cassetter
        with cassetter.use_cassette({path!r}, record_mode="none"):
            client = anthropic.Anthropic(api_key="x", base_url={url!r})
            client.messages.create(model="claude-sonnet-5-5", max_tokens=200,
                                   messages=[{{"role": "user", "content": "hello"}}])
    """,
}


def first_turn(subject: Any, folder: Path, _count: int) -> str:
    """CPU seconds of a fresh process that replays one turn."""
    import anthropic

    path = folder / "first.yaml"
    with served(echo) as url, subject.use(path, "once", clients=True):
        ask(anthropic.Anthropic(api_key="x", base_url=url), "hello")
    name = name_of(subject)
    code = textwrap.dedent(FIRST_TURN[name]).format(path=str(path), url=url)
    return f"{min(cpu_of([sys.executable, '-c', code], folder) for _ in range(5)):.2f} s"


def pytest_costs(subject: Any, folder: Path, _count: int) -> str:
    """Milliseconds per marked test, per unmarked test, and at start-up."""
    name = name_of(subject)
    ours = name == "pytest-regen"
    suite = folder / "suite"
    (suite / "cassettes" / "test_marked").mkdir(parents=True)
    (suite / "pytest.ini").write_text("[pytest]\n", "utf-8")
    many = (
        "import pytest\n{mark}@pytest.mark.parametrize('i', range({n}))\ndef test_a(i{arg}): pass\n"
    )
    (suite / "test_one.py").write_text(many.format(mark="", n=1, arg=""), "utf-8")
    (suite / "test_plain.py").write_text(many.format(mark="", n=1000, arg=""), "utf-8")
    mark, arg = ("", ", cassette") if ours else ("@pytest.mark.vcr\n", "")
    (suite / "test_marked.py").write_text(many.format(mark=mark, n=200, arg=arg), "utf-8")
    (suite / "test_first.py").write_text(many.format(mark=mark, n=1, arg=arg), "utf-8")
    (suite / "cassettes" / "test_first").mkdir()
    seed = made(subject, folder, 1).read_bytes()
    for number in range(200):
        (suite / f"cassettes/test_marked/test_a[{number}].yaml").write_bytes(seed)
    (suite / "cassettes/test_first/test_a[0].yaml").write_bytes(seed)

    bare = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider"]
    full = [*bare, f"-p{PLUGINS[name]}", *(["-oregen_unplayed=ignore"] if ours else [])]
    runs = ((bare, "one"), (full, "one"), (bare, "plain"), (full, "plain"),
            (full, "first"), (full, "marked"))  # fmt: skip
    commands = [[*words, f"test_{file}.py"] for words, file in runs]
    # In turn, and compared within a turn: what else the machine does meets all of them alike.
    found = []
    for _ in range(ROUNDS):
        bare_one, one, bare_plain, plain, first, marked = (cpu_of(w, suite) * 1e3 for w in commands)
        start = one - bare_one
        found.append(((marked - first) / 199, (plain - bare_plain - start) / 1000, start))
    marked, unmarked, start = map(statistics.median, zip(*found, strict=True))
    return f"{marked:.2f} / {max(unmarked, 0):.3f} / {start:.0f} ms"


def cpu_of(words: list[str], folder: Path) -> float:
    """Return the CPU seconds of a process."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


ROWS: dict[str, tuple[Callable[[Any, Path, int], str], int]] = {
    "match the last of 1,000, body compared": (match, 1_000),
    "match the last of 5,000": (match, LARGE),
    "load 1,000 (8 kB each), memory over file": (load, 1_000),
    "load 5,000": (load, LARGE),
    "add one to 1,000: written, CPU": (add, 1_000),
    "first replayed turn, fresh process": (first_turn, 0),
    "marked test / unmarked test / start-up": (pytest_costs, 0),
    "wrong answers: threads x 24 / gather x 8": (concurrent, 0),
    "an unrecorded call through the SDK": (missed, 0),
    "replayed 529 with Retry-After 1 s": (retried, 0),
    "kept: crash after 5 calls, 4 parallel writers": (kept, 0),
    "planted secrets on disk": (secrets, 0),
}


def start_child(*words: str) -> "subprocess.Popen[str]":
    """Start this script for one figure."""
    return subprocess.Popen(
        [sys.executable, __file__, "--one", *words], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def child(*words: str) -> str:
    """Return one figure, or why there is none."""
    process = start_child(*words)
    out, complaints = process.communicate()
    if out.strip():
        return out.strip().splitlines()[-1]
    # The line of the traceback that names the exception; its message may go on below.
    named = [
        line for line in complaints.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)
    ]
    return f"fails: {named[-1].partition(':')[0].rpartition('.')[2] if named else 'no figure'}"


def one(subject_name: str, row: str, *words: str) -> None:
    """Print one figure."""
    subject = MAKERS[subject_name]()
    if row == "_made":
        made(subject, Path(words[0]), int(words[1]))
        return
    if row == "_record":
        path, name, calls, end = words
        record_some(subject, Path(path), name, int(calls), crash=bool(end))
        return
    measure, count = ROWS[row]
    print(measure(subject, Path(words[0]), count))


def main() -> None:
    """Print the table."""
    keep_byte_code()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="5,000 interactions for all subjects")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--rows", default="", help="only rows that contain this")
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row, (_, count) in ROWS.items():
            if options.rows not in row:
                continue
            figures = []
            for subject in SUBJECTS:
                if not all(importlib.util.find_spec(name) for name in NEEDS[subject]):
                    figures.append("not installed")
                elif count == LARGE and subject != "pytest-regen" and not options.full:
                    figures.append("with --full")
                else:
                    place = Path(tempfile.mkdtemp(dir=folder))
                    figures.append(child(subject, row, str(place)))
            rows.append((row, *figures))
            print(f"{row}: {' | '.join(figures)}", file=sys.stderr)
    print_table(("", "pytest-regen", "vcrpy / pytest-recording", "cassetter"), rows)


if __name__ == "__main__":
    main()
