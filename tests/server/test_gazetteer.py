"""The gazetteer: searched as people type, filtered by level, every label one place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from subject_flow import Model, client_of
from tables import each

from pytest_regen.server.gazetteer import Gazetteer, Level, fold, read_places, well_known

PATH = "/api/location/search"


def found(query: str, level: Level | None = None) -> list[str]:
    """Return the labels that a search finds, the best first."""
    return [place.label for place in well_known().search(query, level=level)]


@each(
    ("query", "level", "best"),
    [
        ("austin", None, "Austin, TX"),
        ("San Fr", "city", "San Francisco, CA"),
        ("portland me", "city", "Portland, ME"),
        ("portland, oregon", "city", "Portland, OR"),
        ("zurich", "city", "Zürich, CH"),
        ("são paulo", "city", "São Paulo, SP"),
        ("lodz", "city", "Łódź, PL"),
        ("st johns", "city", "St. John's, NL"),
        ("new york", "state", "New York, US"),
        ("tx", "state", "Texas, US"),
        ("wa", "state", "Washington, US"),
        ("georgia", "country", "Georgia"),
        ("georgia", "state", "Georgia, US"),
        ("cote divoire", "country", "Côte d'Ivoire"),
        ("fr", "country", "France"),
        ("kingdom", "country", "United Kingdom"),
    ],
)
def test_what_people_type(query: str, level: Level | None, best: str) -> None:
    """Beginnings of words, without accents or capitals, narrowed by what a place lies in."""
    assert found(query, level)[0] == best


AS_TYPED: list[tuple[str, Level, str]] = [
    ("UK", "country", "United Kingdom"),
    ("uk", "country", "United Kingdom"),
    ("USA", "country", "United States"),
    ("U.S.A.", "country", "United States"),
    ("us", "country", "United States"),
    ("America", "country", "United States"),
    ("united states of america", "country", "United States"),
    ("England", "state", "England, GB"),
    ("England", "country", "United Kingdom"),
    ("scotland", "state", "Scotland, GB"),
    ("great britain", "country", "United Kingdom"),
    ("Turkey", "country", "Türkiye"),
    ("Czech Republic", "country", "Czechia"),
    ("Holland", "country", "Netherlands"),
    ("Deutschland", "country", "Germany"),
    ("España", "country", "Spain"),
    ("Italia", "country", "Italy"),
    ("brasil", "country", "Brazil"),
    ("日本", "country", "Japan"),
    ("Polska", "country", "Poland"),
    ("Korea", "country", "South Korea"),
    ("Ivory Coast", "country", "Côte d'Ivoire"),
    ("UAE", "country", "United Arab Emirates"),
    ("Burma", "country", "Myanmar"),
    ("Україна", "country", "Ukraine"),
    ("NYC", "city", "New York, NY"),
    ("new york city", "city", "New York, NY"),
    ("New York, NY", "city", "New York, NY"),
    ("SF", "city", "San Francisco, CA"),
    ("sf", "city", "San Francisco, CA"),
    ("san fran", "city", "San Francisco, CA"),
    ("LA", "city", "Los Angeles, CA"),
    ("L.A.", "city", "Los Angeles, CA"),
    ("Vegas", "city", "Las Vegas, NV"),
    ("Philly", "city", "Philadelphia, PA"),
    ("washington dc", "city", "Washington, DC"),
    ("Brooklyn", "city", "Brooklyn, NY"),
    ("austin texas", "city", "Austin, TX"),
    ("london uk", "city", "London, ENG"),
    ("london, england", "city", "London, ENG"),
    ("London Ontario", "city", "London, ON"),
    ("Birmingham, UK", "city", "Birmingham, ENG"),
    ("Newcastle upon tyne", "city", "Newcastle upon Tyne, ENG"),
    ("München", "city", "Munich, BY"),
    ("munchen", "city", "Munich, BY"),
    ("Köln", "city", "Cologne, NW"),
    ("Wien", "city", "Vienna, AT"),
    ("Roma", "city", "Rome, IT"),
    ("Firenze", "city", "Florence, IT"),
    ("Milano", "city", "Milan, IT"),
    ("Lisboa", "city", "Lisbon, PT"),
    ("Praha", "city", "Prague, CZ"),
    ("Warszawa", "city", "Warsaw, PL"),
    ("Kiev", "city", "Kyiv, UA"),
    ("Москва", "city", "Moscow, RU"),
    ("東京", "city", "Tokyo, JP"),
    ("北京", "city", "Beijing, CN"),
    ("Bangalore", "city", "Bengaluru, KA"),
    ("bombay", "city", "Mumbai, MH"),
    ("saigon", "city", "Ho Chi Minh City, VN"),
    ("Bayern", "state", "Bavaria, DE"),
    ("NRW", "state", "North Rhine-Westphalia, DE"),
    ("calif", "state", "California, US"),
    ("Québec", "state", "Quebec, CA"),
]


def test_places_are_found_as_people_call_them() -> None:
    """Short, native and old names, with or without what a place lies in: the first is the right."""
    missed = [
        (query, level, found(query, level)[:2])
        for query, level, best in AS_TYPED
        if found(query, level)[:1] != [best]
    ]

    assert len(AS_TYPED) >= 60
    assert missed == []


def test_a_short_name_beats_a_beginning() -> None:
    """A place called SF comes before Sfax, and one called UK before Ukraine."""
    assert found("SF", "city")[0] == "San Francisco, CA"
    assert found("sfa", "city")[0] == "Sfax, TN"
    assert found("ukr", "country")[0] == "Ukraine"


def test_the_words_of_a_query_may_stand_in_any_order() -> None:
    """A state before its city finds the same city."""
    assert found("texas austin", "city") == found("austin texas", "city") == ["Austin, TX"]


def test_what_lies_in_a_place_is_not_the_place() -> None:
    """The name of a state alone finds no cities; a city is found by its own name."""
    assert found("texas", "city") == []


@pytest.mark.parametrize("query", ["", " ", "xyzzy", "!!", "\u200b", "a" * 5_000])
def test_nothing_is_found_for_nothing(query: str) -> None:
    """What names no place finds none."""
    assert found(query) == []


@pytest.mark.parametrize("level", ["city", "state", "country"])
def test_a_level_is_kept(level: Level) -> None:
    """Every place found is of the level that was asked for."""
    for letter in "abcdefghijklmnopqrstuvwxyz":
        places = well_known().search(letter, level=level, limit=1_000)
        assert all(place.level == level for place in places)


def test_every_label_is_one_place() -> None:
    """An answer that is a label means one place, and is read back as it."""
    places = well_known().places

    assert len({fold(place.label) for place in places}) == len(places) > 500
    assert all(well_known().by_label(place.label) == place for place in places)


def test_every_place_is_found_by_its_label() -> None:
    """Typing the whole label shows the place among the first."""
    for place in well_known().places:
        assert place in well_known().search(place.label, level=place.level)


@pytest.mark.parametrize(
    ("label", "level", "resolved"),
    [
        ("Austin, TX", "city", "Austin, TX"),
        ("Austin, TX", None, "Austin, TX"),
        ("Austin, TX", "country", None),
        ("austin, tx", "city", None),
        ("Reykjavik", "city", None),
        ("Naples", "city", None),
        ("Atlantis", None, None),
    ],
)
def test_only_a_label_means_a_place(label: str, level: Level | None, resolved: str | None) -> None:
    """To the letter: a name stands for one place in a list, and for others outside of it."""
    place = well_known().by_label(label, level=level)

    assert (place and place.label) == resolved


def test_codes_have_their_form() -> None:
    """Countries have two letters, states one to three, and no name is empty or padded."""
    for place in well_known().places:
        assert len(place.country_code) == 2
        assert place.country_code.isupper()
        assert place.state_code is None or 1 <= len(place.state_code) <= 3
        assert all(n == n.strip() and n for n in (place.name, place.country))


def test_a_gazetteer_of_ones_own() -> None:
    """The format is short enough to write by hand."""
    own = Gazetteer(read_places("# two\nUT Utopia\n  NO Nowhere\n    - Here, There\n"))

    assert [place.label for place in own.places] == [
        "Utopia",
        "Nowhere, UT",
        "Here, NO",
        "There, NO",
    ]
    assert own.search("th")[0].surroundings == "Nowhere, Utopia"


@given(text=st.text(max_size=60))
def test_folding_is_stable(text: str) -> None:
    """Folded text folds to itself, and any text can be searched for."""
    assert fold(fold(text)) == fold(text)
    well_known().search(text)


@pytest.fixture(scope="module")
def client() -> TestClient:
    """Return a client of one application."""
    return client_of(Model())


def test_the_endpoint_answers_the_parts_of_a_place(client: TestClient) -> None:
    """City, state and country each with name, and where it has one its code."""
    answer = client.get(PATH, params={"q": "austin", "level": "city"})

    assert answer.json()["places"] == [
        {
            "label": "Austin, TX",
            "level": "city",
            "name": "Austin",
            "surroundings": "Texas, United States",
            "city": {"name": "Austin"},
            "state": {"code": "TX", "name": "Texas"},
            "country": {"code": "US", "name": "United States"},
        }
    ]


def test_what_was_found_may_be_cached(client: TestClient) -> None:
    """Places change rarely; a browser may keep them for an hour."""
    answer = client.get(PATH, params={"q": "austin"})

    assert answer.headers["cache-control"] == "private, max-age=3600"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"q": "a"},
        {"q": "a" * 101},
        {"q": "austin", "level": "planet"},
        {"q": "austin", "limit": "0"},
        {"q": "austin", "limit": "11"},
        {"q": "austin", "limit": "9" * 5_000},
        {"q": "austin", "limit": "\u0663"},
    ],
)
def test_a_search_that_cannot_be(client: TestClient, parameters: dict[str, Any]) -> None:
    """400 INVALID_SEARCH that names the parameter."""
    answer = client.get(PATH, params=parameters)

    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_SEARCH")
    assert answer.json()["where"] in {"q", "level", "limit"}


def test_scope_is_another_name_for_level(client: TestClient) -> None:
    """Whoever says `scope` is understood, and `any` searches every level."""
    states = client.get(PATH, params={"q": "new york", "scope": "state"}).json()["places"]
    everything = client.get(PATH, params={"q": "new york", "scope": "any"}).json()["places"]

    assert [place["level"] for place in states] == ["state"]
    assert {place["level"] for place in everything} == {"city", "state"}
