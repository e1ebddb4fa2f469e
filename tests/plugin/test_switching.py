"""A suite written for pytest-recording: its marks, fixtures, options and hook work as there."""

import importlib.util
import textwrap

import pytest
from plugin_project import Project

from pytest_regen.emulator import Emulator

needs_ours = pytest.mark.skipif(
    importlib.util.find_spec("pytest_recording") is not None,
    reason="pytest-recording is installed here and serves the mark",
)
pytestmark = needs_ours

TEST = """
    import os
    import httpx2
    import pytest

    def ask(text="one"):
        body = {"model": "claude-sonnet-5-5", "max_tokens": 9,
                "messages": [{"role": "user", "content": text}]}
        headers = {"authorization": "Bearer planted-token-0123456789", "anthropic-version":
                   "2023-06-01"}
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        return httpx2.post(url, json=body, headers=headers).json()["content"][-1]["text"]

    @pytest.mark.vcr
    def test_a(vcr):
        assert "reply" in ask("{words}")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, emulator: Emulator) -> Project:
    """A suite with one recorded test."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    write(project)
    project.run("--record-mode=once").assert_outcomes(passed=1)
    assert len(emulator.requests) == 1
    return project


def write(project: Project, test: str = TEST, words: str = "one") -> None:
    """Write the suite's only module."""
    project.pytester.makepyfile(test_m=textwrap.dedent(test).replace("{words}", words))


FILE = "cassettes/test_m/test_a.yaml"


