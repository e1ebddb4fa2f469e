"""Large runs, beside what a user would do otherwise: how much of what is allowed they use.

    python benchmarks/scale.py concurrency          40 stores x 5 pages, a model of 0.3 s
    python benchmarks/scale.py rate [--whole]       many stores under a limit of requests a minute
    python benchmarks/scale.py processes            eight processes on one store, a model of 1 s
    python benchmarks/scale.py emulator             how fast the emulator answers by itself

The model is the emulator, in this process, and what asks it is in others, over real HTTP on
loopback; its log says what was asked, refused and in flight. Nothing is known here about latency,
tokenizer or limits of the real API. ``rate`` runs against a smaller limit in two minutes;
``--whole`` asks 10,000 pages under 1,000 requests a minute in real time, which takes ten.
"""

import argparse
import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from byte_code import keep_byte_code
from table import print_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from at_once import PROCESSES, regenerated_at_once
from many_operations import FIELDS_PER_PAGE, PAGES, write_many_operations
from reference_writer import ReferenceWriter

from pytest_regen.canonical import canonical_json, text_hash
from pytest_regen.emulator import EmulatedReply, Emulator, RateLimits, ReceivedRequest

JOBS = (16, 64)
STORES = 40
DELAY = 0.3
OPTIONS = (f"--fields-per-page={FIELDS_PER_PAGE}", "--out=generated")
REFUSED = 429
COUNTED = """
import json, os, sys
told = sys.argv.pop()
counts = {"fsync": 0, "fdatasync": 0}
def count(name):
    call = getattr(os, name)
    def counted(file):
        counts[name] += 1
        return call(file)
    setattr(os, name, counted)
for name in list(counts):
    count(name)
from pytest_regen.cli.app import main
try:
    main()
finally:
    open(told, "w").write(json.dumps(counts))
"""


@dataclass(frozen=True)
class Turn:
    """One request for a page that was answered, or refused."""

    status: int
    began: float
    """When it had arrived, in seconds since the epoch."""
    ended: float
    """When its reply began to be sent."""
    prompt: str
    """Digest of what it asks, wherever its cache marks stand."""


@dataclass(frozen=True)
class Model:
    """The emulator while it serves, and what it was asked."""

    base_url: str
    turns: list[Turn]


@dataclass(frozen=True)
class Run:
    """What one command did."""

    code: int
    seconds: float
    """Of the whole process, imports included."""
    cpu: float
    """Seconds of the processor, children included."""
    memory: tuple[float, ...]
    """MB in use, one value per tick, in the order of time."""
    turns: Sequence[Turn]
    """All requests for a reply, refused ones too."""
    output: str

    @property
    def pages(self) -> list[Turn]:
        """The requests that were answered with a page."""
        return [turn for turn in self.turns if turn.status < REFUSED]

    @property
    def asking(self) -> float:
        """Seconds from the first request to the last reply."""
        return max(turn.ended for turn in self.turns) - min(turn.began for turn in self.turns)


def main() -> int:
    """Run what the command line names; return 1 where a bar is missed."""
    keep_byte_code()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("concurrency", "rate", "processes", "emulator"))
    parser.add_argument("--whole", action="store_true", help="rate: 10,000 pages in real time")
    parser.add_argument("--alone", action="store_true", help="only ours, nothing beside it")
    options = parser.parse_args()
    if options.what == "concurrency":
        return show_concurrency(alone=options.alone)
    if options.what == "rate":
        return show_rate(whole=options.whole, alone=options.alone)
    return show_processes() if options.what == "processes" else show_emulator()


# Concurrency


def show_concurrency(*, alone: bool) -> int:
    """Print a row per number of jobs, and one for a process per store."""
    pages = STORES * PAGES
    rows, shares = [], []
    runs: list[tuple[str, int, str | list[str]]] = [
        (f"`generate --all --jobs {jobs}`", jobs, generate_all(jobs)) for jobs in JOBS
    ]
    if not alone:
        jobs = JOBS[0]
        runs.append((f"`xargs -P {jobs}`, a process per store", jobs, generate_each(jobs)))
    for name, jobs, command in runs:
        with project(STORES, delay=DELAY) as (folder, model):
            run = run_command(command, folder, model)
        check_pages(run, pages)
        # The first request goes alone: it writes the prompt cache for all others.
        ideal = DELAY * (1 + math.ceil((pages - 1) / jobs))
        shares.append(ideal / run.asking)
        rows.append(
            (
                name,
                f"{shares[-1]:.0%}",
                f"{run.asking:.1f} s",
                f"{ideal:.1f} s",
                f"{sum(turn.ended - turn.began for turn in run.turns) / run.asking:.1f} of {jobs}",
                str(most_in_flight(run.turns)),
                f"{run.seconds:.1f} s",
                f"{1_000 * run.cpu / pages:.0f} ms",
            )
        )
    head = ("of the possible concurrency", "first request to last reply", "possible")
    flying = ("in flight on average", "at most")
    whole = ("whole command", "processor time per page")
    print_table(
        (f"{STORES} stores x {PAGES} pages, a model of {DELAY} s", *head, *flying, *whole), rows
    )
    print(f"\nThe bar is 80 % at {' and '.join(map(str, JOBS))} jobs.")
    return int(min(shares[: len(JOBS)]) < 0.8)


