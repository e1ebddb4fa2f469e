"""Suites with pins of their own: the package installs beside them, records, and replays.

Each has a virtual environment made from a package index, the wheel of this checkout in it, and the
versions that a public suite has locked. A loopback server stands for the network.
"""

import os
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import httpx2
import pytest
from clarifying_service import (
    EXAMPLE,
    MESSAGE,
    PLACE,
    WRITTEN,
    Model,
    clarifying_service,
    second_turn,
)

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


OLDEST_COMMANDS = oldest(PROJECT["optional-dependencies"]["cli"])
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

    def by_anthropic_stream():
        import asyncio
        import anthropic
        async def ask():
            async with anthropic.AsyncAnthropic() as client:
                async with client.messages.stream(**body("e")) as stream:
                    return await stream.get_final_text()
        return asyncio.run(ask())

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
        pytest.param(by_anthropic_stream, marks=needs_anthropic),
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

    def test_session():
        from pydantic import BaseModel
        from pytest_regen import CallableProvider, GeneratorSession

        class Answer(BaseModel):
            a: int

        model = CallableProvider(lambda messages: '{"a": 1}')
        assert GeneratorSession("s", Answer, provider=model).ask("x") == Answer(a=1)
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
    """Commands, too: of every command the help, and a check of recordings."""
    python = environment(tmp_path / "venv", wheel, [*PINS["oldest core"], *OLDEST_COMMANDS])
    command = [str(python), "-m", "pytest_regen"]

    for words in (
        ["--help"],
        ["generate", "--help"],
        ["cassettes", "check", str(ROOT / "cassettes")],
        ["cassettes", "show", str(ROOT / "cassettes" / "talk.yaml")],
    ):
        done = subprocess.run([*command, *words], check=False, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stderr[-2000:])


OLDEST_SDKS = [
    name
    for extra in ("anthropic", "openai")
    for name in oldest(PROJECT["optional-dependencies"][extra])
]
SUPPORT = ROOT / "tests" / "support"


def test_providers_keep_their_contract(tmp_path: Path, wheel: Path) -> None:
    """With the oldest SDKs that are asked for."""
    python = environment(tmp_path / "venv", wheel, [*OLDEST_SDKS, "genai-prices", "hypothesis"])
    words = ["-m", "pytest", "-q", "--noconftest", "-c", os.devnull, "--rootdir", str(tmp_path)]
    tests = ROOT / "tests" / "turns" / "test_chat_providers.py"

    done = subprocess.run(
        [str(python), *words, "-p", "no:cacheprovider", "-o", f"pythonpath={SUPPORT}", str(tests)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "skipped" not in done.stdout


def test_the_clarifying_agent_is_installed_from_the_wheel(tmp_path: Path, wheel: Path) -> None:
    """Its folder installs beside the wheel; its tests replay there, and its endpoint answers."""
    example = tmp_path / "clarifying_agent"
    shutil.copytree(EXAMPLE, example)
    python = environment(tmp_path / "venv", wheel, [str(example)])
    words = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]

    done = subprocess.run(
        words, cwd=example, env=OUTSIDE, check=False, capture_output=True, text=True
    )
    with clarifying_service(Model(PLACE), example, str(python)) as address:
        path = f"{address}/api/agents/generate-subject"
        asked = httpx2.post(path, json={"message": MESSAGE}, timeout=60).json()
        written = httpx2.post(path, json=second_turn(asked, {"location": "Berlin"}), timeout=60)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert asked["clarification_questions"] == [PLACE]
    assert written.json()["subject_line"] == WRITTEN["subject_line"]


def test_an_sdk_that_is_too_old_is_named(tmp_path: Path, wheel: Path) -> None:
    """With its version and the line that installs another."""
    python = environment(tmp_path / "venv", wheel, ["anthropic==0.39.0"])
    code = (
        "from pytest_regen import AnthropicProvider, TurnRequest\n"
        "from pytest_regen.turns import Message\n"
        "provider = AnthropicProvider(api_key='planted', base_url='http://127.0.0.1:9')\n"
        "provider.send(TurnRequest('', (Message('user', 'x'),), 'm', 9))\n"
    )

    done = subprocess.run([str(python), "-c", code], check=False, capture_output=True, text=True)

    assert "MissingExtraError: the package anthropic 0.39.0 is too old" in done.stderr
    assert "next: pip install --upgrade 'pytest-regen[anthropic]'" in done.stderr
