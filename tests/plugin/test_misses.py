"""A request that nobody recorded: told at once and as what it is, whatever client made it."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterator

import pytest
from plugin_project import Project, emulated
from recorded_talk import say

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
"""


def test_a_miss_is_told_wherever_it_happened(project: Project) -> None:
    """Wrapped, in a group, in another fixture; where nobody failed with it, at the end."""
    write(project, CLIENTS, WAYS)

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=2, errors=1, passed=2)
    told = reasons(result) + reasons(result, "ERROR")
    assert [said[:15] for said in told] == ["no cassette at "] * 3
    result.stdout.fnmatch_lines(
        ["miss: test_m.py::test_thread: *", "miss: test_m.py::test_hidden: *"]
    )


LATE = """
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


def test_a_miss_at_the_end_of_a_fixture_stays_its_own(project: Project) -> None:
    """The other fixtures end as well: no cassette stays in use for the tests behind."""
    write(project, CLIENTS, LATE)

    result = project.run("-W", "ignore")

    result.assert_outcomes(passed=5, errors=3)
    assert [said[:15] for said in reasons(result, "ERROR")] == ["no cassette at "] * 3
    result.stdout.fnmatch_lines(["miss: *test_late_and_quiet*"])


EXPECTING = """
    from vcr.errors import CannotOverwriteExistingCassetteException as Missing

    @pytest.mark.vcr
    def test_named():
        with pytest.raises((ValueError, Missing)) as caught:
            plain_httpx2()
        assert "v1/messages" in str(caught.value)

    @pytest.mark.vcr
    def test_task():
        async def ask():
            async with httpx2.AsyncClient() as client:
                await client.get(BASE)

        async def both():
            with pytest.raises(Missing):
                await asyncio.gather(ask(), ask())

        asyncio.run(both())

    @pytest.mark.vcr
    def test_wrapped_by_the_client():
        with pytest.raises(anthropic.APIConnectionError) as caught:
            with anthropic.Anthropic(api_key="x", base_url=BASE, max_retries=0) as client:
                client.messages.create(**MESSAGE)
        assert isinstance(caught.value.__cause__, Missing)
"""


def test_who_names_the_exception_of_vcrpy_gets_it(project: Project) -> None:
    """And who names what a client makes of it gets that."""
    write(project, CLIENTS, EXPECTING)

    project.run("-W", "ignore").assert_outcomes(passed=3)


OUTCOMES = """
    import unittest

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

        def test_by_a_call(self):
            try:
                ask()
            except Offline:
                pytest.xfail("no service")

    @pytest.mark.vcr
    class TestPassed:
        def test_fixture_wanted_by_the_test(self, request):
            with pytest.raises(Offline):
                request.getfixturevalue("asking")

    @pytest.mark.vcr
    class TestFailed(unittest.TestCase):
        def test_case_of_unittest(self):
            ask()

    @pytest.mark.vcr
    @pytest.mark.xfail(raises=ValueError)
    def test_failed_with_another_error():
        ask()
"""


def test_what_becomes_of_a_test_depends_on_what_it_raised(project: Project) -> None:
    """Skipped, expected to fail, passed: as if the exception of vcrpy were not looked at.

    Only a failure is shown as the miss behind it; the others are told at the end of the run.
    """
    write(project, CLIENTS, OUTCOMES)

    result = project.run("-W", "ignore")

    result.assert_outcomes(skipped=2, xfailed=2, passed=1, failed=2)
    assert [said[:15] for said in reasons(result)] == ["no cassette at "] * 2
    listed = [line.split("::")[1] for line in result.outlines if line.startswith("miss: ")]
    assert Counter(listed) == {"TestSkipped": 2, "TestExpectedToFail": 2, "TestPassed": 1}


FAILING = """
    from vcr.errors import CannotOverwriteExistingCassetteException

    @pytest.mark.vcr
    def test_handled():
        with pytest.raises(CannotOverwriteExistingCassetteException):
            plain_httpx2()
        assert False, "for another reason"

    @pytest.mark.vcr
    def test_not_handled():
        try:
            plain_httpx2()
        except CannotOverwriteExistingCassetteException as error:
            raise RuntimeError("the agent failed") from error
"""


def test_a_handled_miss_takes_no_blame_for_another_failure(project: Project) -> None:
    """Only where vcrpy's exception is behind a failure is the miss told in its place."""
    write(project, CLIENTS, FAILING)

    result = project.run("-W", "ignore")

    result.assert_outcomes(failed=2)
    handled, told = reasons(result)
    assert handled.startswith("AssertionError: for another reason")
    assert told.startswith("no cassette at ")


ASKING = """
    import contextlib
    import anthropic
    import pytest

    def ask(text):
        client = anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1:9")
        said = [{"role": "user", "content": text}]
        return client.messages.create(model="m", max_tokens=5, messages=said)

    @pytest.fixture
    def early(cassette):
        return ask("b")

    def test_called(cassette):
        ask("a")  # here

    def test_set_up(early):
        pass

    def test_swallowed(cassette):
        with contextlib.suppress(BaseException):
            ask("c")

    @pytest.mark.vcr
    def test_marked():
        ask("d")
"""


