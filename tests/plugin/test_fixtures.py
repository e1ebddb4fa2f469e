"""What tests ask for, and what conftests implement."""

import pickle
from fnmatch import fnmatch

import pytest
from plugin_project import Project

import pytest_regen
from pytest_regen.testing import FeedbackError
from pytest_regen.validation.issues import Issue


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


VALIDATOR = """
    from pytest_regen.validation.issues import Issue

    def pytest_regen_validators(config, store, type_name):
        text = "\\n".join(page.output for page in store.pages_of(type_name))
        if type_name == "State" and "Closed" in text:
            yield Issue("STYLE", "no closed states", type_name, page=1, severity="SEVERITY")
"""


def test_its_errors_are_fed_back(project: Project) -> None:
    """The page is regenerated until the validator has nothing to say."""
    project.store()
    project.answered_by(
        "Good",
        VALIDATOR.replace("SEVERITY", "error")
        + """
    _send = PROVIDER.send

    def send(request):
        import dataclasses
        reply = _send(request)
        assert "[STYLE] no closed states" in request.messages[0].content
        return dataclasses.replace(reply, text=reply.text.replace("Closed", "Shut"))

    PROVIDER.send = send
""",
    )

    gate = project.run()
    result = project.run("--regen")

    gate.assert_outcomes(passed=2, failed=1)
    gate.stdout.fnmatch_lines(["*STYLE: no closed states"])
    assert result.parseoutcomes() == {"passed": 2, "regenerated": 1}


PRICES = """
    from pytest_regen.settings import Price

    def pytest_regen_prices(config, model):
        if model == "claude-sonnet-5-5":
            return ANSWER
"""


@pytest.mark.parametrize(
    ("answer", "table", "told"),
    [
        # 100 tokens in and 40 out, as ``Good`` counts.
        ("Price(input=3000, output=5000.0)", "", "regenerated: *, 100 tokens in, 40 out, $0.5000"),
        ("None", "input = 1000\noutput = 5000\n", "regenerated: *, 40 out, $0.3000"),
        ("{'input': 3}", "", "*pytest_regen_prices answers {'input': 3} *next: return *Price*"),
    ],
    ids=["hook", "table first", "no price"],
)
def test_prices_of_ones_own(project: Project, answer: str, table: str, told: str) -> None:
    """Of the hook, but for models in the table; what is no price is refused with what would be."""
    if table:
        project.pytester.makepyprojecttoml(f"[tool.pytest-regen.price.claude-sonnet-5-5]\n{table}")
    project.broken()
    project.answered_by("Good", PRICES.replace("ANSWER", answer))

    result = project.run("--regen", "--regen-record=once")

    assert fnmatch(result.stdout.str(), f"*{told}*")


ISSUE = Issue.of("MISSING_FIELD", "field 'name' is missing", type_name="Owner", page=1)


def test_it_is_an_assertion_that_shows_what_is_wrong() -> None:
    """It carries the feedback, also through pickling; saying nothing is a mistake."""
    with pytest.raises(AssertionError) as caught:
        pytest_regen.fail(issues=[ISSUE], corrections="dates are UTC")

    assert str(caught.value) == "[MISSING_FIELD] Owner: field 'name' is missing\ndates are UTC"
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, FeedbackError)
    assert again.feedback == (ISSUE, "dates are UTC")
    with pytest.raises(TypeError, match="needs issues="):
        pytest_regen.fail()
