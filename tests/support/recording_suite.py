"""A suite as projects write it for pytest-recording: every mark, fixture, option and hook of it.

It runs against ``SUITE_URL``; with ``SUITE_MORE`` some of its tests ask for more than before.
"""

from typing import Final

CONFTEST: Final = '''
import json
import os
import threading

import pytest


def pytest_recording_configure(config, vcr):
    vcr.register_matcher("same_words", lambda left, right: left.body == right.body)
    config.stash.setdefault(CONFIGURED, []).append(vcr)


CONFIGURED = pytest.StashKey()


@pytest.fixture
def configured(request):
    """How often the hook was called."""
    return lambda: len(request.config.stash.get(CONFIGURED, []))


def pytest_runtest_logreport(report):
    """Say how each test went."""
    with open(os.environ["SUITE_OUTCOMES"], "a") as file:
        file.write(json.dumps([report.nodeid, report.when, report.outcome]) + "\\n")
'''

SERVICE: Final = """
import json
import os

import httpx2

URL = os.environ["SUITE_URL"]
MORE = bool(os.environ.get("SUITE_MORE"))


def get(path, **headers):
    return httpx2.get(URL + path, headers=headers)


def say(words, path="/echo"):
    return httpx2.post(URL + path, json={"words": words}).json()
"""

PLAIN: Final = """
import pytest
from service import MORE, get, say


@pytest.mark.vcr
def test_plain():
    assert say("one")["said"] == "one"


@pytest.mark.vcr
def test_fails_by_itself():
    say("one")
    assert False


def test_unmarked(vcr):
    assert vcr is None


@pytest.mark.vcr
@pytest.mark.parametrize("value", ["plain", "a/b", "ä ö", "x" * 40, "a:b*c?<d>|e", "..", "y" * 300])
def test_names(value):
    assert say(value)["said"] == value


@pytest.mark.vcr
class TestMarkedClass:
    def test_one(self):
        say("in a class")

    @pytest.mark.default_cassette("shared.yaml")
    def test_two(self):
        say("in a class, elsewhere")

    class TestInner:
        def test_three(self):
            say("inner")
"""

NAMES: Final = """
import unittest

import pytest
from service import get, say


@pytest.mark.default_cassette("named.yaml")
@pytest.mark.vcr
def test_named(default_cassette_name, vcr):
    assert default_cassette_name == "named.yaml"
    assert str(vcr._path).endswith("named.yaml")
    say("named")


@pytest.mark.default_cassette("more.yaml")
@pytest.mark.vcr
def test_writes_more():
    say("more one")
    say("more two")


@pytest.mark.vcr("more.yaml")
def test_reads_more():
    assert say("more one")["said"] == "more one"


@pytest.mark.default_cassette("z" * 400)
@pytest.mark.vcr
def test_too_long():
    say("too long")


class Case(unittest.TestCase):
    @pytest.mark.vcr
    def test_unittest(self):
        self.assertEqual(say("unit")["said"], "unit")
"""

OPTIONS: Final = """
import pytest
from service import MORE, URL, get, say

asked = []


def note(request):
    asked.append(request.path)
    return request


def upper(response):
    response["body"]["string"] = response["body"]["string"].replace(b"quiet", b"LOUD")
    return response


@pytest.mark.vcr(match_on=["method", "path", "body"])
def test_by_body():
    say("first")
    say("second")
    if MORE:
        say("third")


@pytest.mark.vcr(match_on=["method", "unknown"])
def test_by_an_unknown_matcher():
    say("first")


@pytest.mark.vcr(allow_playback_repeats=True)
def test_repeats(record_mode):
    say("again")
    if record_mode == "none":
        assert say("again")["said"] == "again"


@pytest.mark.vcr(filter_headers=["x-secret", ("x-other", "replaced")])
def test_headers(vcr, record_mode):
    get("/headers", **{"x-secret": "s", "x-other": "o"})
    if record_mode == "none":
        assert "x-secret" not in vcr.requests[0].headers
        assert vcr.requests[0].headers["x-other"] == "replaced"


@pytest.mark.vcr(filter_query_parameters=["page"])
def test_query(vcr, record_mode):
    get("/query?page=1&size=2")
    if record_mode == "none":
        assert vcr.requests[0].query == [("size", "2")]


@pytest.mark.vcr(before_record_request=note, before_record_response=upper)
def test_hooks(record_mode):
    said = say("quiet")["said"]
    assert said == "LOUD" if record_mode == "none" else said in ("quiet", "LOUD")
    assert "/echo" in asked


@pytest.mark.vcr(serializer="json")
def test_json():
    say("json")


class Own:
    @staticmethod
    def load_cassette(path, serializer):
        from vcr.persisters.filesystem import FilesystemPersister
        return FilesystemPersister.load_cassette(path, serializer)

    @staticmethod
    def save_cassette(path, data, serializer):
        from vcr.persisters.filesystem import FilesystemPersister
        return FilesystemPersister.save_cassette(path, data, serializer)


@pytest.mark.vcr(persister=Own)
def test_own_persister():
    say("kept by its own")


@pytest.mark.vcr(record_mode="new_episodes")
def test_mode_in_the_mark():
    say("always recorded")
    if MORE:
        say("and this", "/more")


@pytest.mark.vcr(ignore_localhost=True)
def test_ignored():
    say("ignored")


@pytest.mark.vcr(decode_compressed_response=True)
def test_packed():
    assert get("/packed").json()["said"] == "packed"


@pytest.mark.vcr(drop_unused_requests=True)
def test_dropping():
    if not MORE:
        say("dropped later")
    say("kept")


@pytest.mark.vcr(match_on=["method"])
@pytest.mark.vcr(match_on=["uri"], allow_playback_repeats=True)
def test_two_marks(vcr_markers, configured):
    assert [sorted(mark.kwargs) for mark in vcr_markers] == [
        ["match_on"], ["allow_playback_repeats", "match_on"]
    ]
    assert configured() > 0
    say("two marks")


@pytest.mark.vcr
def test_what_the_fixture_has(vcr, record_mode):
    say("one")
    say("two")
    assert len(vcr) == 2
    assert len(vcr.requests) == len(vcr.responses) == 2
    assert vcr.requests[0].method == "POST"
    assert vcr.responses[1]["status"]["code"] == 200
    if record_mode == "none":
        assert vcr.play_count == 2
        assert vcr.all_played
        assert vcr.play_counts[0] == 1
        assert vcr.play_counts.get(7) is None
        assert hasattr(vcr, "rewound")
"""

