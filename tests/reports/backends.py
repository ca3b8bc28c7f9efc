"""Which tests pass on which backend.

    .ci/run
    KERAS_BACKEND=torch pytest -n 2 \
        -m "not one_backend and (each_backend or not exhaustive)" \
        --junitxml=runs/backends/torch.xml
    python -m tests.reports.backends

Writes to OUTPUT how many tests of each area passed, why others were skipped,
and how many that ran on TensorFlow are not repeated. A backend may have several
reports, such as those of the two tiers, `tensorflow.xml` and
`tensorflow_exhaustive.xml`; one without a report is left out.
"""

import collections
import pathlib
import re

from absl import app
from absl import flags

from experiments import results
from tests.reports import reports

FLAGS = flags.FLAGS
REPORTS = pathlib.Path("runs/backends")  # of pytest
BACKENDS = ["tensorflow", "jax", "torch"]
# A test counts for the first area whose pattern its name begins with.
AREAS = {
    "layers": "(adapt|rin|rin_cell|deep_transition_rin_cell|layer_contract"
    "|noisy_rnn|linear_residual|residual_branch|residual_conv2d"
    "|residual_dense|residual_dense_stack|fixed_projection"
    "|identity_trajectories|offset_options|simple_rnn)[.]",
    "fused recurrence": "(recurrence|fused_layer|transformations)[.]",
    "initializers, regularizers, constraints": "(chains|offset|partial_identity"
    "|per_gate|half_precision|small_variance_normal|square|regularizers"
    "|constraints|optimizers)[.]",
    "models, constructions": "(residual_convnet|near_identity|perfect_fit"
    "|peeling)[.]",
    "diagnostics": "(fisher_memory|nonnormality|hidden_chain|gradients"
    "|decoding|recurrent_layers|state_growth|spectrum|exact_diagnostics"
    "|autodiff|gated_cells|state_map|jacobians|lyapunov|fixed_points"
    "|fixed_point_search|preflight|layer_inputs)[.]",
    "plots": "(curves|drawing|spectra|states)[.]",
    "callbacks": "(keep_best|recurrent_diagnostics|resumable_training"
    "|restore_on_nan|checkpoint|model_description"
    "|every_optimizer|kills|files)[.]",
    "saving and loading": "(saved_files|offset_file)[.]",
    "export, SavedModel": r"export[.].*\[SavedModel\]",
    "export, ONNX": r"export[.].*(\[ONNX\]|onnx)",
    "streaming step": "(streaming_step|stepwise|cell_step|streamed_graphs)[.]",
    "streaming export, LiteRT": r"export_streaming[.](test_litert|"
    r"test_the_converter|test_a_step_in_integers|.*m\.tflite)",
    "streaming export, SavedModel": "export_streaming[.]",
    "multiple devices": "many_devices[.]",
    "tasks": "(adding|babi|copying|character_stream|flip_flop"
    "|sequential_pixels)[.]",
    "examples": "(examples|flags|interrupts)[.]",
    "benchmarks": "benchmarks[.]",
    "experiments": "(claims|findings|pictures|protocols|runner|tables|training"
    "|verdicts)[.]",
    "names, arguments, documentation": "(public_names|architecture|arguments"
    "|backends|callers|cases|insert_tables|language|mathematics|pages|reports"
    "|robustness|version|versions|layer_walk)[.]",
}


def area_of(test):
    for area, pattern in AREAS.items():
        if re.match(f"test_{pattern}", test):
            return area
    raise ValueError(f"{test} is of no area in AREAS.")


def count(*paths):
    """Passed, failed and skipped tests of pytest reports, by area."""
    areas = collections.defaultdict(
        lambda: {"passed": 0, "failed": [], "skipped": {}}
    )
    for name, (outcome, why) in reports.read(*paths).items():
        area = areas[area_of(name)]
        if outcome == "passed":
            area["passed"] += 1
        elif outcome == "failed":
            area["failed"].append(name)
        else:
            area["skipped"][why] = area["skipped"].get(why, 0) + 1
    return dict(areas)


def count_missing(whole, part):
    """Tests of each area that are in the first reports alone."""
    missing = reports.read(*whole).keys() - reports.read(*part).keys()
    return collections.Counter(map(area_of, missing))


def tables(record):
    notes = {}

    def cell(counts):
        skipped = counts["skipped"]
        text = [str(counts["passed"])] * (counts["passed"] > 0)
        text += [f"{len(counts['failed'])} failed"] * bool(counts["failed"])
        if skipped:
            numbers = [notes.setdefault(r, len(notes) + 1) for r in skipped]
            marks = ", ".join(f"({n})" for n in sorted(numbers))
            text.append(f"{sum(skipped.values())} skipped {marks}")
        if counts.get("not repeated"):
            text.append(f"{counts['not repeated']} not repeated")
        return ", ".join(text) or "not run"

    runs = record["runs"]
    areas = [
        area for area in AREAS if any(area in run for run in runs.values())
    ]
    none = {"passed": 0, "failed": [], "skipped": {}}
    rows = [
        [area, *(cell(run.get(area, none)) for run in runs.values())]
        for area in areas
    ]
    table = results.markdown(["area", *runs], rows)
    why = [f"{number}. {reason}\n" for reason, number in notes.items()]
    return {"table.md": "\n".join([table, "".join(why)])}


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
    output = results.prepare(FLAGS.output)
    found = {
        backend: sorted(REPORTS.glob(f"{backend}*.xml")) for backend in BACKENDS
    }
    if not found["tensorflow"]:
        raise app.UsageError(
            f"There is no {REPORTS}/tensorflow.xml, which .ci/run writes."
        )
    runs = {backend: count(*files) for backend, files in found.items() if files}
    for backend, run in runs.items():
        missing = count_missing(found["tensorflow"], found[backend])
        for area, number in missing.items():
            none = {"passed": 0, "failed": [], "skipped": {}}
            run.setdefault(area, none)["not repeated"] = number
    results.write(
        output, {"tables": "tests.reports.backends", "runs": runs}, tables
    )


if __name__ == "__main__":
    flags.DEFINE_string(
        "output", "docs/results/backends", "Directory of results and tables."
    )
    flags.register_validator("output", str.strip, "Name a directory.")
    app.run(main)
