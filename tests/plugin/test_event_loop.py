"""Marked tests that are coroutines, where a fixture lets no event loop block."""

import importlib.util
import textwrap
from collections.abc import Iterator

import pytest
from plugin_project import Project
from small_site import Site, small_site

pytest.importorskip("blockbuster")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pytest_recording") is not None,
    reason="pytest-recording is installed here and serves the mark vcr",
)

TESTS = """
    import os
    import blockbuster
    import httpx2
    import pytest

    @pytest.fixture(autouse=True)
    def no_blocking():
        with blockbuster.blockbuster_ctx():
            yield

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    async def ask():
        body = {f"field {n}": "WORD " * 100 for n in range(8)}
        async with httpx2.AsyncClient() as client:
            answer = await client.post(os.environ["SITE"] + "/echo", json=body)
        assert answer.json()["method"] == "POST"

    @pytest.mark.anyio
    @pytest.mark.cassette(drift="warn")
    async def test_own():
        await ask()

    @pytest.mark.anyio
    @pytest.mark.cassette
    async def test_strict():
        await ask()

    @pytest.mark.anyio
    @pytest.mark.vcr
    async def test_theirs():
        await ask()

    @pytest.mark.anyio
    @pytest.mark.vcr(match_on=["method", "path", "body"])
    async def test_theirs_strict():
        await ask()
"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that stands for the network."""
    with small_site() as served:
        monkeypatch.setenv("SITE", served.address)
        yield served


def empty_project(pytester: pytest.Pytester) -> Project:
    """Return a project without stores."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    return project


def write(project: Project, word: str) -> None:
    """Write the tests; they ask about a word."""
    project.pytester.makepyfile(test_it=textwrap.dedent(TESTS).replace("WORD", word))


def test_no_marked_test_blocks_its_event_loop(pytester: pytest.Pytester, site: Site) -> None:
    """Recorded, replayed, drifted and missed; the files of long differences are there after."""
    project = empty_project(pytester)
    write(project, "ivy")
    project.run("-p", "anyio", "--regen-record=once").assert_outcomes(passed=4)
    project.run("-p", "anyio").assert_outcomes(passed=4)
    asked = len(site.seen)
    write(project, "oak")

    result = project.run("-p", "anyio")

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*in full: *test_strict*.txt*", "FAILED *::test_theirs_strict*"])
    result.stdout.no_fnmatch_line("*Blocking call*")
    files = {file.stem[:-9] for file in (pytester.path / ".pytest_cache" / "d" / "regen").iterdir()}
    assert {"test_own-1", "test_strict-1", "test_theirs-1", "test_theirs_strict-1"} <= files
    assert len(site.seen) == asked


@pytest.mark.parametrize("mark", ["cassette", "vcr"])
def test_a_miss_leaves_the_loop_of_other_tests_alone(
    pytester: pytest.Pytester, mark: str, site: Site
) -> None:
    """Tests that share an event loop pass behind one that misses, and nothing is logged of it."""
    empty_project(pytester)
    pytester.makepyfile(f"""
        import httpx2
        import pytest

        pytestmark = [pytest.mark.anyio, pytest.mark.{mark}]

        @pytest.fixture(scope="module")
        def anyio_backend():
            return "asyncio"

        @pytest.fixture(scope="module")
        async def client(anyio_backend):
            async with httpx2.AsyncClient() as client:
                yield client

        async def test_missing(client):
            await client.get("{site.address}/echo")

        async def test_passing(client):
            assert client
    """)

    result = pytester.runpytest_subprocess("-p", "anyio")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E * no cassette at *", "FAILED *::test_missing - *"])
    result.stderr.no_fnmatch_line("*never retrieved*")
    assert not site.seen
