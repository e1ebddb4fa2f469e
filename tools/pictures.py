"""Make the pictures of the documentation from real runs.

    python tools/pictures.py            # all of them
    python tools/pictures.py heal       # one

A picture of a terminal is text: a test runs the same commands and compares it with what they
print. That of the report is taken in Chromium; the text of the page is kept in the file, for the
same test. Numbers and times count for nothing in the comparison.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr
from html import escape, unescape
from pathlib import Path
from typing import Any

from pytest_regen.cli.app import app
from pytest_regen.emulator import Emulator

__all__ = [
    "COMMAND",
    "IMAGES",
    "SCENES",
    "comparable",
    "picture_of_page",
    "picture_of_screen",
    "printed_text",
    "shown_text",
    "text_of_png",
    "text_of_screen",
]

COMMAND = "python tools/pictures.py"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
COLUMNS = 56
"""So that letters can be read on a telephone, where a picture is 390 pixels wide."""

_SOURCE = '''\
def initials(name: str) -> str:
    """Return the initials of ``name``.

    >>> initials("Ada Lovelace")
    'A.L.'
    >>> initials("")
    \'\'
    """
    return ".".join(w[0] for w in name.split()) + "."
'''
_REPLY = '```python\n    return "".join(f"{w[0]}." for w in name.split())\n```'

_MORE = {
    "src/acme/prices.py": '''\
def in_cents(price: str) -> int:
    """Return a price in cents.

    >>> in_cents("12.50")
    1250
    """
    euros, _, cents = price.partition(".")
    return int(euros) * 100 + int(cents.ljust(2, "0"))
''',
    "locales/en.json": '{"bye": "Goodbye", "greeting": "Hello, {name}!", "thanks": "Thank you"}\n',
    "locales/de.json": '{"bye": "Tschüss", "greeting": "Hallo, {nam}!", "thanks": "Danke"}\n',
}
_TRANSLATIONS = """
[[tool.pytest-regen.translations]]
source = "locales/en.json"
targets = "locales/*.json"
"""
"""With these the report has more: a function that passes, and a catalogue with a fault."""


def _reply(body: dict[str, Any], **_: Any) -> str:
    """Answer in the place of a model: the function rightly, the catalogue as wrongly as before."""
    return _REPLY if "initials" in str(body["messages"]) else '"Hallo, {namen}!"'


_LEFT_OUT = re.compile(r"=+ test session starts|collect(?:ing|ed) |sandbox: |emulated: ")
"""Lines that say nothing, or depend on the machine: here the emulator plays the model."""


_NOT_OF_USERS = {"CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "NO_COLOR"}


# -- scenes


@contextmanager
def _project(folder: Path) -> Iterator[Callable[..., str]]:
    """Make the project of the first example; yield what runs a command at its terminal."""
    source = folder / "src" / "acme" / "names.py"
    source.parent.mkdir(parents=True)
    source.write_text(_SOURCE, "utf-8")
    with Emulator(_reply) as emulator:
        env = {name: value for name, value in os.environ.items() if name not in _NOT_OF_USERS}
        env |= {
            "ANTHROPIC_BASE_URL": emulator.base_url,
            "ANTHROPIC_API_KEY": "sk-ant-emulated",
            "COLUMNS": str(COLUMNS),
            "LINES": "50",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTEST_ADDOPTS": "--no-header --color=yes -p no:cacheprovider -p no:syrupy -p no:xdist"
            " -p no:anyio -p no:hypothesispytest -p no:cov",
        }

        def run(*words: str, typed: str = "") -> str:
            return _at_terminal(words, folder, env, typed)

        _quietly(folder, "init", "src/acme/names.py", "--yes")
        yield run


def _quietly(folder: Path, *words: str) -> None:
    """Run a command of ours in this process: it is faster, and no part of a picture."""
    with chdir(folder), redirect_stderr(io.StringIO()):
        app(list(words), standalone_mode=False)


def heal(folder: Path) -> str:
    """A function that fails its doctest, and the run that heals it."""
    with _project(folder) as run:
        red = run("pytest")
        green = run("pytest", "--regen", "--regen-record", "once")
    return f"{_typed('pytest')}{red}\n\n{_typed('pytest --regen --regen-record once')}{green}"


def review(folder: Path) -> str:
    """A candidate that waits, looked at and accepted."""
    with _project(folder) as run:
        run("pytest", "--regen", "--regen-pending", "--regen-record", "once")
        seen = run("pytest-regen", "review", typed="a\n")
    return f"{_typed('pytest-regen review')}{seen}"


def _typed(command: str) -> str:
    return f"\x1b[1m$ {command}\x1b[0m\n"


def report(folder: Path) -> str:
    """The report of a run that heals one unit and cannot heal another, as HTML."""
    with _project(folder) as run:
        for name, text in _MORE.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        with (folder / "pyproject.toml").open("a") as settings:
            settings.write(_TRANSLATIONS)
        _quietly(folder, "adopt", "src/acme/prices.py::in_cents")
        _quietly(folder, "adopt", "locales/de.json")
        run("pytest", "--regen", "--regen-record", "once", "--regen-report", "report.html")
    return (folder / "report.html").read_text("utf-8")


def _at_terminal(words: tuple[str, ...], folder: Path, env: Mapping[str, str], typed: str) -> str:
    """Run a command at a terminal and return what is seen there.

    Raises:
        TimeoutError: it takes longer than two minutes; it may wait for another key.
    """
    import pty  # not on Windows

    program = {"pytest": ["-m", "pytest"], "pytest-regen": ["-m", "pytest_regen"]}[words[0]]
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, *program, *words[1:]],
        cwd=folder,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    watch = threading.Timer(120, running.kill)
    watch.start()
    os.write(ours, typed.encode())
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux's way to say that nobody holds the other end any more
            break
        if not chunk:
            break
        seen += chunk
    watch.cancel()
    os.close(ours)
    if running.wait() < 0:
        raise TimeoutError(f"{' '.join(words)} did not end: {seen[-500:]!r}")
    lines = seen.decode().replace("\r\n", "\n").splitlines()
    # What was typed is echoed by the terminal, not said by the command.
    printed = [line.rpartition("\r")[2] for line in lines if not typed or line != typed.strip()]
    return "\n".join(line for line in printed if not _LEFT_OUT.search(_PLAIN.sub("", line)))


_PLAIN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""Sequences that colour, move or link."""


