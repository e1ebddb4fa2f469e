"""A request that nobody recorded: told at once and as what it is, whatever client made it."""

import json
import os
import textwrap

import pytest
from plugin_project import Project

from pytest_regen.emulator import Emulator

MESSAGE = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}

CLIENTS = f"""
    import asyncio
    import contextlib
    import http.client
    import json
    import time
    import anthropic
    import anyio
    import httpx2
    import pytest
    import urllib3

    BASE = "http://127.0.0.1:9"
    MESSAGE = {MESSAGE!r}
    BODY = json.dumps(MESSAGE)

    def sdk():
        with anthropic.Anthropic(api_key="x", base_url=BASE, max_retries=5) as client:
            client.messages.create(**MESSAGE)

    def sdk_async_stream():
        async def ask():
            async with anthropic.AsyncAnthropic(api_key="x", base_url=BASE) as client:
                async with client.messages.stream(**MESSAGE) as stream:
                    await stream.until_done()
        asyncio.run(ask())

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

    def broad_loop():
        for _ in range(5):
            with contextlib.suppress(Exception):
                return plain_httpx2()
            time.sleep(1)

    CLIENTS = [sdk, sdk_async_stream, plain_httpx2, retrying_urllib3, standard_library, broad_loop]
"""

COUNTED = """
    seen = []

    @pytest.fixture(autouse=True)
    def counted(request, monkeypatch):
        slept = []

        def sleep(seconds):
            slept.extend([seconds] if seconds else [])

        async def anyio_sleep(seconds):
            sleep(seconds)

        monkeypatch.setattr(anyio, "sleep", anyio_sleep)
        monkeypatch.setattr(asyncio, "sleep", anyio_sleep)
        monkeypatch.setattr(time, "sleep", sleep)
        made = []
        vcr = request.getfixturevalue("vcr")
        if vcr is not None:
            asked = vcr.filter_request
            vcr.filter_request = lambda sent: (made.append(sent.uri), asked(sent))[1]
        else:
            run = request.getfixturevalue("cassette")
            take = run.take
            run.take = lambda method, uri, body: (made.append(uri), take(method, uri, body))[1]
        yield
        seen.append((len(made), len(slept)))
        request.config.rootpath.joinpath("seen.json").write_text(json.dumps(seen))
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

    A client that is given vcrpy's exception may ask again, but at once; a loop of the test's own
    is the test's own. One that swallows it goes on, as there.
    """
    write(project, CLIENTS, COUNTED, MARKED)

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=11, passed=7)
    assert [said for said in reasons(result) if not said.startswith("no cassette at ")] == []
    assert len(reasons(result)) == 11
    seen = json.loads((project.path / "seen.json").read_text("utf-8"))
    marked = [[6, 0], [3, 0], [1, 0], [1, 0], [1, 0], [5, 5]]
    assert seen == [*marked, *marked, *[[1, 0]] * 6]


