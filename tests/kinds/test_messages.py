"""What programs read in a text is compared, and nothing that languages may do otherwise."""

from collections.abc import Iterable

from tables import each

from pytest_regen.kinds import messages

POLISH = ("one", "few", "many")


def errors(problems: Iterable[messages.Problem]) -> list[str]:
    return [words for severity, words in problems if severity == "error"]


PLURAL = "{count, plural, one {# berth in {place}} other {# berths in {place}}}"


@each(
    ("source", "text"),
    [
        ("From {from} to {to}", "Bis {to} ab {from}"),
        ("Hi {name}", "{name}, hallo {name}"),
        ("%(a)s and %{b}", "%{b} und %(a)s"),
        ("%s has %d", "%2$d hat %1$s"),
        ("100% safe", "100%ig sicher"),
        ("on {day, date, long}", "am {day, date, medium}"),
        ("Use {curly braces}", "Nimm {geschweifte Klammern}"),
        ("%s cards found", "Znaleziono %skart"),
        ("{0}% done", "%{0} bitti"),
    ],
)
def test_a_language_may_order_what_is_named(source: str, text: str) -> None:
    """Named and numbered placeholders stand anywhere; percent signs in prose are none."""
    assert messages.placeholder_problem(source, text) is None


@each(
    ("source", "text", "problem"),
    [
        ("Hi {name}", "Hallo {Name}", "lacks {name}"),
        ("Hi", "Hallo {name}", "has {name}, which the source has not"),
        ("%(n)s m", "% (n)s m", "lacks %(n)s"),
        ("%s has %d", "%d hat %s", "has %d, %s where the source has %s, %d"),
        ("{} of {}", "{}", "has {} where the source has {}, {}"),
    ],
)
def test_a_placeholder_that_a_program_would_miss_is_named(
    source: str, text: str, problem: str
) -> None:
    """A name translated, dropped, invented or out of order is said as a model can mend it."""
    assert str(messages.placeholder_problem(source, text)).startswith(problem)


@each(
    ("source", "text", "problem"),
    [
        ("<b>one</b> and <i>two</i>", "<i>zwei</i> und <b>eins</b>", ""),
        ('<a href="/x" title="Go">in</a>', '<a title="Los" href="/x">rein</a>', ""),
        ("usage: open <file>", "Aufruf: open <Datei>", ""),
        ("<b>{n} per {day}</b>", "<b>{day}</b>に<b>{n}</b>", ""),
        ("<b>one</b>", "<b>eins", "lacks </b>"),
        ("one", "<b>eins</b>", "has <b>, </b>, which"),
        ('<a href="/x">in</a>', '<a href="/y">rein</a>', 'lacks <a href="/x">'),
        ("<0>a</0>", "<0>a<0>", "lacks </0>"),
    ],
)
def test_tags_may_move_with_the_sentence(source: str, text: str, problem: str) -> None:
    """Only what is a tag in the source has to be one in the translation."""
    found = errors(messages.tag_problems(source, text))

    assert [words[: len(problem)] for words in found] == [problem][: bool(problem)]


@each(
    ("source", "text", "needed"),
    [
        (PLURAL, "{count, plural, one {# Platz in {place}} other {# Plätze in {place}}}", ("one",)),
        (PLURAL, "{count,plural,=1{ein Platz in {place}}other{# Plätze in {place}}}", ("one",)),
        (PLURAL, "{place}に{count}か所", ()),
        (PLURAL, "{count, plural, other {{place}: #}}", ()),
        (PLURAL, "{place}: {count, plural, one {# a} few {# b} other {# c}}", POLISH),
        ("and {n, plural, other {# more}}", "y {n, plural, other {# más}}", ("one",)),
        (PLURAL, "In {place}: {count, plural, one {# l''une} other {# l'autre}}", None),
        (
            "{g, select, f {She {n, plural, one {# a} other {# b}}} other {They {n}}}",
            "{g, select, other {Sie {n}} f {Sie {n, plural, one {# a} other {# b}}}}",
            ("one",),
        ),
        (
            "{n, plural, offset:1 one {a} other {b}} '{literal}'",
            "{n, plural, one {a} other {b}}",
            (),
        ),
        (
            "{n, selectordinal, one {#st} two {#nd} other {#th}}",
            "{n, selectordinal, other {#.}}",
            (),
        ),
    ],
)
def test_a_plural_has_the_cases_of_its_language(
    source: str, text: str, needed: tuple[str, ...] | None
) -> None:
    """Each language has its own categories; exact numbers may stand for them."""
    assert not errors(messages.icu_problems(messages.read_icu(source), text, needed))


@each(
    ("source", "text", "problem"),
    [
        (
            "{g, select, a {x} other {y}}",
            "{g, select, b {x} other {y}}",
            "has the cases b, other",
        ),
        (PLURAL, "{count, plural, one {# Platz} other {# Plätze}}", "lacks {place}"),
        (
            PLURAL,
            "{count, plural, one {a {place}} other {b}",
            "is no ICU message: it does not",
        ),
        (PLURAL, "{count, plural, other {b {place}}}", "lacks the plural one of count"),
        (PLURAL, "{count} {place}", "has no plural of count"),
        (PLURAL, "{Anzahl, plural, one {a {place}} other {b}}", "lacks {count}"),
        (PLURAL, "{count, plural, one {a} other {d'{place}'}}", "lacks {place}; an apostrophe"),
        (PLURAL, "{count, Plural, one {a {place}} other {b}}", "is no ICU message"),
        (PLURAL, "{place}: {count, plural, one {a} other {b}}", "does not show the number count"),
        (PLURAL, "a } b", "is no ICU message: it closes a brace"),
        (PLURAL, "{a,plural,other{" * 5_000, "is no ICU message: it nests more than 20 cases"),
    ],
)
def test_a_broken_plural_is_named(source: str, text: str, problem: str) -> None:
    """A message that a library would refuse, or that loses an argument, is said."""
    message = messages.read_icu(source)

    assert errors(messages.icu_problems(message, text, ("one",)))[0].startswith(problem)


@each(
    ("text", "severity", "problem"),
    [
        ("{place}: {count, plural, one {# a} other {# b}}", "error", "few, many"),
        ("{place}: {count, plural, one {# a} few {# b} other {# c}}", "warning", "many"),
        ("{place}: {count, plural, one {# a} few {# b} many {# c} other {# d}}", "", ""),
        ("{place}: {count, plural, one {# a} other {# a}}", "", ""),
    ],
)
def test_a_case_that_falls_back_is_a_doubt(text: str, severity: str, problem: str) -> None:
    """A language with other cases than English needs one of them, if its cases differ at all."""
    found = list(messages.icu_problems(messages.read_icu(PLURAL), text, POLISH))

    words = f"lacks the plural {problem} of count, which the language has"
    assert found == ([(severity, words)] if severity else [])


def test_words_are_what_a_reader_reads() -> None:
    text = "See <b>{name}</b> at https://x.org or a@b.org &amp; %s, don't {n, plural, other {go}}"

    assert messages.words("<b>{name}</b> at https://x.org &amp; %s") == ["at"]
    assert {*messages.words("{n, plural, other {two boats}} here")} == {"two", "boats", "here"}
    assert "don't" in messages.words(text.partition("{n,")[0])