def test_a_miss_is_shown_at_the_line_that_asked(pytester: pytest.Pytester) -> None:
    """Neither the client's lines nor ours stand between it and the message."""
    pytester.makepyfile(test_asking=ASKING)

    result = pytester.runpytest_inprocess("-q")

    result.assert_outcomes(failed=3, errors=1)
    text = result.stdout.str()
    assert text.count("E       pytest_regen.errors.CassetteMissError: no cassette at") == 3
    assert '>       ask("a")  # here' in text
    for foreign in ("site-packages", "pytest_regen/", "contextlib.py"):
        assert foreign not in text, foreign


def test_a_miss_that_was_swallowed_is_its_message(pytester: pytest.Pytester) -> None:
    """Where no line of the project was running there is none to show."""
    pytester.makepyfile(test_asking=ASKING)

    result = pytester.runpytest_inprocess("-q", "test_asking.py::test_swallowed")

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


def test_every_line_is_shown_to_whoever_asks_for_it(pytester: pytest.Pytester) -> None:
    """``--full-trace`` is pytest's own word for it."""
    pytester.makepyfile(test_asking=ASKING)

    result = pytester.runpytest_inprocess("-q", "test_asking.py::test_called", "--full-trace")

    assert "site-packages" in result.stdout.str()


def test_replay_needs_no_key(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is made without one asks its cassette all the same; the test has none later."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    pytester.makepyfile(
        """
        import os
        import anthropic

        def test_asked(cassette):
            said = [{"role": "user", "content": "x"}]
            anthropic.Anthropic().messages.create(model="m", max_tokens=5, messages=said)

        def test_after():
            assert "ANTHROPIC_API_KEY" not in os.environ
        """
    )

    result = pytester.runpytest_inprocess("-q")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*CassetteMissError: no cassette at*"])


FIXTURES = """
    import asyncio
    import httpx2
    import pytest

    def ask():
        return httpx2.get("http://127.0.0.1:9/x")

    async def ask_in_a_group():
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(ask))

    @pytest.fixture(params=["alone", "in a group"])
    def asked(request):
        if request.node.get_closest_marker("silent") is None:
            ask() if request.param == "alone" else asyncio.run(ask_in_a_group())

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

    result.assert_outcomes(errors=6, passed=2, failed=1)
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


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A server that stands for the network."""
    with emulated(monkeypatch, say) as running:
        yield running


def test_a_background_call_fails_no_marked_test(recorded: Project) -> None:
    """The library handles the exception; the summary says how to exempt the host."""
    write(recorded, BACKGROUND, USED)

    result = recorded.run()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "miss: test_m.py::test_it: test_it.yaml: test_it.yaml has no answer to GET /list",
            "    *",
            '* if prices.test does not *: @pytest.mark.vcr(passthrough_hosts=[[]"prices.test"[]])',
        ]
    )
    assert result.stdout.str().count("miss: ") == 1


def test_of_several_misses_the_one_behind_the_failure_is_told(recorded: Project) -> None:
    """The first was swallowed."""
    needs = "httpx2.get('http://needed.test:9/answer')"
    write(recorded, BACKGROUND, USED.replace("prices()", f"prices(); {needs}", 1))

    assert "has no answer to GET /answer" in reasons(recorded.run("-W", "ignore"))[0]


def test_a_test_that_needs_the_stranger_is_told(recorded: Project) -> None:
    """The miss takes the place of what the client made of it; a strict project hears of any."""
    write(
        recorded,
        BACKGROUND,
        "@pytest.mark.vcr\ndef test_it():\n    own()\n    httpx2.get('http://prices.test:9/list')",
    )
    needed = recorded.run("-W", "ignore")
    write(recorded, BACKGROUND, USED)
    recorded.pytester.makeini("[pytest]\nregen_drift = fail\n")
    strict = recorded.run()

    assert reasons(needed)[0].startswith("test_it.yaml has no answer to GET /list")
    strict.assert_outcomes(passed=1, errors=1)
    assert reasons(strict, "ERROR")[0].startswith("test_it.yaml has no answer to GET /list")


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
    if "ini" in way:
        recorded.pytester.makeini("[pytest]\nregen_passthrough_hosts =\n    prices.test\n")
    if "table" in way:
        recorded.pytester.makepyprojecttoml(
            "[tool.pytest-regen.cassettes]\npassthrough_hosts = ['prices.test']\n"
        )
    body = textwrap.dedent(USED).replace("@pytest.mark.vcr\n", "")
    write(recorded, BACKGROUND, EXEMPT[way] + body)

    result = recorded.run()

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("miss: *")


def test_an_exempted_host_is_sent_to_while_recording(project: Project, emulator: Emulator) -> None:
    """It is not in the file; in replay it is not there, but for this machine."""
    for mark in ("vcr", "cassette"):
        write(
            project,
            BACKGROUND,
            f"@pytest.mark.{mark}(passthrough_hosts=['localhost'])\ndef test_{mark}():\n"
            "    own()\n"
            "    port = os.environ['ANTHROPIC_BASE_URL'].rpartition(':')[2]\n"
            "    assert httpx2.get(f'http://localhost:{port}/v1/models').status_code == 401",
        )

        project.run("--record-mode=once").assert_outcomes(passed=1)
        before = len(emulator.requests)
        project.run().assert_outcomes(passed=1)

        assert before % 2 == 0
        assert len(emulator.requests) == before + 1
        emulator.requests.clear()
        text = (project.path / f"cassettes/test_m/test_{mark}.yaml").read_text("utf-8")
        assert text.count("request:") == 1
