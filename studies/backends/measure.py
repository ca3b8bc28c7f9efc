"""Which tests pass on which backend?

The reports that `.ci/run` writes to `runs/backends`, and that of

    KERAS_BACKEND=torch pytest -n 2 --junitxml=runs/backends/torch.xml \\
        -m "each_backend or not (one_backend or exhaustive)"

are counted: how many tests of each area passed, why others were skipped, and
how many that ran on TensorFlow are not repeated. A backend without a report is
left out. On a machine with a GPU, the tests of layers, recurrence and some
diagnostics ran on JAX, with products in float32: by default XLA computes them
with fewer bits.

    KERAS_BACKEND=jax JAX_DEFAULT_MATMUL_PRECISION=highest pytest \\
        -m "each_backend or not (one_backend or exhaustive)" \\
        --junitxml=runs/backends/gpu.xml
"""

import collections
import re

from engine import record
from engine import reports
from engine.measurement import Variant

BACKENDS = ["tensorflow", "jax", "torch"]
# A test counts for the first area whose pattern its name begins with.
AREAS = {
    "layers": "(adapt|rin|rin_cell|deep_transition_rin_cell|layer_contract"
    "|noisy_rnn|residual_layers|residual_conv2d|fixed_projection"
    "|identity_trajectories|offset_options|simple_rnn)[.]",
    "fused recurrence": "(recurrence|fused_layer|transformations)[.]",
    "initializers, regularizers, constraints": "(initializers|regularizers"
    "|constraints|optimizers)[.]",
    "models, constructions": "(residual_convnet|near_identity|perfect_fit)[.]",
    "diagnostics": "(fisher_memory|nonnormality|hidden_chain|gradients"
    "|decoding|recurrent_layers|state_growth|spectrum|exact_diagnostics"
    "|autodiff|state_map|jacobians|lyapunov|fixed_points"
    "|preflight|layer_inputs)[.]",
    "plots": "plots[.]",
    "callbacks": "(keep_best|recurrent_diagnostics|resumable_training"
    "|restore_on_nan|checkpoint|model_description"
    "|every_optimizer|kills|files)[.]",
    "saving and loading": "(saved_files|offset_file)[.]",
    "streaming step": "(streaming_step|stepwise)[.]",
    "export, ONNX": r"(export|step_files)[.].*(\[ONNX\]|onnx|training_mode)",
    "streaming export, LiteRT": r"(export|step_files)[.].*(litert"
    r"|the_converter|step_in_integers|masked_step|tflite)",
    "streaming export, SavedModel": "(export|step_files)[.].*(step|prints"
    "|streaming|refused)",
    "streaming export, C": "(c_header|demo)[.]",
    "export, SavedModel": "export[.]",
    "multiple devices": "many_devices[.]",
    "tasks": "tasks[.]",
    "examples": "(activity|examples|flags|interrupts)[.]",
    "benchmarks": "benchmarks[.]",
    "experiments": "(claims|findings|pictures|protocols|runner|tables|training"
    "|verdicts)[.]",
    "names, arguments, documentation": "(public_names|architecture|arguments"
    "|callers|cases|language|mathematics|(study_)?pages|site|version"
    "|layer_walk)[.]",
}
VARIANTS = {
    "": Variant("On CPUs"),
    "gpu": Variant("JAX on a GPU", {"backends": ["gpu"]}, "jax"),
}
NO_TESTS = {"passed": 0, "failed": [], "skipped": {}}


def area_of(test):
    for area, pattern in AREAS.items():
        if re.match(f"test_{pattern}", test):
            return area
    raise ValueError(f"{test} is of no area in AREAS.")


def count(*paths):
    """Passed, failed and skipped tests of reports, by area."""
    areas = collections.defaultdict(
        lambda: {"passed": 0, "failed": [], "skipped": {}}
    )
    for name, (outcome, reason) in reports.read(*paths).items():
        area = areas[area_of(name)]
        if outcome == "passed":
            area["passed"] += 1
        elif outcome == "failed":
            area["failed"].append(name)
        else:
            area["skipped"][reason] = area["skipped"].get(reason, 0) + 1
    return dict(areas)


def count_missing(all_paths, paths):
    """Tests of each area that are in the first reports alone."""
    missing = reports.read(*all_paths).keys() - reports.read(*paths).keys()
    return collections.Counter(map(area_of, missing))


def measure(backends=BACKENDS, folder=reports.RUNS / "backends"):
    paths = {name: reports.of_backend(name, folder) for name in backends}
    runs = {name: count(*files) for name, files in paths.items() if files}
    for backend, run in runs.items():
        first = paths[backends[0]]
        missing = count_missing(first, paths[backend])
        for area, number in missing.items():
            run.setdefault(area, {**NO_TESTS})["not repeated"] = number
    return {"runs": runs}


def tables(results):
    runs, notes = results["runs"], {}
    areas = [
        area for area in AREAS if any(area in run for run in runs.values())
    ]
    rows = [
        [area, *(cell(run.get(area, NO_TESTS), notes) for run in runs.values())]
        for area in areas
    ]
    table = record.markdown(["area", *runs], rows)
    reasons = [f"{number}. {reason}\n" for reason, number in notes.items()]
    return {"Tests that passed": "\n".join([table, "".join(reasons)])}


def cell(counts, notes):
    """The counts of a table's cell; notes number the reasons of skipped."""
    skipped = counts["skipped"]
    parts = [str(counts["passed"])] * (counts["passed"] > 0)
    parts += [f"{len(counts['failed'])} failed"] * bool(counts["failed"])
    if skipped:
        numbers = [
            notes.setdefault(reason, len(notes) + 1) for reason in skipped
        ]
        marks = ", ".join(f"({number})" for number in sorted(numbers))
        parts.append(f"{sum(skipped.values())} skipped {marks}")
    if counts.get("not repeated"):
        parts.append(f"{counts['not repeated']} not repeated")
    return ", ".join(parts) or "not run"