# -- pictures of a terminal

_SIZE = 13
_WIDTH, _HEIGHT = 7.8, 18
"""Of a character, in pixels; each run of text is stretched to it, whatever font there is."""
_MARGIN = 10
_STYLE = (
    f"text{{font:{_SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#d8dee9;white-space:pre}.b{font-weight:700}"
)


def picture_of_screen(screen: str, title: str) -> str:
    """Return a picture of what a terminal shows, in the colours it has there."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=4 * COLUMNS, color_system="truecolor", file=io.StringIO())
    lines = [
        part
        for line in _stripped(screen).split("\n")
        for part in Text.from_ansi(_settled(line)).wrap(console, COLUMNS) or [Text()]
    ]
    marks = []
    for row, line in enumerate(lines):
        at, y = 0, _MARGIN + _SIZE + row * _HEIGHT
        for segment in line.render(console):
            piece = segment.text.rstrip("\n")
            text = piece.strip()
            if text:
                start = at + len(piece) - len(piece.lstrip())
                marks.append(_run(text, start, y, segment.style))
            at += len(piece)
    width = round(COLUMNS * _WIDTH + 2 * _MARGIN)
    height = len(lines) * _HEIGHT + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#1f2430"/>\n'
        + "\n".join(marks)
        + "\n</svg>\n"
    )


_COLOURS = {1: "#ff7b72", 2: "#7ee787", 3: "#f2cc60", 4: "#79c0ff", 5: "#d2a8ff", 6: "#76e3ea"}


def _run(text: str, start: int, y: int, style: Any) -> str:
    colour = style.color if style else None
    number = None if colour is None else colour.number
    fill = "" if number is None else _COLOURS.get(number % 8, "")
    if colour is not None and colour.triplet is not None:
        fill = colour.triplet.hex
    dim = ' opacity=".7"' if style and style.dim else ""
    bold = ' class="b"' if style and style.bold else ""
    paint = f' fill="{fill}" style="fill:{fill}"' if fill else ""
    words = escape(text).replace("  ", "\u00a0\u00a0")
    return (
        f'<text x="{_MARGIN + start * _WIDTH:g}" y="{y}" textLength="{len(text) * _WIDTH:g}"'
        f"{bold}{paint}{dim}>{words}</text>"
    )


def _stripped(screen: str) -> str:
    """Return a screen without blank lines at its ends, and never two of them in a row."""
    lines: list[str] = []
    for line in screen.split("\n"):
        is_blank = not _PLAIN.sub("", line).strip()
        if not is_blank or (lines and _PLAIN.sub("", lines[-1]).strip()):
            lines.append("" if is_blank else line)
    return "\n".join(lines).strip("\n")


def _settled(line: str) -> str:
    """Return a line with the same time in every run, as long as it was."""
    settled = re.sub(r"in \d+\.\d\ds", "in 0.42s", line)
    settled = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-11-22T23:06:57Z", settled)
    shorter = len(line) - len(settled)
    return re.sub(r"={3,}", lambda rule: rule[0] + "=" * shorter, settled, count=1)


def text_of_screen(svg: str) -> str:
    """Return the lines of text in a picture of a terminal."""
    rows: dict[int, list[str]] = {}
    for y, text in re.findall(r'<text x="[^"]*" y="(\d+)"[^>]*>([^<]*)</text>', svg):
        rows.setdefault(int(y), []).append(unescape(text).replace("\u00a0", " "))
    return "\n".join(" ".join(parts) for _, parts in sorted(rows.items()))


# -- pictures of a page

_KEY = b"pytest-regen text\0"


_OPEN = (
    "const d = [...document.querySelectorAll('details')]"
    ".find(d => d.innerText.startsWith('Conversation')); if (d) d.open = true"
)


def picture_of_page(html: str, width: int, height: int) -> bytes:
    """Return a picture of a page in Chromium, with the text of the page in it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = shutil.which("chromedriver")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        page.write_text(html, "utf-8")
        browser = webdriver.Chrome(options, Service(driver))
        try:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(page.as_uri())
            # The first conversation is what people look for.
            browser.execute_script(_OPEN)
            picture = browser.get_screenshot_as_png()
        finally:
            browser.quit()
    text = _text_of_html(html).encode("latin-1", "replace")
    note = _chunk(b"zTXt", _KEY + b"\0" + zlib.compress(text, 9))
    end = _chunk(b"IEND", b"")
    return _smaller(picture).removesuffix(end) + note + end


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + kind + data + check


