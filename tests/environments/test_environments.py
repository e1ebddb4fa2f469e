"""Suites with pins of their own: the package installs beside them, records, and replays.

Each has a virtual environment made from a package index, the wheel of this checkout in it, and the
versions that a public suite has locked. A loopback server stands for the network.
"""

import os
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_regen.emulator import Emulator

pytestmark = [pytest.mark.environments, pytest.mark.sweep]

uv = pytest.importorskip("uv", reason="uv makes the virtual environments")

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "tests" / "cassettes" / "test_vcrpy_contract.py"
OUTSIDE = dict(os.environ)
"""As the run was started: the tests' own settings know no proxy and no certificate."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def oldest(requirements: Iterable[str]) -> list[str]:
    """Return requirements, each pinned to the oldest release it takes."""
    return [one.replace(">=", "==") for one in requirements]


PINS = {
    "newest, core only": [],
    "oldest core": oldest(PROJECT["dependencies"]),
    "magentic": [
        "anthropic==0.42.0",
        "aiohttp==3.11.0",
        "filelock==3.16.1",
        "openai==1.109.1",
        "pluggy==1.5.0",
        "pydantic==2.10.4",
        "pytest==8.3.3",
        "pyyaml==6.0.2",
        "rich==13.9.4",
        "vcrpy==6.0.2",
    ],
    "the oldest SDK, vcrpy 7": ["anthropic==0.40.0", "aiohttp<3.14", "requests", "vcrpy==7.0.0"],
    "pyobis": ["requests", "urllib3==1.26.20"],
    "openllmetry's anthropic package": [
        "anthropic==0.86.0",
        "pluggy==1.6.0",
        "pydantic==2.12.5",
        "pytest==8.4.2",
        "pytest-asyncio>=0.23.7,<0.24",
        "pytest-sugar==1.0.0",
        "vcrpy==8.1.1",
    ],
    "pydantic-ai": [
        "aiohttp==3.14.1",
        "anthropic==1.0.0",
        "filelock==3.20.3",
        "openai==3.0.0",
        "pydantic==2.13.4",
        "pytest==9.1.1",
        "rich==14.2.0",
        "typer==0.19.2",
        "vcrpy==8.2.1",
    ],
}
"""What public suites have locked (November 2026), and the ends of what we ask for."""

SUITE = """
    import json
    import os
    import urllib.request
    from importlib.util import find_spec

    import pytest

    MODEL = "claude-sonnet-5-5"
    needs_anthropic = pytest.mark.skipif(not find_spec("anthropic"), reason="not pinned")
    needs_openai = pytest.mark.skipif(not find_spec("openai"), reason="not pinned")
    needs_aiohttp = pytest.mark.skipif(not find_spec("aiohttp"), reason="not pinned")
    needs_requests = pytest.mark.skipif(not find_spec("requests"), reason="not pinned")
    URL = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    HEADERS = {
        "content-type": "application/json",
        "x-api-key": os.environ["ANTHROPIC_API_KEY"],
        "anthropic-version": "2023-06-01",
    }

    def body(text):
        return {
            "model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": text}]
        }

    def by_urllib():
        request = urllib.request.Request(URL, json.dumps(body("a")).encode(), HEADERS)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["content"][-1]["text"]

    def by_requests():
        import requests
        return requests.post(URL, json=body("b"), headers=HEADERS).json()["content"][-1]["text"]

    def by_aiohttp():
        import asyncio
        import aiohttp
        async def ask():
            async with aiohttp.ClientSession() as session:
                async with session.post(URL, json=body("c"), headers=HEADERS) as answer:
                    return (await answer.json())["content"][-1]["text"]
        return asyncio.run(ask())

    def by_anthropic():
        import anthropic
        with anthropic.Anthropic() as client:
            return client.messages.create(**body("d")).content[-1].text

    def by_openai():
        # The answer is not one of this API; what counts is that the same comes back.
        import openai
        client = openai.OpenAI(
            base_url=os.environ["ANTHROPIC_BASE_URL"] + "/v1", api_key="planted", max_retries=0
        )
        with client, pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(model="m", messages=body("f")["messages"])
        return str(caught.value.body)

    WAYS = [
        by_urllib,
        pytest.param(by_requests, marks=needs_requests),
        pytest.param(by_aiohttp, marks=needs_aiohttp),
        pytest.param(by_anthropic, marks=needs_anthropic),
        pytest.param(by_openai, marks=needs_openai),
    ]

    @pytest.fixture(scope="module")
    def vcr_config():
        return {"filter_headers": ["x-api-key", "authorization"]}

    @pytest.mark.parametrize("ask", WAYS)
    def test_fixture(cassette, ask):
        assert ask()

    @pytest.mark.vcr
    @pytest.mark.parametrize("ask", WAYS)
    def test_mark(ask):
        assert ask()

    @needs_requests
    @pytest.mark.vcr
    def test_over_tls():
        # Played from a file of another recorder: there is no server for it.
        import requests
        assert requests.get("https://api.example/hives").json()["hives"]

    @needs_anthropic
    @pytest.mark.parametrize("limit", [99, 30_000], ids=["whole", "stream"])
    def test_provider(cassette, limit):
        from pytest_regen import AnthropicProvider, TurnRequest
        from pytest_regen.turns import Message

        schema = {
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": False,
        }
        reply = AnthropicProvider().send(
            TurnRequest("s", (Message("user", "g"),), MODEL, limit, response_schema=schema)
        )
        assert reply.text
        assert reply.usage.output_tokens

