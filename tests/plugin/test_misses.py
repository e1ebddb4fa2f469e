"""A request that nobody recorded: told at once and as what it is, whatever client made it."""

import os
import textwrap

import pytest
from plugin_project import Project

from pytest_regen.emulator import Emulator

MESSAGE = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}

CLIENTS = f"""
    import contextlib
    import http.client
    import json
    import time
    import anthropic
    import httpx2
    import pytest
    import urllib3

    BASE = "http://127.0.0.1:9"
    MESSAGE = {MESSAGE!r}
    BODY = json.dumps(MESSAGE)

    def sdk(retries=5):
        with anthropic.Anthropic(api_key="x", base_url=BASE, max_retries=retries) as client:
            client.messages.create(**MESSAGE)

    def plain_httpx2():
        httpx2.post(BASE + "/v1/messages", json=MESSAGE)

    def retrying_urllib3():
        retry = urllib3.Retry(5, backoff_factor=1, allowed_methods=None)
        with urllib3.PoolManager(retries=retry) as pool:
            pool.request("POST", BASE + "/v1/messages", body=BODY)

    def standard_library():
        connection = http.client.HTTPConnection("127.0.0.1", 9)
        connection.request("POST", "/v1/messages", BODY)
        connection.getresponse()

    CLIENTS = [sdk, retrying_urllib3]
"""

WAITLESS = """
    @pytest.fixture(autouse=True)
    def waitless(monkeypatch):
        def sleep(seconds):
            assert not seconds

        monkeypatch.setattr(time, "sleep", sleep)
"""

MARKED = """
    @pytest.mark.vcr
    @pytest.mark.parametrize("client", CLIENTS)
    def test_marked(client):
        client()

    @pytest.mark.vcr
    @pytest.mark.parametrize("client", CLIENTS)
    def test_swallowed(client):
        with contextlib.suppress(BaseException):
            client()

    @pytest.mark.parametrize("client", CLIENTS)
    def test_fixture(client, cassette):
        client()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project without stores and without recordings."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    return project


def write(project: Project, *parts: str) -> None:
    """Write the only module of the project."""
    project.pytester.makepyfile(test_m="\n".join(textwrap.dedent(part) for part in parts))


def reasons(result: pytest.RunResult, word: str = "FAILED") -> list[str]:
    """Return what the lines of the short summary say after the test's name."""
    lines = [line for line in result.outlines if line.startswith(f"{word} ")]
    return [line.partition(" - ")[2] for line in lines]


def misses(result: pytest.RunResult) -> list[str]:
    """Return the lines at the end of the run about misses."""
    return [line for line in result.outlines if line.startswith("miss: ")]


def test_every_client_is_told_once_and_waits_for_nothing(project: Project) -> None:
    """No sleep, our message in the summary line; the same for mark and fixture.

    A client that is given vcrpy's exception may ask again, but at once. A test that swallows it
    goes on, as there.
    """
    write(project, CLIENTS, WAITLESS, MARKED)

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=4, passed=2)
    assert [said for said in reasons(result) if not said.startswith("no cassette at ")] == []


WAYS = """
    @pytest.mark.vcr
    def test_wrapped():
        try:
            sdk(0)
        except BaseException as error:
            raise RuntimeError("the agent failed") from error

    @pytest.mark.vcr
    @pytest.mark.filterwarnings("ignore")
    def test_thread():
        import threading
        thread = threading.Thread(target=sdk, args=[0])
        thread.start()
        thread.join()

    @pytest.fixture
    def hidden(vcr):
        with contextlib.suppress(BaseException):
            sdk(0)

    @pytest.mark.vcr
    def test_hidden(hidden):
        pass

    @pytest.fixture(params=["vcr", "cassette"])
    def late(request):
        request.getfixturevalue(request.param)
        yield
        standard_library()

    @pytest.mark.vcr
    def test_late(late):
        pass

    @pytest.fixture
    def late_and_quiet(cassette):
        yield
        with contextlib.suppress(BaseException):
            standard_library()

    @pytest.mark.vcr
    def test_late_and_quiet(late_and_quiet):
        pass

    def test_the_next_is_not_concerned():
        assert http.client.HTTPConnection.__module__ == "http.client"
"""


def test_a_miss_is_told_wherever_it_happened(project: Project) -> None:
    """Wrapped, in a thread, while fixtures are set up or end; where nobody failed, at the end.

    All fixtures end: no cassette stays in use for the tests behind.
    """
    write(project, CLIENTS, WAYS)

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=1, errors=2, passed=6)
    told = reasons(result) + reasons(result, "ERROR")
    assert [said[:15] for said in told] == ["no cassette at "] * 3
    listed = {line.split("::")[1].split("[")[0].split(":")[0] for line in misses(result)}
    assert listed == {"test_thread", "test_hidden", "test_late", "test_late_and_quiet"}


