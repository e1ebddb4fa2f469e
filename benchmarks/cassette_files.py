"""Figures of files: matched, loaded, added to, with large bodies."""

import base64
import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cassette_figures import child, cpu, peak_memory
from cassette_subjects import MAKERS, Subject, exchanges, made

__all__ = ["ROWS"]

_LAST = 5
_MEGABYTES = 50


def _match(subject: Subject, folder: Path, *, count: int) -> str:
    """Milliseconds for one of the last requests, all others played."""
    every = exchanges(count)
    with subject.use(made(subject, folder, count), "none") as run:
        subject.skip(run, [sent for sent, _ in every[:-_LAST]])
        left = iter(every[-_LAST:])
        return f"{cpu(lambda: subject.play(run, next(left)[0]), _LAST) * 1e3:.2f} ms"


def _load(subject: Subject, folder: Path, *, count: int, of: str = "") -> str:
    """Seconds to open a cassette and play one, and memory over the file's size."""
    maker = of or subject.name
    # In another process: what making it takes must not hide what loading it takes.
    child(maker, "_made", str(folder), str(count))
    path = made(MAKERS[maker](), folder, count)
    [(sent, reply)] = exchanges(1)

    def opened() -> None:
        with subject.use(path, "none") as run:
            subject.play(run, sent)

    with subject.use(folder / "warm.yaml", "new_episodes") as run:
        subject.keep(run, sent, reply)
    with subject.use(folder / "warm.yaml", "none") as run:
        subject.play(run, sent)
    before = peak_memory()
    first = cpu(opened, 1)
    grown = max(peak_memory() - before, 0) / path.stat().st_size
    return f"{min(first, cpu(opened, 2)):.3f} s, {grown:.1f}x"


def _load_foreign(subject: Subject, folder: Path, *, count: int) -> str:
    loaded = _load(subject, folder, count=count, of="vcrpy")
    if subject.name != "pytest-regen":
        return loaded
    row = f"load {count:,} of vcrpy"
    return f"{loaded}; under `vcr`: {child('under the mark vcr', row, str(folder))}"


def _written() -> int:
    counts = Path("/proc/self/io").read_text("ascii")
    return int(counts.split("wchar: ")[1].split()[0])


def _add(subject: Subject, folder: Path, *, of: str = "") -> str:
    """Bytes written, and CPU time, for one more interaction."""
    source = made(MAKERS[of or subject.name](), folder, 1_000)
    path = folder / f"add-{source.name}"
    path.write_bytes(source.read_bytes())
    [(sent, reply)] = exchanges(1, seed=99)
    with subject.use(folder / "warm.yaml", "new_episodes") as run:
        subject.keep(run, sent, reply)
    start, before = time.process_time(), _written()
    with subject.use(path, "new_episodes") as run:
        subject.keep(run, sent, reply)
    return f"{(_written() - before) / 1e3:,.0f} kB, {(time.process_time() - start) * 1e3:,.0f} ms"


def _prose(source: random.Random, size: int) -> bytes:
    words = ["".join(source.choices("etaoinshrdlu", k=source.randint(2, 9))) for _ in range(2_000)]
    text = " ".join(source.choices(words, k=20_000)) + "\n"
    return json.dumps({"text": text * (size // len(text))}).encode()


def _picture(source: random.Random, size: int) -> bytes:
    return json.dumps({"data": base64.b64encode(source.randbytes(size * 3 // 4)).decode()}).encode()


def _vectors(source: random.Random, size: int) -> bytes:
    vector = [source.uniform(-1, 1) for _ in range(1_536)]
    return json.dumps({"data": [vector] * (size // len(json.dumps(vector)))}).encode()


def _binary(source: random.Random, size: int) -> bytes:
    return source.randbytes(size)


def _large(subject: Subject, folder: Path, *, body: Callable[[random.Random, int], bytes]) -> str:
    """CPU seconds to record and to replay one answer, and the memory both take over its size."""
    reply = body(random.Random(3), _MEGABYTES * 1_000_000)
    path, sent = folder / "large.yaml", b'{"large": 1}'
    for mode in ("new_episodes", "none"):  # what is imported and made once is not measured
        with subject.use(folder / "warm.yaml", mode) as run:
            if mode == "none":
                subject.play(run, sent)
            else:
                subject.keep(run, sent, b"{}")
    before, start = peak_memory(), time.process_time()
    with subject.use(path, "new_episodes") as run:
        subject.keep(run, sent, reply)
    middle = time.process_time()
    with subject.use(path, "none") as run:
        subject.play(run, sent)
    end = time.process_time()
    grown = (peak_memory() - before) / len(reply)
    return f"{middle - start:.2f} + {end - middle:.2f} s, {grown:.1f}x"


ROWS: dict[str, Callable[[Subject, Path], str]] = {
    "match the last of 1,000, body compared": partial(_match, count=1_000),
    "match the last of 5,000": partial(_match, count=5_000),
    "load own 1,000 (8 kB each) and play one, memory over file": partial(_load, count=1_000),
    "load own 5,000": partial(_load, count=5_000),
    "load 1,000 of vcrpy": partial(_load_foreign, count=1_000),
    "load 5,000 of vcrpy": partial(_load_foreign, count=5_000),
    "add one to own 1,000: written, CPU": _add,
    "add one to 1,000 of vcrpy": partial(_add, of="vcrpy"),
    "50 MB of prose in JSON: record + replay, memory over it": partial(_large, body=_prose),
    "50 MB of base64 in JSON": partial(_large, body=_picture),
    "50 MB of numbers in JSON": partial(_large, body=_vectors),
    "50 MB of binary data": partial(_large, body=_binary),
}
