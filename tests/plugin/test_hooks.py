"""Hooks that others implement."""

import pytest
from plugin_project import Project

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


def test_turns_and_heals_are_told(project: Project) -> None:
    """Before and after each turn, and after the work on a type."""
    project.broken()
    project.answered_by(
        "Good",
        """
    def pytest_regen_before_turn(config, request):
        print("BEFORE", request.model)

    def pytest_regen_after_turn(config, request, reply):
        print("AFTER", reply.usage.total_tokens)

    def pytest_regen_after_heal(item, result):
        print("HEALED", item.name, result.stop_reason)
""",
    )

    result = project.run("--regen", "-s")

    text = result.stdout.str()
    order = [
        text.index(word) for word in ("BEFORE claude-sonnet-5-5", "AFTER 140", "HEALED Owner clean")
    ]
    assert order == sorted(order)


PRICES = """
    from pytest_regen.settings import Price

    def pytest_regen_prices(config, model):
        if model == "MODEL":
            return ANSWER
"""


@pytest.mark.parametrize(
    ("model", "table", "told"),
    [
        # 100 tokens in and 40 out, as ``Good`` counts.
        ("claude-sonnet-5-5", "", "$0.5000"),
        ("claude-sonnet-5-5", "claude-sonnet-5-5", "$0.3000"),
    ],
    ids=["hook", "table first"],
)
def test_prices_of_ones_own(project: Project, model: str, table: str, told: str) -> None:
    if table:
        project.pytester.makepyprojecttoml(
            f'[tool.pytest-regen.price."{table}"]\ninput = 1000\noutput = 5000\n'
        )
    project.broken()
    hook = PRICES.replace("MODEL", model).replace("ANSWER", "Price(input=3000, output=5000.0)")
    project.answered_by("Good", hook)

    result = project.run("--regen", "--regen-record=once")

    result.stdout.fnmatch_lines([f"regenerated: *, 100 tokens in, 40 out, {told}"])


def test_a_price_that_is_none_is_refused(project: Project) -> None:
    """The message shows the answer and what would be right."""
    project.broken()
    hook = PRICES.replace("MODEL", "claude-sonnet-5-5").replace("ANSWER", "{'input': 3}")
    project.answered_by("Good", hook)

    result = project.run("--regen", "--regen-record=once")

    result.stdout.fnmatch_lines(
        [
            "*pytest_regen_prices answers {'input': 3} for 'claude-sonnet-5-5'*",
            "*next: return *Price*",
        ]
    )