def most_in_flight(turns: Sequence[Turn]) -> int:
    """Return how many requests were in flight at the busiest moment."""
    changes = [(turn.began, 1) for turn in turns] + [(turn.ended, -1) for turn in turns]
    flying = most = 0
    for _, change in sorted(changes):
        flying += change
        most = max(most, flying)
    return most


def generate_all(jobs: int) -> list[str]:
    """Return the arguments that generate all stores in one process."""
    return ["generate", "api.json", "--all", *OPTIONS, f"--jobs={jobs}"]


def generate_each(jobs: int) -> str:
    """Return the line of a shell that generates each store in a process of its own."""
    names = f"seq -f 'GET /v1/harbour%g' 0 {STORES - 1}"
    command = f"{sys.executable} -m pytest_regen generate api.json {{}} {' '.join(OPTIONS)}"
    return f"{names} | xargs -d '\\n' -I{{}} -P {jobs} {command}"


# Rate


def show_rate(*, whole: bool, alone: bool) -> int:
    """Print what one command made of the limit, and what a loop over the SDK makes of it."""
    stores, limit = (2_000, 1_000) if whole else (100, 200)
    pages, jobs = stores * PAGES, JOBS[1]
    print(f"{'The whole run, in real time' if whole else 'A smaller run'}: ", end="")
    print(f"{pages:,} pages in {stores:,} stores, {limit:,} requests a minute, {jobs} jobs.\n")
    with project(stores, delay=DELAY, limit=limit) as (folder, model):
        ours = run_command(generate_all(jobs), folder, model)
        fsyncs = json.loads((folder / "fsyncs.json").read_text("utf-8"))
        runs = [(f"`generate --all --jobs {jobs}`", ours)]
        if not alone:
            time.sleep(60)  # The bucket of the emulator fills again.
            script = [sys.executable, str(Path(__file__).with_name("scale_by_hand.py")), str(jobs)]
            runs.append(("`AsyncAnthropic` and a semaphore", run_command(script, folder, model)))
    rows = []
    for name, run in runs:
        rows.append(
            (
                name,
                f"{len({turn.prompt for turn in run.pages}):,}",
                f"{share_of_rate(run, limit):.1%}",
                f"{share_refused(run):.1%}",
                f"{len(run.turns):,}",
                f"{run.asking:.0f} s",
            )
        )
    head = ("pages by one command", "of the allowed rate", "answered 429", "requests", "asking")
    print_table(("", *head), rows)
    quarter = max(1, len(ours.memory) // 4)
    first, last = max(ours.memory[:quarter]), max(ours.memory[-quarter:])
    print(
        f"\nOurs: {sum(fsyncs.values()) / pages:.2f} fsyncs a page, "
        f"{1_000 * ours.cpu / pages:.1f} ms of the processor a page; "
        f"memory at most {first:.0f} MB in the first quarter of the time, {last:.0f} MB in the "
        f"last. Whole command {ours.seconds:.0f} s, exit code {ours.code}."
    )
    print("The bars are 95 % of the rate, 2 % answered 429, 2 fsyncs a page.")
    is_right = ours.code == 0 and share_of_rate(ours, limit) >= 0.95 and share_refused(ours) <= 0.02
    return int(not is_right)


def share_of_rate(run: Run, limit: int) -> float:
    """Return the pages of a run by what a bucket that was full at first had let through by then."""
    began = [turn.began for turn in run.turns]
    return len(run.pages) / (limit * (1 + (max(began) - min(began)) / 60))


def share_refused(run: Run) -> float:
    """Return the share of requests that were answered 429."""
    return sum(turn.status == REFUSED for turn in run.turns) / len(run.turns)


# Processes


def show_processes() -> int:
    """Print how long eight processes take that work on one store at once."""
    rows, seconds = [], []
    for run in range(1, 4):
        with tempfile.TemporaryDirectory() as name:
            outcome = regenerated_at_once(Path(name), delay=1.0)
        unchanged = sum(
            page != outcome.before.pages[key] for key, page in outcome.after.pages.items()
        )
        seconds.append(outcome.seconds)
        rows.append((str(run), f"{outcome.seconds:.2f} s", str(outcome.in_flight), str(unchanged)))
    print_table(("run", "wall time", "requests in flight at once", "updates kept"), rows)
    code = "import anthropic, pytest_regen.cli.regenerate; anthropic.Anthropic(api_key='any')"
    imports = statistics.median(time_of([sys.executable, "-c", code]) for _ in range(3))
    print(
        f"\n{PROCESSES} processes, a model of 1 s: the best of 3 runs took {min(seconds):.2f} s "
        f"from the moment when all had imported; the bar is 2 s, and one after the other they "
        f"would take {PROCESSES} s. Importing takes one process alone {imports:.2f} s."
    )
    return int(min(seconds) > 2)


def time_of(command: Sequence[str]) -> float:
    """Return the wall time of a command, in seconds."""
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


# The emulator itself


def show_emulator() -> int:
    """Print how many requests a second the emulator answers on one core."""
    connections, count = 64, 4_000
    with project(1) as (folder, model):
        body = one_page(folder, model)
        # Another process asks, because it would take the emulator's time here.
        with ProcessPoolExecutor(1, get_context("spawn")) as asker:
            asker.submit(os.getpid).result()
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            asked = asker.submit(ask_all, model.base_url, body, connections, count)
            took, slow = asked.result()
    head = ("connections", "requests a second", "95 % of replies within")
    print_table(head, [(str(connections), f"{count / took:.0f}", f"{1_000 * slow:.0f} ms")])
    print(f"\nRequests of {len(body):,} bytes, each for one page. The bar is 400 a second.")
    return int(count / took < 400)


def ask_all(url: str, body: bytes, connections: int, count: int) -> tuple[float, float]:
    """Do as ``ask_often`` in an event loop."""
    return asyncio.run(ask_often(url, body, connections, count))


def one_page(folder: Path, model: Model) -> bytes:
    """Return the body of a request for a page."""
    run = run_command(generate_all(1), folder, model)
    check_pages(run, PAGES)
    prompts = json.loads(next(folder.glob("generated/*/prompts.json")).read_text("utf-8"))
    entry = prompts[-1]
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1_000,
        "system": entry["system"],
        "messages": [{"role": "user", "content": entry["user"]}],
    }
    return json.dumps(body).encode()