_COLOURS_OF_PALETTE = 256


def _smaller(png: bytes) -> bytes:
    """Return the picture with a palette, as a page has few colours: a third of the bytes."""
    chunks = dict(_chunks(png))
    width, height = (int.from_bytes(chunks[b"IHDR"][at : at + 4], "big") for at in (0, 4))
    channels = {2: 3, 6: 4}[chunks[b"IHDR"][9]]
    data = b"".join(data for kind, data in _chunks(png) if kind == b"IDAT")
    rows = list(_pixel_rows(zlib.decompress(data), width * channels, channels))
    pixels = [[row[at : at + 3] for at in range(0, len(row), channels)] for row in rows]
    counts = Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in counts.most_common(_COLOURS_OF_PALETTE)]
    nearest = {
        colour: min(
            range(len(palette)),
            key=lambda index: sum(
                (a - b) ** 2 for a, b in zip(palette[index], colour, strict=True)
            ),
        )
        for colour in counts
    }
    packed = b"".join(b"\0" + bytes(nearest[pixel] for pixel in row) for row in pixels)
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 3, 0, 0, 0))
    parts = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(packed, 9)))
    return png[:8] + b"".join(_chunk(*part) for part in (*parts, (b"IEND", b"")))


def _pixel_rows(data: bytes, length: int, channels: int) -> Iterator[bytes]:
    """Yield the rows of a picture, their filters undone (PNG specification, 9)."""
    above = bytearray(length)
    for start in range(0, len(data), length + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + length])
        for at, byte in enumerate(row):
            left = row[at - channels] if at >= channels else 0
            up = above[at]
            match kind:
                case 0:
                    break
                case 1:
                    guess = left
                case 2:
                    guess = up
                case 3:
                    guess = (left + up) // 2
                case _:
                    corner = above[at - channels] if at >= channels else 0
                    near = left + up - corner
                    guess = min((left, up, corner), key=lambda value: abs(near - value))
            row[at] = (byte + guess) & 255
        above = row
        yield bytes(row)


def text_of_png(png: bytes) -> str:
    """Return the text of the page that a picture shows."""
    for kind, data in _chunks(png):
        if kind == b"zTXt" and data.startswith(_KEY):
            return zlib.decompress(data[len(_KEY) + 1 :]).decode("latin-1")
    return ""


def _text_of_html(html: str) -> str:
    """Return the words of a page, line by line."""
    body = re.sub(r"<(style|script|title)\b.*?</\1>", "", html, flags=re.DOTALL)
    lines = (" ".join(unescape(part).split()) for part in re.split(r"<[^>]*>", body))
    return "\n".join(filter(None, lines)).encode("latin-1", "replace").decode("latin-1")


# -- all of them

SCENES: Mapping[str, Callable[[Path], str]] = {"heal": heal, "review": review, "report": report}
_TITLES = {
    "heal": "pytest fails on a doctest of a function; pytest --regen heals it and shows the diff",
    "review": "pytest-regen review shows a candidate and asks what becomes of it",
}


def picture(name: str) -> Path:
    """Return the file of a scene."""
    return IMAGES / f"{name}.{'png' if name == 'report' else 'svg'}"


def shown_text(name: str) -> str:
    """Return the text in the picture of a scene."""
    file = picture(name)
    if file.suffix == ".png":
        return text_of_png(file.read_bytes())
    return text_of_screen(file.read_text("utf-8"))


def printed_text(name: str, seen: str) -> str:
    """Return the text of what a scene has just shown."""
    return _text_of_html(seen) if name == "report" else text_of_screen(picture_of_screen(seen, ""))


def comparable(text: str) -> str:
    """Return a text without its numbers, and without the line ends that depend on their length."""
    text = re.sub(r"\b[0-9a-f]{8}\b", "ID", text)
    text = re.sub(r"\d[\d,.:TZ-]*", "N", text)
    return " ".join(re.sub(r"={3,}|─{3,}", "", text).split())


def main(names: list[str]) -> None:
    """Write the pictures that are named, or all."""
    for name in names or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            seen = SCENES[name](Path(folder))
        file = picture(name)
        if file.suffix == ".png":
            file.write_bytes(picture_of_page(seen, 450, 1400))
        else:
            file.write_text(picture_of_screen(seen, _TITLES[name]), "utf-8")
        print(f"{file.relative_to(IMAGES.parents[1])}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
