"""Tests of one's own: their failure is the feedback, and they are called again."""

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


@pytest.fixture
def renaming(project: Project) -> Project:
    """A good store, and a model that renames a property when it is told about display names."""
    project.store()
    project.pytester.makeconftest(RENAMING)
    return project


def test_a_failing_assertion_is_the_feedback(renaming: Project) -> None:
    """The unit is regenerated with the assertion's words, and the body is called again."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.regen(types="Owner")
        def test_display_name(regen_store):
            assert "DisplayName" in regen_store()["Owner"].source, "call it a display name"
        """
    )

    result = renaming.run("--regen", "test_own.py")

    assert result.parseoutcomes() == {"regenerated": 1}
    assert "DisplayName" in RegenStore.open(renaming.path / STORE).source


def test_a_candidate_that_does_not_help_is_put_back(renaming: Project) -> None:
    """The files are as before, and the test's own failure is shown once."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.regen(types="Owner")
        def test_never(regen_store):
            assert "Impossible" in regen_store()["Owner"].source, "display it"
        """
    )
    source = (renaming.path / STORE / "ProjectDataObject.cs").read_bytes()
    pages = (renaming.path / STORE / "pages.json").read_bytes()

    result = renaming.run("--regen", "test_own.py")

    result.assert_outcomes(failed=1)
    assert (renaming.path / STORE / "ProjectDataObject.cs").read_bytes() == source
    assert (renaming.path / STORE / "pages.json").read_bytes() == pages
    result.stdout.no_fnmatch_line("*During handling of the above*")


@pytest.mark.parametrize(
    ("end", "said"),
    [("pytest.xfail('so')", "* 1 xfailed *"), ("pytest.exit('so')", "*Exit: so*")],
)
def test_a_candidate_is_put_back_where_the_body_ends_another_way(
    renaming: Project, end: str, said: str
) -> None:
    """What the second call says of the item, or of the run, is pytest's; nothing is kept."""
    renaming.pytester.makepyfile(
        test_own=f"""
        import pytest

        @pytest.mark.regen(types="Owner")
        def test_never(regen_store):
            if "DisplayName" in regen_store()["Owner"].source:
                {end}
            pytest.fail("call it a display name")
        """
    )
    source = (renaming.path / STORE / "ProjectDataObject.cs").read_bytes()

    result = renaming.run("--regen", "test_own.py")

    result.stdout.fnmatch_lines([said])
    assert (renaming.path / STORE / "ProjectDataObject.cs").read_bytes() == source


def test_the_second_type_may_be_the_one_at_fault(renaming: Project) -> None:
    """Passed only after regeneration is told as that, though work on another type was in vain."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.regen(types=["State", "Owner"])
        def test_display_name(regen_store):
            assert "DisplayName" in regen_store()["Owner"].source, "call it a display name"
        """
    )

    result = renaming.run("--regen", "test_own.py")

    assert result.parseoutcomes() == {"regenerated": 1}
    result.stdout.fnmatch_lines(["not regenerated: *::State, *", "next: pytest"])


def test_fixtures_are_set_up_once(renaming: Project) -> None:
    """Only the body runs again; every fixture, of whatever scope, is the one of the first call."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest
        TRACE = []

        @pytest.fixture(scope="session")
        def wide():
            TRACE.append("wide")

        @pytest.fixture
        def narrow(wide):
            TRACE.append("narrow")
            yield
            TRACE.append("end")
            print("TRACE", TRACE)

        @pytest.mark.regen(types=["Owner"])
        def test_it(narrow, regen_store):
            TRACE.append("body")
            assert "DisplayName" in regen_store()["Owner"].source, "display name"
        """
    )

    result = renaming.run("--regen", "-s", "test_own.py")

    trace = "TRACE ['wide', 'narrow', 'body', 'body', 'end']"
    assert trace in result.stdout.str()


def test_parametrised_and_asynchronous_tests_heal(renaming: Project) -> None:
    """The test is called the way its own plugin calls it."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest
        pytestmark = pytest.mark.regen(types="Owner")

        @pytest.fixture
        def anyio_backend(): return "asyncio"

        @pytest.mark.anyio
        @pytest.mark.parametrize("word", ["DisplayName"])
        async def test_it(regen_store, word):
            assert word in regen_store()["Owner"].source, "display name"
        """
    )

    result = renaming.run("-p", "anyio", "--regen", "test_own.py")

    assert result.parseoutcomes() == {"regenerated": 1}


def test_the_feedback_of_fail_is_what_the_model_reads(renaming: Project) -> None:
    """Issues and corrections arrive in the correction block of the page they name."""
    renaming.pytester.makeconftest(RENAMING + ASKING)
    renaming.pytester.makepyfile(
        test_own="""
        import pytest, pytest_regen
        from pytest_regen.validation.issues import Issue

        @pytest.mark.regen
        def test_it(regen_store):
            if "DisplayName" not in regen_store()["Owner"].source:
                pytest_regen.fail(
                    issues=[Issue.of("STYLE", "display names only", type_name="Owner", page=1)]
                )
        """
    )

    result = renaming.run("--regen", "test_own.py")

    assert result.parseoutcomes() == {"regenerated": 1}
    asked = (renaming.path / "asked.jsonl").read_text("utf-8").splitlines()
    assert len(asked) == 1
    assert "[STYLE] display names only" in asked[0]


