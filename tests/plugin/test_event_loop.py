"""Marked tests that are coroutines, where a fixture lets no event loop block."""

import importlib.util
from collections.abc import Iterator

import pytest
from plugin_project import Project
from small_site import Site, small_site

pytest.importorskip("blockbuster")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pytest_recording") is not None,
    reason="pytest-recording is installed here and serves the mark vcr",
)


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
