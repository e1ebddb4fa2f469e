"""What is used without its extra says the one line that installs it; all else works without."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tables import each

ROOT = Path(__file__).parents[2]
STORE = ROOT / "examples" / "csharp_dto" / "generated" / "GET_v1_tides"
BLOCKED = (
    "import sys\n"
    "for name in ('anthropic', 'genai_prices', 'polib', 'tree_sitter', 'tree_sitter_c_sharp'):\n"
    "    sys.modules[name] = None\n"
)
"""Makes a process one in which no extra but that of commands is installed."""
WITHOUT_COMMANDS = "for name in ('rich', 'tomlkit', 'typer'):\n    sys.modules[name] = None\n"

USES = """
import asyncio, json, os
from pathlib import Path
import pytest_regen as regen
from pytest_regen.context import Sealer
from pytest_regen.errors import MissingExtraError
from pytest_regen.kinds.translation import translation_kinds
from pytest_regen.turns import Message

message = Message("user", "x")
request = regen.TurnRequest("", (message,), "m", 9)
os.environ["ANTHROPIC_API_KEY"] = "sk-ant-test"
ir = json.loads(Path(STORE, "ir.json").read_text("utf-8"))
provider = regen.AnthropicProvider(base_url="http://127.0.0.1:1")
Sealer({"1": os.urandom(32)})  # needs none
for extra, use in [
    ("openapi", lambda: regen.read_document(Path("api.yaml"))),
    ("translations", lambda: translation_kinds([{"targets": "po/*.po"}], Path())),
    ("anthropic", lambda: provider.send(request)),
    ("anthropic", lambda: asyncio.run(provider.asend(request))),
]:
    try:
        use()
    except MissingExtraError as error:
        assert error.extra == extra, (extra, error)
        assert f"next: pip install 'pytest-regen[{extra}]'" in str(error), error
    else:
        raise SystemExit(f"nothing was missed for {extra}")
print("done")
"""


def test_the_article_about_extras_lists_each() -> None:
    """And the benchmarks have its size; what contributors need is in neither."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"all", "docs", "test"}
    article = (ROOT / "docs" / "how-to" / "install-less.md").read_text("utf-8")
    sizes = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")

    assert set(re.findall(r"^\| `(\w+)` \|", article, re.MULTILINE)) == extras
    assert set(re.findall(r"^\| `pytest-regen\[(\w+)\]` \|", sizes, re.MULTILINE)) == {
        *extras,
        "all",
    }


def without_extras(code: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a process in which no extra but that of commands is installed."""
    words = [sys.executable, "-c", BLOCKED + code]
    return subprocess.run(words, cwd=cwd or ROOT, check=False, capture_output=True, text=True)


def without_commands(*words: str) -> str:
    """Return code that runs a command where that extra is missing, too."""
    run = f"sys.argv[1:] = {list(words)!r}\nfrom pytest_regen.__main__ import main\nmain()\n"
    return WITHOUT_COMMANDS + run


EVERY_NAME = "import pytest_regen\nfor name in pytest_regen.__all__: getattr(pytest_regen, name)\n"
A_PRICE = """
from pytest_regen.turns import Usage, cost_of, describe_usage
usage = Usage(input_tokens=12, output_tokens=3)
assert cost_of(usage, "claude-sonnet-5-5") is None
assert describe_usage(usage, "claude-sonnet-5-5") == "12 in, 3 out"
"""
COMMANDS_OF_OURS = """
from pytest_regen.cli.app import COMMANDS, main
for words in [*([name, "--help"] for name in COMMANDS), *WORDS]:
    try:
        main(words)
    except SystemExit as end:
        assert not end.code or "--help" not in words, words
        if "--help" not in words:
            print("exit", end.code, file=sys.stderr)
"""
WORDS = [
    ["cassettes", "check", "cassettes"],
    ["cassettes", "show", "cassettes/talk.yaml"],
    ["generate", "examples/csharp_dto/api.yaml", "GET /v1/tides", "--dry-run"],
    ["validate", "examples/csharp_dto/generated/GET_v1_tides", "--json"],
]


@each(
    ("code", "exit_code", "said"),
    [
        (WITHOUT_COMMANDS + EVERY_NAME, 0, []),
        (without_commands("cassettes", "check"), 2, ["next: pip install 'pytest-regen[cli]'"]),
        (
            f"{A_PRICE}WORDS = {WORDS}\n{COMMANDS_OF_OURS}",
            0,
            ["exit 0", "exit 0", *2 * ("next: pip install 'pytest-regen[openapi]'", "exit 2")],
        ),
    ],
)
def test_what_works_without_extras(code: str, exit_code: int, said: list[str]) -> None:
    """Names, prices, help and recordings do; a command that needs one says the line."""
    done = without_extras(code)

    assert done.returncode == exit_code, done.stderr
    assert re.findall(r"next: pip.*|exit \d", done.stderr) == said
    assert "Traceback" not in done.stderr


def test_each_use_names_its_extra(tmp_path: Path) -> None:
    """Documents, generated code, the server, and turns with the API."""
    (tmp_path / "api.yaml").write_text(
        "openapi: 3.0.0\ninfo: {title: t, version: '1'}\npaths: {}\n", "utf-8"
    )

    done = without_extras(f"STORE = {str(STORE)!r}\n{USES}", cwd=tmp_path)

    assert done.stdout == "done\n", done.stderr


def test_a_gate_that_cannot_read_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """Said once, not for each type, and before any test runs."""
    shutil.copytree(STORE, pytester.path / "generated" / "GET_v1_tides")
    pytester.makeini("[pytest]\nregen_stores = generated/*\n")
    pytester.makeconftest(BLOCKED)

    result = pytester.runpytest_subprocess()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*next: pip install 'pytest-regen*openapi*'"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_cassettes_and_vcr_need_no_extra(pytester: pytest.Pytester) -> None:
    """The fixture, the mark, and sessions with a model of one's own."""
    pytester.makeconftest(BLOCKED + WITHOUT_COMMANDS)
    pytester.makepyfile(
        """
        import pytest
        from pydantic import BaseModel
        from pytest_regen import CallableProvider, GeneratorSession

        class Answer(BaseModel):
            a: int

        def test_a(cassette):
            assert cassette.unplayed == 0

        @pytest.mark.vcr
        def test_b(vcr):
            assert vcr.play_count == 0

        def test_c():
            model = CallableProvider(lambda messages: '{"a": 1}')
            assert GeneratorSession("s", Answer, provider=model).ask("x")
        """
    )

    pytester.runpytest_subprocess().assert_outcomes(passed=3)
