"""Marked tests that are coroutines and share an event loop."""

import importlib.util

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pytest_recording") is not None,
    reason="pytest-recording is installed here and serves the mark vcr",
)


@pytest.mark.parametrize("mark", ["cassette", "vcr"])
def test_a_miss_leaves_the_loop_of_other_tests_alone(pytester: pytest.Pytester, mark: str) -> None:
    """Tests after one that misses still pass, and nothing is logged."""
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
            await client.get("http://127.0.0.1:9/x")

        async def test_passing(client):
            assert client
    """)

    result = pytester.runpytest_subprocess("-p", "anyio")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E * no cassette at *", "FAILED *::test_missing - *"])
    result.stderr.no_fnmatch_line("*never retrieved*")
