"""``--regen-provider template``: failing types are written anew without a model."""

import pytest
from plugin_project import Project
from unit_project import KIND, SETTINGS
from unit_work import ENGLISH, write_json

from pytest_regen.regeneration import partial_regenerate, verbs
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.turns import TemplateProvider

FREE = ("--regen", "--regen-provider", "template")
TABLE = '[tool.pytest-regen]\nprovider = "template"\n'


def test_the_table_makes_it_the_default(project: Project) -> None:
    """``provider`` in the project's table: ``--regen`` alone heals, and the advice is that."""
    project.broken()
    (project.path / "pyproject.toml").write_text(TABLE, "utf-8")

    gate = project.run()
    planned = project.run("--regen-dry-run")
    healed = project.run("--regen")

    gate.stdout.fnmatch_lines(["*pytest *::Owner --regen"])
    planned.stdout.fnmatch_lines(["dry run: *::Owner: would write page 1 by the template"])
    assert healed.parseoutcomes() == {"passed": 2, "regenerated": 1}


def test_what_the_template_wrote_is_healed_by_it(project: Project) -> None:
    """Who made a store without a key needs none to heal it, also what a person adopted."""
    path = project.store()
    partial_regenerate(path, provider=TemplateProvider(), accept_any=True)
    source = path / "ProjectDataObject.cs"
    source.write_text(source.read_text("utf-8").replace('"state"', '"stat"'), "utf-8")
    verbs.adopt(StorePlace(path))

    gate = project.run()
    healed = project.run("--regen")

    gate.stdout.fnmatch_lines(["*regenerate: *::Owner --regen"])
    assert healed.parseoutcomes() == {"passed": 2, "regenerated": 1}
    healed.stdout.fnmatch_lines(["regenerated: *::Owner page 1, by the template"])
    assert not (project.path / "cassettes").exists()


def test_a_hook_comes_before_the_table_and_the_option_before_the_hook(project: Project) -> None:
    """Who answers is what is said closest to the run; a model beside the template is refused."""
    project.broken()
    project.answered_by("Stubborn")
    (project.path / "pyproject.toml").write_text(TABLE, "utf-8")

    hooked = project.run("--regen")
    contradicting = project.run(*FREE, "--regen-model", "claude-sonnet-5-5")
    free = project.run(*FREE)

    assert contradicting.ret == pytest.ExitCode.USAGE_ERROR
    contradicting.stderr.fnmatch_lines(["*--regen-provider template and --regen-model*contradict*"])
    hooked.assert_outcomes(passed=2, failed=1)
    assert free.parseoutcomes() == {"passed": 2, "regenerated": 1}


def test_what_a_test_wants_beyond_the_types_is_for_a_model(project: Project) -> None:
    """The template reads no corrections: it is tried once, and the advice names a model."""
    project.store()
    project.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.regen(store="generated/GET_v1_projects", types=["Owner"], attempts=5)
        def test_summary(regen_store):
            owner = regen_store("generated/GET_v1_projects")["Owner"]
            assert "/// <summary>" in owner.source, "write a summary"
        """
    )

    result = project.run(*FREE)

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "still failing: *::Owner [[]unfixable[]], by the template",
            "  the template writes what is asked for, and that has the same fault",
            "next: *--regen-model MODEL*",
        ]
    )


def test_units_of_a_kind_are_skipped_and_sessions_are_not_its_business(project: Project) -> None:
    """A unit says that it takes a model; the provider of a test stays who it was."""
    (project.path / "regen_kinds.py").write_text(KIND, "utf-8")
    stores = '[tool.pytest.ini_options]\nregen_stores = ["generated/*"]'
    settings = SETTINGS.replace("[tool.pytest.ini_options]", stores)
    (project.path / "pyproject.toml").write_text(settings, "utf-8")
    write_json(project.path / "locales" / "en.json", ENGLISH)
    write_json(project.path / "locales" / "de.json", {})
    project.broken()
    project.pytester.makepyfile(
        """
        from pytest_regen.turns import AnthropicProvider

        def test_provider(regen_provider):
            assert isinstance(regen_provider, AnthropicProvider)
        """
    )

    result = project.run(*FREE)

    result.stdout.fnmatch_lines(
        ["not regenerated: locales/de.json::*", "  the template cannot write units of a kind"]
    )
    result.stdout.fnmatch_lines(["regenerated: *::Owner page 1, by the template"])
    assert result.parseoutcomes()["passed"] == 3
