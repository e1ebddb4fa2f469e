"""A run that records says at its end which values a replay gives otherwise than they came."""

import json
from collections.abc import Iterator

import pytest
from loopback import Answer, serving
from plugin_project import Project

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WORKS = {"works": [{"key": "b3"}, {"key": TOKEN}, {"key": f"see {TOKEN}"}]}
SUITE = """
    import httpx2, pytest

    @pytest.mark.MARK
    def test_works():
        answer = httpx2.get("ADDRESS/worksQUERY", headers={"x-api-key": "opaque"})
        assert answer.json()["works"][1]["key"] == KEY
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of this machine."""
    body = json.dumps(WORKS).encode()
    with serving({"/quiet": Answer(b"{}"), "/*": Answer(body)}) as served:
        yield served


def write(project: Project, address: str, mark: str, query: str = "") -> None:
    """Write a suite whose test looks at a value that is replaced."""
    text = SUITE.replace("MARK", mark).replace("ADDRESS", address).replace("KEY", repr(TOKEN))
    project.pytester.makepyfile(test_works=text.replace("QUERY", query))


FILE = "cassettes/test_works/test_works.yaml"


@pytest.mark.parametrize("mark", ["vcr", "cassette"])
def test_what_was_replaced_is_told_once(project: Project, address: str, mark: str) -> None:
    """By members, with counts and lengths, and what to do; the replay has nothing to tell."""
    project.pytester.makeini("[pytest]\n")
    write(project, address, mark, f"?api_key={TOKEN}")

    recorded = project.run("--regen-record=once")
    replayed = project.run()

    recorded.assert_outcomes(passed=1)
    replayed.assert_outcomes(failed=1)
    at = recorded.outlines.index(next(line for line in recorded.outlines if "replaced:" in line))
    assert recorded.outlines[at - 1].strip("=") == " cassettes "
    advice = f"pytest-regen cassettes check {FILE} --baseline cassettes-baseline.json"
    advice += " --update-baseline"
    if mark == "vcr":
        advice += "; vcrpy compares the query: for runs with another key, vcr_config needs "
        advice += "filter_query_parameters=['api_key']"
    assert recorded.outlines[at : at + 3] == [
        f"{FILE}: 3 values replaced: request query api_key, response body $.works[*].key (2)",
        "    response body $.works[1].key came out different: 40 characters live, 14 in replay",
        f"    next: where it is public, write it back into the cassette, then {advice}",
    ]
    assert TOKEN not in recorded.stdout.str()
    assert "came out different" not in replayed.stdout.str()


MANY = """
    import httpx2, pytest

    @pytest.mark.parametrize("number", range(40))
    @pytest.mark.cassette
    def test_many(number):
        path = "/quiet" if number == 1 else "/works"
        httpx2.get(f"ADDRESS{path}", headers={"x-api-key": "opaque"})
"""


def test_many_cassettes_are_told_by_member(project: Project, address: str) -> None:
    """In a few lines; whose keys alone were left out are not named."""
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(test_many=MANY.replace("ADDRESS", address))

    result = project.run("--regen-record=once")

    at = result.outlines.index("recorded: 39 tests recorded other values than came or were sent")
    assert result.outlines[at + 1 : -1] == [
        "    response body $.works[*].key: 39 tests",
        f"        {', '.join(f'test_many.py::test_many[{n}]' for n in (0, 2, 3))} and 36 more",
        "in full: .pytest_cache/d/regen/recorded.txt",
    ]
    assert (project.path / ".pytest_cache/d/regen/recorded.txt").is_file()
