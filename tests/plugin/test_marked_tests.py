"""Tests of one's own: their failure is the feedback, and they are called again."""

import textwrap

import pytest
from plugin_project import Project

from pytest_regen.stores import RegenStore

STORE = "generated/GET_v1_projects"

# Writes down what is asked.
ASKING = """
import json

def pytest_regen_before_turn(config, request):
    with open("asked.jsonl", "a") as file:
        file.write(json.dumps(request.messages[0].content) + "\\n")
"""

# Answers ``Owner`` with a property of another name, once it is told about display names.
RENAMING = """
from plugin_answers import Good, asked_page
from pytest_regen.turns.values import Reply

class Renaming(Good):
    def send(self, request):
        reply = super().send(request)
        text = reply.text
        if asked_page(request) == ("Owner", 1) and "display" in request.messages[0].content:
            text = text.replace("Name {", "DisplayName {")
        return Reply(text, usage=reply.usage, model=reply.model)

def pytest_regen_provider(config):
    return Renaming()
"""
WANTED = 'assert "DisplayName" in regen_store()["Owner"].source, "call it a display name"'


@pytest.fixture
def renaming(project: Project) -> Project:
    """A good store, and a model that renames a property when it is told about display names."""
    project.store()
    project.pytester.makeconftest(RENAMING)
    return project


def heal(
    project: Project, body: str, mark: str = 'types="Owner"', head: str = ""
) -> pytest.RunResult:
    """Run a marked test with this body."""
    imports = "import pytest, pytest_regen\nfrom pytest_regen.validation.issues import Issue\n"
    test = f"\n@pytest.mark.regen({mark})\ndef test_it(regen_store):\n"
    source = imports + textwrap.dedent(head) + test + textwrap.indent(textwrap.dedent(body), "    ")
    project.pytester.makepyfile(test_own=source)
    return project.run("--regen", "test_own.py")


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("", "*call it a display name"),
        ("pytest.xfail('so')", "* 1 xfailed *"),
        ("pytest.exit('so')", "*Exit: so*"),
    ],
)
def test_a_candidate_that_does_not_help_is_put_back(renaming: Project, end: str, said: str) -> None:
    """The files are as before, and the test's own failure is shown once."""
    before = [path.read_bytes() for path in sorted((renaming.path / STORE).glob("*.*"))]
    body = f"""
        if "DisplayName" in regen_store()["Owner"].source:
            {end or "pass"}
        pytest.fail("call it a display name")
    """

    result = heal(renaming, body)

    result.stdout.fnmatch_lines([said])
    assert [path.read_bytes() for path in sorted((renaming.path / STORE).glob("*.*"))] == before
    result.stdout.no_fnmatch_line("*During handling of the above*")


def test_the_second_type_may_be_the_one_at_fault(renaming: Project) -> None:
    """Passed only after regeneration is told as that, though work on another type was in vain."""
    result = heal(renaming, WANTED, 'types=["State", "Owner"]')

    assert result.parseoutcomes() == {"regenerated": 1}
    assert "DisplayName" in RegenStore.open(renaming.path / STORE).source
    result.stdout.fnmatch_lines(["not regenerated: *::State, *", "next: pytest"])


def test_only_the_body_is_called_again(renaming: Project) -> None:
    """The way its own plugin calls it; every fixture is the one of the first call."""
    renaming.pytester.makepyfile(
        test_own=f"""
        import pytest
        TRACE = []

        @pytest.fixture
        def anyio_backend(): return "asyncio"

        @pytest.fixture(scope="session")
        def wide():
            TRACE.append("wide")

        @pytest.fixture
        def narrow(wide):
            TRACE.append("narrow")
            yield
            print("TRACE", [*TRACE, "end"])

        @pytest.mark.regen(types=["Owner"])
        @pytest.mark.anyio
        @pytest.mark.parametrize("word", ["body"])
        async def test_it(narrow, regen_store, word):
            TRACE.append(word)
            {WANTED}
        """
    )

    result = renaming.run("-p", "anyio", "--regen", "-s", "test_own.py")

    assert result.parseoutcomes() == {"regenerated": 1}
    assert "TRACE ['wide', 'narrow', 'body', 'body', 'end']" in result.stdout.str()


def test_the_feedback_of_fail_is_what_the_model_reads(renaming: Project) -> None:
    """In the correction of the page it names; only issues of the codes of ``on`` are healed."""
    renaming.pytester.makeconftest(RENAMING + ASKING)
    body = """
        if "DisplayName" not in regen_store()["Owner"].source:
            issue = Issue.of("STYLE", "display names only", type_name="Owner", page=1)
            pytest_regen.fail(issues=[issue])
    """

    other = heal(renaming, body, "on=['OTHER']")
    healed = heal(renaming, body, "on=['STYLE']")

    assert other.parseoutcomes() == {"failed": 1}
    assert healed.parseoutcomes() == {"regenerated": 1}
    (request,) = (renaming.path / "asked.jsonl").read_text("utf-8").splitlines()
    assert "[STYLE] display names only" in request


AGAIN = """
    @pytest.fixture(autouse=True)
    def again(request):
        request.node.execution_count = 2
"""


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ('raise KeyError("display")', ""),
        (
            'raise ContextLossError("carries_full_context", "lost", ["display.name"])',
            "from pytest_regen.testing import ContextLossError",
        ),
        (WANTED, AGAIN),
    ],
    ids=["a bug of the test", "an agent at fault", "run again by another plugin"],
)
def test_what_says_nothing_about_the_code_is_not_healed(
    renaming: Project, body: str, head: str
) -> None:
    """Nobody is asked, and nothing is written."""
    before = (renaming.path / STORE / "pages.json").read_bytes()

    result = heal(renaming, body, head=head)

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*= regen =*")
    assert (renaming.path / STORE / "pages.json").read_bytes() == before


def test_a_failure_that_names_no_type_or_store_is_told(renaming: Project) -> None:
    """The plugin does not guess: its own failure is shown, and the summary says what to add."""
    for told in (["*give the marker types=*"], ["*which store?", "*next: *store=*"]):
        if "*which store?" in told:
            renaming.store("GET_another")
        result = heal(renaming, 'assert False, "display"', "")

        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*AssertionError: display", "not regenerated: *test_it"])
        result.stdout.fnmatch_lines(told)


OF_A_MODULE = """
@pytest.fixture(scope='module', autouse=True)
def marked(request):
    item = request.node; """


def test_a_mark_heals_whenever_it_was_added(project: Project) -> None:
    """While tests are set up; the test's own provider is asked all the same."""
    path = project.store()
    mark = f"item.add_marker(pytest.mark.regen(store={STORE!r}, types='Owner'))\n"
    project.pytester.makeconftest("import pytest\n\n" + OF_A_MODULE + mark)
    project.pytester.makepyfile(
        test_own=f"""
        import pytest
        from store_factory import GOOD
        from pytest_regen import ScriptedProvider

        @pytest.fixture
        def regen_provider():
            return ScriptedProvider([GOOD["Owner", 1].replace("Name {{", "DisplayName {{")])

        class TestIt:
            def test_it(self, regen_store):
                assert "DisplayName" in regen_store({path.as_posix()!r})["Owner"].source
        """
    )

    assert project.run("--regen", "test_own.py").parseoutcomes() == {"regenerated": 1}