async def ask_often(url: str, body: bytes, connections: int, count: int) -> tuple[float, float]:
    """Return how long all requests took, and the longest time but for 5 % of them."""
    host, _, port = url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: any\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()
    left, took = iter(range(count)), list[float]()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in left:
            began = time.perf_counter()
            writer.write(head + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            took.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(connections)))
    return time.perf_counter() - began, sorted(took)[int(0.95 * len(took))]


# Runs


@contextmanager
def project(
    stores: int, *, delay: float = 0.0, limit: int | None = None
) -> Iterator[tuple[Path, Model]]:
    """Yield a folder with a document, and a model that is served while the block runs."""
    limits = RateLimits(limit, input_tokens=10**9, output_tokens=10**9) if limit else None
    write = ReferenceWriter()
    emulator = Emulator(lambda body: EmulatedReply(write(body), delay=delay), limits=limits)
    turns: list[Turn] = []

    def log(request: ReceivedRequest, status: int) -> None:
        prompt = text_hash(canonical_json((request.body or {}).get("messages")))
        turns.append(Turn(status, request.at, time.time(), prompt))
        emulator.requests.clear()  # Ten thousand bodies would fill the memory.

    emulator.answering = log
    with tempfile.TemporaryDirectory() as name, emulator:
        folder = Path(name)
        write_many_operations(folder / "api.json", stores)
        yield folder, Model(emulator.base_url, turns)


def run_command(command: str | list[str], folder: Path, model: Model) -> Run:
    """Run one of our commands, a program, or a line of the shell, and watch it."""
    before = len(model.turns)
    ours = isinstance(command, list) and command[0] == "generate"
    if ours:
        command = [sys.executable, "-c", COUNTED, *command, str(folder / "fsyncs.json")]
    with (folder / "output").open("w+") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=folder,
            # Limits known of the machine are kept in the user's cache folder; this run has its own.
            env={
                **os.environ,
                "ANTHROPIC_BASE_URL": model.base_url,
                "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
                "XDG_CACHE_HOME": str(folder / "cache"),
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        memory: list[float] = []
        watching = threading.Thread(target=watch_memory, args=(process.pid, memory), daemon=True)
        watching.start()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = code = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    cpu = used.ru_utime + used.ru_stime
    return Run(code, seconds, cpu, tuple(memory), model.turns[before:], text)


def watch_memory(pid: int, memory: list[float]) -> None:
    """Note twice a second how many MB of memory a process holds, until it ends."""
    size = os.sysconf("SC_PAGE_SIZE") / 1e6
    while True:
        try:
            pages = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]
        except OSError:
            return
        memory.append(int(pages) * size)
        time.sleep(0.5)


def check_pages(run: Run, count: int) -> None:
    """End the benchmark where a run did not ask each page once and end well."""
    prompts = {turn.prompt for turn in run.pages}
    if run.code or len(prompts) != count or len(run.pages) != count:
        raise SystemExit(
            f"exit code {run.code}, {len(prompts)} of {count} pages, {len(run.pages)} replies\n"
            + run.output[-2_000:]
        )


if __name__ == "__main__":
    sys.exit(main())