WAYS = """
    @pytest.mark.vcr
    def test_wrapped():
        try:
            sdk()
        except BaseException as error:
            raise RuntimeError("the agent failed") from error

    @pytest.mark.vcr
    def test_grouped():
        async def both():
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.to_thread(sdk))
        asyncio.run(both())

    @pytest.mark.vcr
    @pytest.mark.filterwarnings("ignore")
    def test_thread():
        import threading
        thread = threading.Thread(target=sdk)
        thread.start()
        thread.join()

    @pytest.fixture
    def early(vcr):
        sdk()

    @pytest.mark.vcr
    def test_set_up(early):
        pass

    @pytest.fixture
    def hidden(vcr):
        with contextlib.suppress(BaseException):
            sdk()

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

    @pytest.fixture(params=["vcr", "cassette"])
    def late_and_quiet(request):
        request.getfixturevalue(request.param)
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
    """Wrapped, in a group, while fixtures are set up or end; where nobody failed, at the end.

    All fixtures end: no cassette stays in use for the tests behind.
    """
    write(project, CLIENTS, WAYS)

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=2, errors=4, passed=7)
    told = reasons(result) + reasons(result, "ERROR")
    assert [said[:15] for said in told] == ["no cassette at "] * 6
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

    @pytest.fixture
    def asking():
        ask()

    @pytest.fixture
    def skipping():
        try:
            ask()
        except Offline:
            pytest.skip("no service")

    @pytest.mark.vcr
    class TestPassed:
        def test_named(self):
            with pytest.raises((ValueError, Missing)) as caught:
                plain_httpx2()
            assert "v1/messages" in str(caught.value)

        def test_task(self):
            async def ask():
                async with httpx2.AsyncClient() as client:
                    await client.get(BASE)

            async def both():
                with pytest.raises(Missing):
                    await asyncio.gather(ask(), ask())

            asyncio.run(both())

        def test_wrapped_by_the_client(self):
            with pytest.raises(anthropic.APIConnectionError) as caught:
                sdk()
            assert isinstance(caught.value.__cause__, Missing)

        def test_fixture_wanted_by_the_test(self, request):
            with pytest.raises(Offline):
                request.getfixturevalue("asking")

    @pytest.mark.vcr
    class TestSkipped:
        def test_called(self):
            try:
                ask()
            except Offline:
                pytest.skip("no service")

        def test_set_up(self, skipping):
            pass

    @pytest.mark.vcr
    class TestExpectedToFail:
        @pytest.mark.xfail(raises=Offline)
        def test_with_the_error_of_the_client(self):
            ask()

        @pytest.mark.xfail(raises=Offline)
        def test_set_up(self, asking):
            pass

    @pytest.mark.vcr
    class TestFailed(unittest.TestCase):
        def test_case_of_unittest(self):
            ask()

    @pytest.mark.vcr
    @pytest.mark.xfail(raises=ValueError)
    def test_failed_with_another_error():
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

    result.assert_outcomes(passed=4, skipped=2, xfailed=2, failed=3)
    told = sorted(said[:15] for said in reasons(result))
    assert told == ["AssertionError:", "no cassette at ", "no cassette at "]
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
"""