"""


OVER_TLS = """
interactions:
- request: {method: GET, uri: 'https://api.example/hives', headers: {}, body: null}
  response:
    status: {code: 200, message: OK}
    headers: {content-type: [application/json]}
    body: {string: '{"hives": [3]}'}
version: 1
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout; the tests skip where no package index can be reached."""
    there = run_uv("pip", "compile", "-", "--no-header", given="hatchling\n")
    if there.returncode:
        pytest.skip(f"no package index can be reached: {there.stderr.strip()[-200:]}")
    folder = tmp_path_factory.mktemp("wheel")
    built = run_uv("build", "--wheel", "--quiet", "--out-dir", str(folder), str(ROOT))
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


def run_uv(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run uv with the environment that the tests were started in."""
    command = [uv.find_uv_bin(), *words]
    return subprocess.run(
        command, env=OUTSIDE, input=given, check=False, capture_output=True, text=True
    )


def environment(folder: Path, wheel: Path, pins: Sequence[str]) -> Path:
    """Make a virtual environment and return its interpreter."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    made = run_uv("venv", "--quiet", "--python", sys.executable, str(folder))
    assert made.returncode == 0, made.stderr
    installed = run_uv("pip", "install", "--quiet", "--python", str(python), str(wheel), *pins)
    assert installed.returncode == 0, installed.stderr
    return python


def run_in(folder: Path, python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module of an environment."""
    command = [str(python), "-m", *words]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("pins", PINS.values(), ids=list(PINS))
def test_it_installs_records_and_replays(tmp_path: Path, wheel: Path, pins: list[str]) -> None:
    """No pinned version moves; what was recorded through each client comes back offline."""
    python = environment(tmp_path / "venv", wheel, pins)
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    (suite / "test_suite.py").write_text(textwrap.dedent(SUITE), "utf-8")
    file = suite / "cassettes" / "test_suite" / "test_over_tls.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(OVER_TLS.lstrip(), "utf-8")
    there = {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk-ant-planted-0123456789"}

    def runs(*options: str) -> str:
        words = [str(python), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *options]
        done = subprocess.run(
            words, cwd=suite, env=there, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return done.stdout.splitlines()[-1].rpartition(" in ")[0]

    with Emulator(lambda _body: '{"a": "reply"}') as emulator:
        there["ANTHROPIC_BASE_URL"] = emulator.base_url
        recorded = runs("--regen-record", "once")
        asked = len(emulator.requests)
    replayed = runs()

    assert asked >= 2
    assert replayed == recorded
    assert "planted" not in "".join(path.read_text("utf-8") for path in suite.rglob("*.yaml"))
    runs("--noconftest", "-c", os.devnull, "--rootdir", str(suite), str(CONTRACT))


def test_the_oldest_are_what_is_asked_for(tmp_path: Path, wheel: Path) -> None:
    """Of every command the help, a check of recordings, and the contract of providers."""
    extras = PROJECT["optional-dependencies"]
    oldest_extras = oldest([*extras["cli"], *extras["anthropic"], *extras["openai"]])
    pins = [*PINS["oldest core"], *oldest_extras, "genai-prices", "hypothesis"]
    python = environment(tmp_path / "venv", wheel, pins)
    tests = ROOT / "tests" / "turns" / "test_chat_providers.py"
    support = ROOT / "tests" / "support"
    apart = ["--noconftest", "-c", os.devnull, "--rootdir", str(tmp_path)]

    for words in (
        ["pytest_regen", "--help"],
        ["pytest_regen", "generate", "--help"],
        ["pytest_regen", "cassettes", "check", str(ROOT / "cassettes")],
        ["pytest_regen", "cassettes", "show", str(ROOT / "cassettes" / "talk.yaml")],
        ["pytest", *apart, "-p", "no:cacheprovider", "-o", f"pythonpath={support}", str(tests)],
    ):
        done = run_in(tmp_path, python, *words)
        assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-2000:])
        assert "skipped" not in done.stdout


def test_an_sdk_that_is_too_old_is_named(tmp_path: Path, wheel: Path) -> None:
    """With its version and the line that installs another."""
    python = environment(tmp_path / "venv", wheel, ["anthropic==0.39.0"])
    (tmp_path / "asks.py").write_text(
        "from pytest_regen import AnthropicProvider, TurnRequest\n"
        "from pytest_regen.turns import Message\n"
        "provider = AnthropicProvider(api_key='planted', base_url='http://127.0.0.1:9')\n"
        "provider.send(TurnRequest('', (Message('user', 'x'),), 'm', 9))\n",
        "utf-8",
    )

    done = run_in(tmp_path, python, "asks")

    assert "MissingExtraError: the package anthropic 0.39.0 is too old" in done.stderr
    assert "next: pip install --upgrade 'pytest-regen[anthropic]'" in done.stderr
