"""The fixtures that tests ask for."""

import pytest
from plugin_project import Project
from store_factory import GOOD


def test_a_store_can_be_looked_at(project: Project) -> None:
    """Source, pages and issues of a type, by declared name or the schema's."""
    project.broken()
    project.pytester.makepyfile(
        test_own="""
        def test_it(regen_store):
            store = regen_store()
            owner = store["Owner"]
            assert owner.source.startswith("public class Owner")
            assert [page.page for page in store["Project"].pages] == [1, 2]
            assert {issue.code for issue in owner.issues()} == {"MISSING_FIELD", "PHANTOM_FIELD"}
            assert store["State"].issues() == ()
            assert [one.name for one in store] == ["ProjectDataObject", "Owner", "State"]
            assert owner.ir.kind == "object"
        """
    )

    project.run("test_own.py").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("regen_store()", "which store?"),
        ("regen_store('generated/nope')['Owner']", "there is no store at"),
        ("regen_store('generated/a')['Nope']", "has no type 'Nope'"),
    ],
)
def test_what_cannot_be_opened_is_told(project: Project, call: str, told: str) -> None:
    """Two stores and no name, no folder, no type: the message says which."""
    project.store("a")
    project.store("b")
    project.pytester.makepyfile(test_own=f"def test_it(regen_store):\n    {call}\n")

    result = project.run("test_own.py")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{told}*"])


def test_the_emulator_is_ready_to_use(project: Project) -> None:
    """Address and key are in the environment while the test runs, and only then."""
    project.pytester.makeini("[pytest]\n")
    project.pytester.makepyfile(
        test_own=f"""
        import os
        from pytest_regen.turns import AnthropicProvider, Message, TurnRequest

        def test_it(anthropic_emulator):
            anthropic_emulator.responder = lambda body, *, headers: {GOOD["State", 1]!r}
            request = TurnRequest("", (Message("user", "?"),), "claude-sonnet-5-5", 100)
            assert "enum State" in AnthropicProvider().send(request).text
            assert len(anthropic_emulator.requests) == 1

        def test_after():
            assert "ANTHROPIC_BASE_URL" not in os.environ
        """
    )

    project.run().assert_outcomes(passed=2)
