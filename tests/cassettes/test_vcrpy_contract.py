"""What we rely on in vcrpy; ``tests/environments`` runs this with older releases."""

import inspect

import pytest
import yaml
from vcr import VCR
from vcr.cassette import Cassette
from vcr.patch import CassettePatcherBuilder
from vcr.persisters import filesystem
from yaml.constructor import ConstructorError

from pytest_regen.cassettes.clients.vcr_patches import _builder, _PatchTarget
from pytest_regen.cassettes.clients.vcr_run import _VcrCassette
from pytest_regen.cassettes.files.parser import loader


def test_the_methods_we_override_are_there() -> None:
    """Each is called by vcrpy's own stubs; one renamed would be silently passed by."""
    for cls in (_PatchTarget, _VcrCassette):
        for name, value in vars(cls).items():
            ours = inspect.isfunction(value) or isinstance(value, property)
            if ours and name not in {"__init__", "__contains__"}:
                assert hasattr(Cassette, name), name


def test_the_arguments_we_give_are_taken() -> None:
    """What is given to a cassette, and what a configured VCR hands to one."""
    taken = inspect.signature(Cassette.__init__).parameters

    assert {"path", "record_mode", "persister", "serializer"} <= set(taken)
    merged = VCR().get_merged_config(path="x")
    assert set(merged) - {"path_transformer", "func_path_generator", "record_on_exception"} <= {
        *taken
    }
    assert hasattr(filesystem, "CassetteNotFoundError")


def test_patches_are_made_by_the_methods_that_are_skipped() -> None:
    """Of each client by one; one renamed would patch a client that was to be left alone."""
    skipped = vars(type(_builder())).keys() - {"_build_cassette_subclass"}
    names = {name for name in skipped if not name.startswith("__")}
    makers = names & vars(CassettePatcherBuilder).keys()

    assert makers >= {"_aiohttp", "_httplib2", "_tornado"} & names
    assert makers & {"_httpx", "_httpcore"}
    assert all(not list(getattr(_builder(), name)()) for name in makers)


TAGGED = """
tuple: !!python/tuple [1, 2]
text: !!python/unicode "a"
file: !!python/object/new:_io.BytesIO
  state: !!python/tuple [!!binary "YWI=", 0, null]
pieces: !!python/object/apply:builtins.iter
  args: [[one, two]]
"""


def test_tags_of_older_releases_are_read_without_their_loader() -> None:
    """As vcrpy reads them since 8.2.1; before, its loader would run any code a file asks for."""
    found = yaml.load(TAGGED, loader())

    assert (found["tuple"], found["text"]) == ((1, 2), "a")
    assert found["file"].read() == b"ab"
    assert list(found["pieces"]) == ["one", "two"]
    with pytest.raises(ConstructorError, match="could not determine a constructor"):
        yaml.load("a: !!python/object/apply:os.getcwd []", loader())