OUTCOMES = """
    import unittest
    from vcr.errors import CannotOverwriteExistingCassetteException as Missing

    class Offline(Exception):
        pass

    def ask():
        try:
            plain_httpx2()
        except Exception as error:
            raise Offline("no service") from error

    @pytest.mark.vcr
    class TestPassed:
        def test_wrapped_by_the_client(self):
            with pytest.raises(anthropic.APIConnectionError) as caught:
                sdk(0)
            assert isinstance(caught.value.__cause__, Missing)

    @pytest.mark.vcr
    class TestSkipped:
        def test_by_itself(self):
            try:
                ask()
            except Offline:
                pytest.skip("no service")

    @pytest.mark.vcr
    class TestExpectedToFail:
        @pytest.mark.xfail(raises=Offline)
        def test_with_the_error_of_the_client(self):
            ask()

    @pytest.mark.vcr
    class TestFailed(unittest.TestCase):
        def test_case_of_unittest(self):
            ask()

    @pytest.mark.vcr
    def test_handled():
        with pytest.raises(Missing):
            plain_httpx2()
        assert False, "for another reason"
"""


def test_what_becomes_of_a_test_depends_on_what_it_raised(project: Project) -> None:
    """Passed, skipped, expected to fail: as if the exception of vcrpy were not looked at.

    Only a failure with it behind is shown as the miss; the others are told at the end of the run.
    """
    write(project, CLIENTS, OUTCOMES)

    result = project.run("-W", "ignore")

    result.assert_outcomes(passed=1, skipped=1, xfailed=1, failed=2)
    told = sorted(said[:15] for said in reasons(result))
    assert told == ["AssertionError:", "no cassette at "]
    listed = {line.split("::")[1] for line in misses(result)}
    assert {"TestSkipped", "TestExpectedToFail", "TestPassed"} <= listed
    assert "TestFailed" not in listed


ASKING = """
    import contextlib
    import anthropic
    import pytest

    def ask(text, **key):
        client = anthropic.Anthropic(base_url="http://127.0.0.1:9", **key)
        said = [{"role": "user", "content": text}]
        return client.messages.create(model="m", max_tokens=5, messages=said)

    @pytest.fixture
    def early(cassette):
        return ask("b", api_key="x")

    def test_called(cassette):
        ask("a")  # here

    def test_set_up(early):
        pass

    def test_swallowed(cassette):
        with contextlib.suppress(BaseException):
            ask("c", api_key="x")

    @pytest.mark.vcr
    def test_marked():
        ask("d", api_key="x")

    @pytest.mark.cassette(name="broken")
    def test_broken(): ask("e", api_key="x")

    @pytest.mark.vcr
    @pytest.mark.default_cassette("broken")
    def test_broken_too(): ask("e", api_key="x")
"""


def test_a_miss_is_shown_at_the_line_that_asked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the client's lines nor ours are in between, unless somebody asks for all lines.

    A key is not needed. Where no line of the project was running, the place is that of the test.
    Of a cassette that is none, file and line are told in one line per test, and the file stays.
    """
    monkeypatch.setenv("COLUMNS", "400")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    write(project, ASKING)
    asking, file = project.pytester, project.path / "cassettes/test_m/broken.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("version: 1\ninteractions: [\n", "utf-8")

    result = asking.runpytest_inprocess("-q")
    whole = asking.runpytest_inprocess("-q", "test_m.py::test_called", "--full-trace")
    placed = asking.runpytest_inprocess("--tb=line", "test_m.py::test_swallowed")

    result.assert_outcomes(failed=3, errors=3)
    unread = [line for line in reasons(result, "ERROR") if "the cassette cannot be read" in line]
    assert [line.partition(":")[0] for line in unread] == ["cassettes/test_m/broken.yaml"] * 2
    assert file.read_text("utf-8") == "version: 1\ninteractions: [\n"
    text = result.stdout.str()
    assert text.count("E       pytest_regen.errors.CassetteMissError: no cassette at") == 3
    assert '>       ask("a")  # here' in text
    for foreign in ("site-packages", "pytest_regen/", "contextlib.py"):
        assert foreign not in text, foreign
    assert "site-packages" in whole.stdout.str()
    assert "ANTHROPIC_API_KEY" not in os.environ
    result.stdout.fnmatch_lines(
        [
            "*_ test_swallowed _*",
            "no cassette at *",
            "  why: *",
            "  next: *",
        ],
        consecutive=True,
    )
    lines = textwrap.dedent(ASKING).strip().splitlines()
    line = lines.index("def test_swallowed(cassette):") + 1
    placed.stdout.fnmatch_lines([f"*test_m.py:{line}: *no cassette at *"])


BACKGROUND = """
    import contextlib
    import os
    import threading
    import httpx2
    import pytest

    def own():
        return httpx2.get(os.environ["ANTHROPIC_BASE_URL"] + "/v1/models")

    def prices():
        # As libraries do that have an older list of their own to fall back to.
        try:
            return httpx2.get("http://prices.test:9/list")
        except Exception as error:
            return str(error)

    def in_the_background():
        thread = threading.Thread(target=prices)
        thread.start()
        thread.join()