def test_recorded_once_replayed_after(
    suite: Project, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the file it has there, without the credential that plugin would have kept.

    Further cassettes are played, and never written; all is sent where recording is disabled. With
    ``-p no:…`` the marks are ours although another package is installed.
    """
    file, more = suite.path / FILE, suite.path / "cassettes/test_m/more.yaml"
    text = file.read_text("utf-8")
    suite.pytester.mkpydir("pytest_vcr")
    monkeypatch.syspath_prepend(suite.path)

    suite.run("-p", "no:vcr").assert_outcomes(passed=1)
    file.rename(more)
    write(suite, TEST.replace("mark.vcr", 'mark.vcr("more.yaml")'))
    suite.run("-p", "no:vcr").assert_outcomes(passed=1)

    assert "planted" not in text
    assert "request:" in text
    assert more.read_text("utf-8") == text
    assert not file.exists()
    assert len(emulator.requests) == 1
    suite.run("-p", "no:vcr", "--disable-recording").assert_outcomes(passed=1)
    assert len(emulator.requests) == 2


def test_matching_is_lenient_and_drift_is_told(suite: Project) -> None:
    """The body has no part, so the test stays green; the summary says what differs.

    It says, too, that recordings were not asked for.
    """
    write(suite, words="two")

    result = suite.run()
    write(suite, TEST.replace('assert "reply" in ask("{words}")', "assert len(vcr) == 1"))
    unplayed = suite.run()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "=*= cassettes =*",
            "drift: test_m.py::test_a: test_a.yaml: POST /v1/messages *interaction 1*",
            '*$.messages[[]0].content: recorded "one", sent "two"*',
            "next: pytest test_m.py::test_a --record-mode rewrite",
        ]
    )
    unplayed.assert_outcomes(passed=1)
    unplayed.stdout.fnmatch_lines(["unplayed: *test_a.yaml: 1 of 1 recordings*"])


def test_rewrite_replaces_and_never_destroys(suite: Project, emulator: Emulator) -> None:
    """The old file is there until the new one is whole, and stays if nothing was recorded."""
    old = (suite.path / FILE).read_bytes()
    write(suite, TEST.replace('ask("{words}")', '"reply"'))
    suite.run("--record-mode=rewrite").assert_outcomes(passed=1)
    assert (suite.path / FILE).read_bytes() == old

    write(suite, words="new")
    suite.run("--record-mode=rewrite").assert_outcomes(passed=1)

    text = (suite.path / FILE).read_text("utf-8")
    assert "new" in text
    assert text.count("request:") == 1
    assert len(emulator.requests) == 2


USES = """
    import httpx2
    import os
    import pytest
    from vcr import mode

    @pytest.fixture(scope="module")
    def vcr_config():
        return {"filter_headers": ["user-agent"], "match_on": ["method", "path", "mine"],
                "decode_compressed_response": True}

    @pytest.fixture(scope="module")
    def vcr_cassette_dir(request):
        return str(request.path.parent / "elsewhere")

    @pytest.mark.vcr("more.yaml", additional_matchers=["query"])
    @pytest.mark.default_cassette("named.yaml")
    def test_a(vcr, vcr_markers, record_mode, default_cassette_name, disable_recording):
        assert default_cassette_name == "named.yaml"
        assert record_mode in ("once", "none")
        assert not disable_recording
        assert [mark.name for mark in vcr_markers] == ["vcr"]
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/models"
        assert httpx2.get(url).status_code in (200, 401)
        if record_mode == "none":
            assert vcr.play_count == 1
            assert vcr.all_played
            assert vcr.requests[0].path == "/v1/models"
            assert vcr.responses[0]["status"]["code"] in (200, 401)
            assert vcr.play_counts.get(0) == 1
            assert "named.yaml" in str(vcr._path)

    class TestB:
        @pytest.mark.vcr
        @pytest.mark.parametrize("x", ["a/b"])
        def test_c(self, x):
            httpx2.get(os.environ["ANTHROPIC_BASE_URL"] + "/v1/models")

    def test_unmarked(request):
        assert request.getfixturevalue("vcr") is None

    @pytest.mark.vcr(record_mode=mode.NEW_EPISODES)
    def test_enum():
        pass

    @pytest.mark.vcr(record_mode="sometimes")
    def test_word():
        pass
"""

CONFTEST = """
    def pytest_recording_configure(config, vcr):
        vcr.register_matcher("mine", lambda left, right: True)
"""


def test_marks_fixtures_and_the_hook(pytester: pytest.Pytester, emulator: Emulator) -> None:
    """Configuration, names, folders, modes, and what the fixture offers."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(test_m=USES)
    pytester.makeconftest(CONFTEST)

    recorded = project.run("--record-mode=once")
    sent = len(emulator.requests)
    replayed = project.run()

    for result in (recorded, replayed):
        result.assert_outcomes(passed=4, errors=1)
        result.stdout.fnmatch_lines(["*record_mode='sometimes'*"])
    assert len(emulator.requests) == sent
    assert sorted(p.name for p in (project.path / "elsewhere").iterdir()) == [
        "TestB.test_c[a-b].yaml",
        "named.yaml",
    ]


BLOCKED = """
    import socket
    import os
    import pytest

    def connect():
        host, _, port = os.environ["ANTHROPIC_BASE_URL"].removeprefix("http://").partition(":")
        with socket.socket() as one:
            one.connect((host, int(port)))

    @pytest.mark.block_network
    def test_blocked():
        with socket.socket() as one, pytest.raises(RuntimeError, match="Network is disabled"):
            one.connect(("127.0.0.1", 9))

    @pytest.mark.block_network(allowed_hosts=["127.*"])
    def test_allowed():
        connect()

    @pytest.mark.block_network
    @pytest.mark.allowed_hosts(["localhost"])
    def test_allowed_by_name():
        port = int(os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[2])
        socket.create_connection(("localhost", port)).close()

    def test_free():
        connect()
"""


@pytest.mark.usefixtures("emulator")
def test_the_network_is_blocked_where_it_is_asked(pytester: pytest.Pytester) -> None:
    """By mark or option, but for hosts that match."""
    project = Project(pytester)
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(test_m=BLOCKED)

    project.run().assert_outcomes(passed=4)
    project.run("--block-network", "-k", "free", "-W", "ignore").assert_outcomes(
        failed=1, deselected=3
    )
    only = ("--block-network", "--allowed-hosts=nowhere,127.0.0.1", "-k", "free")
    project.run(*only).assert_outcomes(passed=1, deselected=3)


def test_beside_another_plugin_ours_steps_back(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says so; its options and fixtures are its own. Of pytest-vcr, as of the other."""
    theirs = pytester.mkpydir("pytest_vcr") / "__init__.py"
    theirs.write_text(textwrap.dedent("""
        import pytest
        def pytest_addoption(parser):
            parser.addoption("--record-mode", default=None)
            parser.addoption("--block-network", action="store_true")
        def pytest_configure(config):
            config.addinivalue_line("markers", "vcr: theirs")
        @pytest.fixture(autouse=True)
        def vcr(): return "theirs"
    """), "utf-8")  # fmt: skip
    monkeypatch.syspath_prepend(pytester.path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\n")
    pytester.makepyfile("import pytest\n@pytest.mark.vcr\ndef test_a(vcr): assert vcr == 'theirs'")
    order = ("-ppytest_vcr", "-ppytest_regen.pytest_plugin.plugin")

    result = pytester.runpytest_subprocess(*order, "--strict-markers")

    result.assert_outcomes(passed=1)
    line = "pytest-vcr is loaded and serves the tests marked vcr*no:vcr,*"
    result.stdout.fnmatch_lines([line])