@pytest.fixture
def asking(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Tests that ask, one of them without a key, which a replay does not need."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    pytester.makepyfile(test_asking=ASKING)
    return pytester


def test_a_miss_is_shown_at_the_line_that_asked(asking: pytest.Pytester) -> None:
    """Neither the client's lines nor ours are in between, unless somebody asks for all lines."""
    result = asking.runpytest_inprocess("-q")
    whole = asking.runpytest_inprocess("-q", "test_asking.py::test_called", "--full-trace")

    result.assert_outcomes(failed=3, errors=1)
    text = result.stdout.str()
    assert text.count("E       pytest_regen.errors.CassetteMissError: no cassette at") == 3
    assert '>       ask("a")  # here' in text
    for foreign in ("site-packages", "pytest_regen/", "contextlib.py"):
        assert foreign not in text, foreign
    assert "site-packages" in whole.stdout.str()
    assert "ANTHROPIC_API_KEY" not in os.environ


def test_a_miss_that_was_swallowed_is_its_message(asking: pytest.Pytester) -> None:
    """No line of the project was running, so the place shown is that of the test."""
    result = asking.runpytest_inprocess("-q", "test_asking.py::test_swallowed")
    placed = asking.runpytest_inprocess("--tb=line", "test_asking.py::test_swallowed")

    result.stdout.fnmatch_lines(
        [
            "*_ test_swallowed _*",
            "no cassette at *",
            "  why: *",
            '        no caller *: @pytest.mark.cassette(passthrough_hosts=[[]"127.0.0.1"[]])',
            "  next: *",
            "=*",
            "FAILED *",
        ],
        consecutive=True,
    )
    lines = textwrap.dedent(ASKING).strip().splitlines()
    line = lines.index("def test_swallowed(cassette):") + 1
    placed.stdout.fnmatch_lines([f"*test_asking.py:{line}: *no cassette at *"])


FIXTURES = """
    import httpx2
    import pytest

    def ask():
        return httpx2.get("http://127.0.0.1:9/x")

    @pytest.fixture(params=["asked"])
    def asked(request):
        if request.node.get_closest_marker("silent") is None:
            ask()

    @pytest.mark.vcr
    def test_marked(asked): pass

    @pytest.mark.vcr
    def test_marked_again(asked): pass

    def test_fixture(cassette, asked): pass

    @pytest.mark.silent
    def test_that_asks_nothing(asked): pass

    def test_late(cassette, request): request.getfixturevalue("late")

    @pytest.fixture
    def late(): ask()
"""


def test_a_miss_in_a_fixture_is_the_business_of_one_test(project: Project) -> None:
    """Others that want the fixture get it anew, and are told what is wrong with them."""
    project.pytester.makeini("[pytest]\nmarkers = silent: asks nothing\n")
    write(project, FIXTURES)

    result = project.run("-W", "ignore")

    result.assert_outcomes(errors=3, passed=1, failed=1)
    told = [*reasons(result, "ERROR"), *reasons(result)]
    assert all(one.startswith("no cassette at ") for one in told)


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


@pytest.fixture
def recorded(project: Project, emulator: Emulator) -> Project:
    """A project with a test whose own request is recorded."""
    write(project, BACKGROUND, "@pytest.mark.vcr\ndef test_it(): own()")
    project.run("--record-mode=once").assert_outcomes(passed=1)
    assert len(emulator.requests) == 1
    return project


def test_a_background_call_fails_no_marked_test(recorded: Project) -> None:
    """The library handles the exception; the summary says how to exempt the host.

    A project that is strict about drift hears of any; another failure keeps its own words.
    """
    write(recorded, BACKGROUND, USED)
    result = recorded.run()
    write(recorded, BACKGROUND, USED.replace("prices()", "prices()\n        assert 0, 'mine'", 1))
    failing = recorded.run()
    write(recorded, BACKGROUND, USED)
    recorded.pytester.makeini("[pytest]\nregen_drift = fail\n")
    strict = recorded.run()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "miss: test_m.py::test_it: test_it.yaml: test_it.yaml has no answer to GET /list",
            "    *",
            '* if prices.test does not *: @pytest.mark.vcr(passthrough_hosts=[[]"prices.test"[]])',
        ]
    )
    assert len(misses(result)) == 1
    assert reasons(failing) == ["AssertionError: mine"]
    strict.assert_outcomes(passed=1, errors=1)
    assert reasons(strict, "ERROR")[0].startswith("test_it.yaml has no answer to GET /list")


def test_a_test_that_needs_the_stranger_is_told(recorded: Project) -> None:
    """The summary shows the miss behind the failure, not one that was swallowed before."""
    needs = "httpx2.get('http://needed.test:9/answer')"
    write(recorded, BACKGROUND, USED.replace("prices()", f"prices(); {needs}", 1))

    told = reasons(recorded.run("-W", "ignore"))

    assert told[0].startswith("test_it.yaml has no answer to GET /answer")


EXEMPT = {
    "pattern": '@pytest.mark.vcr(passthrough_hosts="*.test")',
    "theirs": '@pytest.mark.vcr(ignore_hosts=["prices.test"])',
    "ini": "@pytest.mark.vcr",
    "own config": "@pytest.fixture\ndef cassette_config():\n"
    "    return {'passthrough_hosts': ['prices.test']}\n\n@pytest.mark.cassette",
    "own table": "@pytest.mark.cassette",
}


@pytest.mark.parametrize("way", EXEMPT)
def test_a_host_is_exempted(recorded: Project, way: str) -> None:
    """By mark, fixture, ini value or table; for both kinds of tests; vcrpy's own option counts."""
    if way == "ini":
        recorded.pytester.makeini("[pytest]\nregen_passthrough_hosts =\n    prices.test\n")
    if way == "own table":
        recorded.pytester.makepyprojecttoml(
            "[tool.pytest-regen.cassettes]\npassthrough_hosts = ['prices.test']\n"
        )
    body = textwrap.dedent(USED).replace("@pytest.mark.vcr\n", "")
    write(recorded, BACKGROUND, EXEMPT[way] + body)

    result = recorded.run()

    result.assert_outcomes(passed=1)
    assert not misses(result)
