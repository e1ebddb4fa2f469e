"""The pytest plugin: begin at ``plugin``."""

import sys

import pytest

# pytest rewrites assertions in every module of a distribution that has a plugin. Its import hook
# takes several times as long as Python's own for the same module, in every run of every suite that
# has the package installed, and we raise errors rather than assert. Only what users test their own
# code with does. There is no public way out; where this finds nothing, imports are just slower.
for _finder in sys.meta_path:
    getattr(_finder, "_must_rewrite", set()).discard("pytest_regen")
pytest.register_assert_rewrite("pytest_regen.testing")