FIXTURES: Final = """
import pytest
from service import MORE, get, say

pytestmark = pytest.mark.vcr


@pytest.fixture(scope="module")
def vcr_config():
    return {"match_on": ["method", "path"], "filter_headers": ["user-agent"]}


@pytest.fixture(scope="module")
def vcr_cassette_dir(request):
    return str(request.path.parent / "tapes" / request.path.stem)


@pytest.fixture
def talk():
    return say("from a fixture")


@pytest.fixture(autouse=True)
def always():
    say("from an automatic fixture")
    yield
    say("from its end")


def test_fixtures_are_recorded(talk):
    assert talk["said"] == "from a fixture"
    say("from the test")


def test_the_module_is_marked(vcr):
    assert vcr is not None
    say("marked")


class TestOwn:
    @pytest.fixture
    def vcr_config(self, vcr_config):
        return {**vcr_config, "match_on": ["method", "path", "body"]}

    @pytest.fixture
    def default_cassette_name(self, request):
        return f"own-{request.node.name}"

    def test_configured(self, default_cassette_name):
        assert default_cassette_name == "own-test_configured"
        say("configured")


class TestMode:
    @pytest.fixture(scope="class")
    def record_mode(self):
        return "new_episodes"

    def test_recorded(self, record_mode):
        assert record_mode == "new_episodes"
        say("by the fixture")


class TestDisabled:
    @pytest.fixture(scope="class")
    def disable_recording(self):
        return True

    def test_sent(self, vcr, disable_recording):
        assert vcr is None
        assert disable_recording
        say("sent")


@pytest.fixture
def late(request):
    return request.getfixturevalue("vcr")


def test_late(late, vcr_markers):
    assert late is not None
    assert len(vcr_markers) == 1
    say("late")
"""

BLOCKED: Final = """
import socket

import httpx2
import pytest
from service import URL, get, say

PORT = int(URL.rpartition(":")[2])


def connect(host="127.0.0.1"):
    socket.create_connection((host, PORT)).close()


@pytest.mark.block_network
def test_blocked():
    with pytest.raises(RuntimeError, match="Network is disabled"):
        socket.socket().connect(("127.0.0.1", PORT))


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.block_network(allowed_hosts=["127.0.*"])
def test_allowed():
    connect()


@pytest.mark.vcr
@pytest.mark.block_network
def test_recorded_and_blocked():
    say("recorded and blocked")


@pytest.mark.vcr
@pytest.mark.block_network
def test_played_and_blocked_beside(record_mode):
    say("played")
    if record_mode == "none":
        with pytest.raises(RuntimeError, match="Network is disabled"):
            connect()


@pytest.mark.block_network
class TestClass:
    def test_blocked(self):
        connect()


def test_free():
    connect()
"""


SUITE: Final = {
    "conftest.py": CONFTEST,
    "service.py": SERVICE,
    "test_plain.py": PLAIN,
    "test_names.py": NAMES,
    "test_options.py": OPTIONS,
    "sub/test_fixtures.py": FIXTURES,
    "test_blocked.py": BLOCKED,
}
