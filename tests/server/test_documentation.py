"""The page about the server says what the server does."""

import re
from dataclasses import fields
from inspect import signature
from pathlib import Path

from pytest_regen import errors
from pytest_regen.server import ServerSettings, create_app
from pytest_regen.server.gazetteer import well_known

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "server.md").read_text("utf-8")
SOURCE = "".join(
    path.read_text("utf-8") for path in (ROOT / "pytest_regen" / "server").rglob("*.py")
)

NO_CODES = {"CLIENT_GONE", "PYTEST_REGEN_SEAL_KEY", "LOOPBACK_HOSTS"}


def test_every_code_is_documented_and_every_documented_one_exists() -> None:
    """The table of errors lists exactly the codes that an answer can carry."""
    raised = set(re.findall(r'"([A-Z]{2,}(?:_[A-Z]+)+|BUSY|INTERNAL|REASKED)"', SOURCE))
    of_context = {found.code for found in vars(errors).values() if hasattr(found, "code")}
    of_routes = {"NOT_FOUND", "METHOD_NOT_ALLOWED"}
    table = TEXT.partition("| status | code |")[2].partition("\n\n")[0]

    documented = set(re.findall(r"`([A-Z_]+)`", table))
    assert documented == (raised | of_context | of_routes) - NO_CODES


def test_every_option_is_documented() -> None:
    """Each parameter and each setting has its row."""
    names = [*signature(create_app).parameters, *(field.name for field in fields(ServerSettings))]
    rows = " ".join(line for line in TEXT.splitlines() if line.startswith("| `"))

    assert [name for name in names if f"`{name}`" not in rows] == ["agent"]


def test_the_number_of_places_is_about_right() -> None:
    """The page does not promise more places than there are."""
    (promised,) = re.findall(r"some (\d+)\s+well-known", TEXT)

    assert abs(len(well_known().places) - int(promised)) < 20