@pytest.mark.parametrize(("codes", "healed"), [("['STYLE']", True), ("['OTHER']", False)])
def test_on_limits_what_is_healed(renaming: Project, codes: str, *, healed: bool) -> None:
    """Only issues of the codes named lead to a regeneration."""
    renaming.pytester.makepyfile(
        test_own=f"""
        import pytest, pytest_regen
        from pytest_regen.validation.issues import Issue

        @pytest.mark.regen(types="Owner", on={codes})
        def test_it(regen_store):
            if "DisplayName" not in regen_store()["Owner"].source:
                pytest_regen.fail(issues=Issue.of("STYLE", "display name", type_name="Owner"))
        """
    )

    result = renaming.run("--regen", "test_own.py")

    assert result.parseoutcomes() == {"regenerated" if healed else "failed": 1}


def test_an_error_that_is_no_assertion_is_not_healed(renaming: Project) -> None:
    """A bug in the test says nothing about the generated code."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.regen(types="Owner")
        def test_it(regen_store):
            raise KeyError("display")
        """
    )

    result = renaming.run("--regen", "test_own.py")

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*= regen =*")


def test_an_agent_that_loses_context_is_not_healed(renaming: Project) -> None:
    """No store is at fault for an agent's own code, so that none is written and nobody asked."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest
        from pytest_regen.testing import ContextLossError

        @pytest.mark.regen(types="Owner")
        def test_agent():
            raise ContextLossError("carries_full_context", "leaves are lost", ["display.name"])
        """
    )
    before = (renaming.path / STORE / "pages.json").read_bytes()

    result = renaming.run("--regen", "test_own.py")

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*= regen =*")
    assert (renaming.path / STORE / "pages.json").read_bytes() == before


def test_a_failure_that_names_no_type_is_told(renaming: Project) -> None:
    """The plugin does not guess; it says what to add."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.regen
        def test_it(regen_store):
            assert False, "display"
        """
    )

    result = renaming.run("--regen", "test_own.py")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["not regenerated: *test_it", "*give the marker types=*"])


def test_a_failure_that_names_no_store_is_told(renaming: Project) -> None:
    """Its own failure is shown, not ours; what to add stands in the summary."""
    renaming.store("GET_another")
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.regen
        def test_it():
            assert False, "display"
        """
    )

    result = renaming.run("--regen", "test_own.py")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: display",
            "not regenerated: *test_it",
            "*which store?",
            "*next: *store=*",
        ]
    )


def test_a_second_run_by_another_plugin_is_not_healed(renaming: Project) -> None:
    """An item that a rerun plugin starts again would be paid for twice."""
    renaming.pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.fixture
        def again(request):
            request.node.execution_count = 2

        @pytest.mark.regen(types="Owner")
        def test_it(again, regen_store):
            assert "DisplayName" in regen_store()["Owner"].source, "display name"
        """
    )

    renaming.run("--regen", "test_own.py").assert_outcomes(failed=1)


def test_the_fixture_can_be_overridden(renaming: Project) -> None:
    """A test module may bring its own model."""
    renaming.pytester.makeconftest("")
    renaming.pytester.makepyfile(
        test_own="""
        import pytest
        from plugin_answers import Good
        from pytest_regen.turns import ScriptedProvider
        from store_factory import GOOD

        @pytest.fixture
        def regen_provider():
            return ScriptedProvider([GOOD["Owner", 1].replace("Name {", "DisplayName {")])

        @pytest.mark.regen(types="Owner")
        def test_it(regen_store):
            assert "DisplayName" in regen_store()["Owner"].source, "display name"
        """
    )

    result = renaming.run("--regen", "test_own.py")

    assert result.parseoutcomes() == {"regenerated": 1}


def test_a_mark_heals_whenever_it_was_added(project: Project) -> None:
    """By a hook while tests are collected or set up; the test's own provider is asked all the same.

    Each asks for another name, for which the store is made anew.
    """
    hooks = {
        "modifyitems": "def pytest_collection_modifyitems(items):\n    for item in items: ",
        "itemcollected": "def pytest_itemcollected(item): ",
        "set_up": "def pytest_runtest_setup(item): ",
        "module": "@pytest.fixture(scope='module', autouse=True)\n"
        "def marked(request):\n    item = request.node; ",
    }
    for way, hook in hooks.items():
        path = project.store(f"GET_{way}")
        mark = f"item.add_marker(pytest.mark.regen(store='generated/GET_{way}', types='Owner'))\n"
        project.pytester.makeconftest("import pytest\n\n" + hook + mark)
        project.pytester.makepyfile(
            test_own=f"""
            import pytest
            from store_factory import GOOD
            from pytest_regen import ScriptedProvider

            @pytest.fixture
            def regen_provider():
                return ScriptedProvider([GOOD["Owner", 1].replace("Name {{", "DisplayName {{")])

            class TestIt:
                @pytest.mark.parametrize("n", [1])
                def test_it(self, regen_store, n):
                    assert "DisplayName" in regen_store({path.as_posix()!r})["Owner"].source
            """
        )

        result = project.run("--regen", "test_own.py")

        assert result.parseoutcomes() == {"regenerated": 1}, way
