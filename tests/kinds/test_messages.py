"""What programs read in a text is compared, and nothing that languages may do otherwise."""

from collections.abc import Iterable

from tables import each

from pytest_regen.kinds import messages

POLISH = ("one", "few", "many")


def errors(problems: Iterable[messages.Problem]) -> list[str]:
    return [words for severity, words in problems if severity == "error"]


PLURAL = "{count, plural, one {# berth in {place}} other {# berths in {place}}}"


@each(
    ("source", "text", "problem"),
    [
        ("From {from} to {to}", "Bis {to} ab {from}", "None"),
        ("%s has %d", "%2$d hat %1$s", "None"),
        ("on {day, date, long}", "am {day, date, medium}", "None"),
        ("Use {curly braces}", "Nimm {geschweifte Klammern}", "None"),
        ("%s cards found", "Znaleziono %skart", "None"),
        ("{0}% done", "%{0} bitti", "None"),
        ("Hi {name}", "Hallo {Name}", "lacks {name}"),
        ("Hi", "Hallo {name}", "has {name}, which the source lacks"),
        ("%(n)s m", "% (n)s m", "lacks %(n)s"),
        ("%s has %d", "%d hat %s", "has %d, %s where the source has %s, %d"),
    ],
)
def test_a_placeholder_that_a_program_would_miss_is_named(
    source: str, text: str, problem: str
) -> None:
    """Dropped, invented or out of order; named ones move, percent signs in prose are none."""
    assert str(messages.placeholder_problem(source, text)).startswith(problem)


@each(
    ("source", "text", "problem"),
    [
        ("<b>one</b> and <i>two</i>", "<i>zwei</i> und <b>eins</b>", ""),
        ('<a href="/x" title="Go">in</a>', '<a title="Los" href="/x">rein</a>', ""),
        ("<b>{n} per {day}</b>", "<b>{day}</b>に<b>{n}</b>", ""),
        ("<b>one</b>", "<b>eins", "lacks </b>"),
        ("<0>a</0>", "<0>a<0>", "lacks </0>"),
    ],
)
def test_tags_may_move_with_the_sentence(source: str, text: str, problem: str) -> None:
    """Only what is a tag in the source has to be one in the translation."""
    found = errors(messages.tag_problems(source, text))

    assert [words[: len(problem)] for words in found] == [problem][: bool(problem)]


ONE = ("one",)


@each(
    ("source", "text", "needed", "problem"),
    [
        (PLURAL, "{count, plural, one {# Platz in {place}} other {# in {place}}}", ONE, ""),
        (PLURAL, "{count,plural,=1{ein Platz in {place}}other{# in {place}}}", ONE, ""),
        (PLURAL, "{count, plural, other {{place}: #}}", (), ""),
        (PLURAL, "{place}: {count, plural, one {# a} few {# b} other {# c}}", POLISH, ""),
        (PLURAL, "In {place}: {count, plural, one {# l''une} other {# l'autre}}", None, ""),
        (
            "{g, select, f {She {n, plural, one {# a} other {# b}}} other {They {n}}}",
            "{g, select, other {Sie {n}} f {Sie {n, plural, one {# a} other {# b}}}}",
            ONE,
            "",
        ),
        ("{n, plural, offset:1 one {a} other {b}} '{c}'", "{n, plural, one {a} other {b}}", (), ""),
        ("{g, select, a {x} other {y}}", "{g, select, b {x} other {y}}", ONE, "has the cases b, "),
        (PLURAL, "{count, plural, one {# Platz} other {# Plätze}}", ONE, "lacks {place}"),
        (
            PLURAL,
            "{count, plural, one {a {place}} other {b}",
            ONE,
            "is not an ICU message: it does",
        ),
        (PLURAL, "{count, plural, one {# in {place}}}", ONE, "is not an ICU message: it lacks"),
        (PLURAL, "{count, plural, other {b {place}}}", ONE, "lacks the plural one of count"),
        (PLURAL, "{count, plural, one {a} other {d'{place}'}}", ONE, "lacks {place}; an apost"),
        (PLURAL, "{place}: {count, plural, one {a} other {b}}", ONE, "does not show the number"),
        (PLURAL, "{a,plural,other{" * 5_000, ONE, "is not an ICU message: it nests more than 20"),
    ],
)
def test_a_plural_has_the_cases_of_its_language(
    source: str, text: str, needed: tuple[str, ...] | None, problem: str
) -> None:
    """What a library would refuse or what loses an argument is said; exact numbers may stand."""
    found = errors(messages.icu_problems(messages.read_icu(source), text, needed))

    assert bool(found) is bool(problem)
    assert not found or found[0].startswith(problem)
