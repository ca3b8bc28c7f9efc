"""What an import of the package brings."""

import json

import pytest

# Modules of which `keras` may import some, and `keras_rin` none.
HEAVY = ["matplotlib", "scipy", "tensorflow", "torch"]
LIGHT = {"scipy", "scipy.version"}  # and its private modules
NEW_MODULES = f"""
import json, sys, keras
for name in list(sys.modules):
    if name.split(".")[0] in {HEAVY}:
        del sys.modules[name]
before = set(sys.modules)
import keras_rin
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.one_backend
def test_an_import_brings_nothing_heavy(run_script):
    new = json.loads(run_script(NEW_MODULES))
    assert "keras_rin.layers._rin" in new
    heavy = {name for name in new if name.split(".")[0] in HEAVY}
    assert {name for name in heavy if "._" not in name} <= LIGHT
