"""Where a choice may come from, and which source wins."""

from collections.abc import Callable

import pytest

from pytest_regen.modes import is_ci
from pytest_regen.pytest_plugin.choices import Choices, choices_of


def choices(pytester: pytest.Pytester, *args: str) -> Choices:
    """Return the choices of a run with these arguments."""
    return choices_of(pytester.parseconfig(*args))


def test_nothing_is_done_by_default(pytester: pytest.Pytester) -> None:
    """Without an option nothing heals, nothing records, and two attempts are the default."""
    chosen = choices(pytester)

    assert not chosen.heal
    assert chosen.record_mode() == "none"
    assert chosen.attempts() == 2


def test_option_beats_marker_beats_ini_beats_table(pytester: pytest.Pytester) -> None:
    """Precedence of attempts and record mode, source by source."""
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        regen_record = "once"
        [tool.pytest-regen]
        attempts = 5
        model = "table-model"
        """
    )
    plain = choices(pytester, "--regen")
    given = choices(
        pytester, "--regen", "--regen-attempts=7", "--regen-record=all", "--regen-model=m"
    )

    assert (plain.attempts(), plain.attempts(3)) == (5, 3)
    assert (plain.record_mode(), plain.record_mode("rewrite")) == ("once", "rewrite")
    assert plain.model == "table-model"
    assert (given.attempts(3), given.record_mode("rewrite"), given.model) == (7, "all", "m")


def test_a_marker_alone_records_nothing(pytester: pytest.Pytester) -> None:
    """A record mode of a marker or ini value waits for an option on the command line itself."""
    assert choices(pytester).record_mode("all") == "none"


@pytest.mark.parametrize("option", ["--regen", "--regen-record=once"])
def test_addopts_are_not_the_command_line(pytester: pytest.Pytester, option: str) -> None:
    """What addopts asks for is not done, and one line says so."""
    pytester.makeini(f"[pytest]\naddopts = {option}\n")

    chosen = choices(pytester)

    assert not chosen.heal
    assert chosen.record_mode() == "none"
    assert len(chosen.notes) == 1
    assert "addopts" in chosen.notes[0]


def test_live_calls_in_ci_need_a_budget(
    pytester: pytest.Pytester, in_ci: Callable[[], None]
) -> None:
    """Where no one watches, a mode that may call a model is refused until its cost is limited."""
    in_ci()

    with pytest.raises(pytest.UsageError, match="--regen-budget"):
        choices(pytester, "--regen", "--regen-record=once")
    assert choices(pytester, "--regen", "--regen-record=once", "--regen-budget=9").budget == 9


@pytest.mark.parametrize(
    ("value", "unattended"),
    [("true", True), ("1", True), ("", False), ("0", False), ("false", False), ("False", False)],
)
def test_what_ci_means(monkeypatch: pytest.MonkeyPatch, value: str, *, unattended: bool) -> None:
    """``CI`` counts unless it is false, 0 or empty."""
    monkeypatch.setenv("CI", value)

    assert is_ci() is unattended


@pytest.mark.parametrize(
    ("ini", "args", "named"),
    [
        ("regen_fail_on = sometimes", (), "auto, regenerated, never"),
        ("regen_attempts = many", (), "regen_attempts = many"),
        ("regen_record = maybe", (), "none, once"),
        ("", ("--regen-attempts=0",), "--regen-attempts 0"),
        ("", ("--regen-budget=-4",), "--regen-budget -4"),
        ("", ("--regen-only=Owner",), "add --regen"),
    ],
)
def test_a_wrong_choice_is_a_usage_error(
    pytester: pytest.Pytester, ini: str, args: tuple[str, ...], named: str
) -> None:
    """The message shows the value and what is allowed."""
    pytester.makeini(f"[pytest]\n{ini}\n")

    with pytest.raises(pytest.UsageError, match=named):
        choices(pytester, *args)
