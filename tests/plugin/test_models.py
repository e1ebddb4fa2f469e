"""What is known of a model that was asked: it retires, or why it declined."""

import pytest
from plugin_project import Project, emulated
from reference_writer import ReferenceWriter

OLD = ("--regen", "--regen-record", "once", "--regen-model", "claude-sonnet-4-5")


def test_a_deprecated_model_heals_where_warnings_are_errors(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One note says when it ends, however many types it wrote."""
    for name in ("GET_v1_projects", "GET_v1_others"):
        project.broken(name)

    with emulated(monkeypatch, ReferenceWriter()):
        result = project.run(*OLD, "-W", "error")

    assert result.ret == 0
    note = "note: claude-sonnet-4-5 is deprecated by its provider and *retire*"
    result.stdout.fnmatch_lines([note, "regenerated: *"])
    assert result.stdout.str().count("by its provider") == 1