"""

USED = """
    @pytest.mark.vcr
    def test_it():
        own()
        prices()
        in_the_background()
"""


def test_a_background_call_fails_no_marked_test(project: Project, emulator: Emulator) -> None:
    """The library handles the exception; the summary says how to exempt the host.

    A project that is strict about drift hears of any; another failure keeps its own words, and of
    several misses the one that it was about.
    """
    write(project, BACKGROUND, "@pytest.mark.vcr\ndef test_it(): own()")
    project.run("--record-mode=once").assert_outcomes(passed=1)
    assert len(emulator.requests) == 1
    write(project, BACKGROUND, USED)
    result = project.run()
    write(project, BACKGROUND, USED.replace("prices()", "prices()\n        assert 0, 'mine'", 1))
    failing = project.run()
    needs = "httpx2.get('http://needed.test:9/answer')"
    write(project, BACKGROUND, USED.replace("prices()", f"prices(); {needs}", 1))
    needing = project.run("-W", "ignore")
    write(project, BACKGROUND, USED)
    project.pytester.makeini("[pytest]\nregen_drift = fail\n")
    strict = project.run()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "miss: test_m.py::test_it: test_it.yaml: test_it.yaml has no answer to GET /list",
            "    *",
            '* if prices.test does not *: passthrough_hosts=[[]"prices.test"[]]',
        ]
    )
    assert len(misses(result)) == 1
    assert reasons(failing) == ["AssertionError: mine"]
    assert reasons(needing)[0].startswith("test_it.yaml has no answer to GET /answer")
    strict.assert_outcomes(passed=1, errors=1)
    assert reasons(strict, "ERROR")[0].startswith("test_it.yaml has no answer to GET /list")


EXEMPT = """
    import httpx2
    import pytest

    def reach(host):
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"http://{host}.test:9/")

    @pytest.fixture
    def cassette_config():
        return {"passthrough_hosts": ["fixture.test"]}

    @pytest.mark.parametrize("host", ["fixture", "ini", "table"])
    def test_own(cassette, host): reach(host)

    @pytest.mark.vcr(passthrough_hosts="pattern.*", ignore_hosts=["theirs.test"])
    @pytest.mark.parametrize("host", ["pattern", "theirs", "ini", "table"])
    def test_marked(host): reach(host)
"""


def test_a_host_is_exempted(project: Project) -> None:
    """By mark, fixture, ini value or table; for both kinds of tests; vcrpy's own option counts."""
    project.pytester.makeini("[pytest]\nregen_passthrough_hosts =\n    ini.test\n")
    project.pytester.makepyprojecttoml(
        "[tool.pytest-regen.cassettes]\npassthrough_hosts = ['table.test']\n"
    )
    write(project, EXEMPT)

    result = project.run()

    result.assert_outcomes(passed=7)
    assert not misses(result)


def test_a_miss_leaves_the_loop_of_other_tests_alone(pytester: pytest.Pytester) -> None:
    """Tests after one that misses still pass, and nothing is logged."""
    pytester.makepyfile("""
        import httpx2
        import pytest

        pytestmark = [pytest.mark.anyio, pytest.mark.cassette]

        @pytest.fixture(scope="module")
        def anyio_backend():
            return "asyncio"

        @pytest.fixture(scope="module")
        async def client(anyio_backend):
            async with httpx2.AsyncClient() as client:
                yield client

        async def test_missing(client):
            await client.get("http://127.0.0.1:9/x")

        async def test_passing(client):
            assert client
    """)

    result = pytester.runpytest_subprocess("-p", "anyio")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E * no cassette at *", "FAILED *::test_missing - *"])
    result.stderr.no_fnmatch_line("*never retrieved*")
