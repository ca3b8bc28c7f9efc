"""Are weights of 4 bits ahead of those of 8 in as many bytes?

The matrices of networks of [inputs](#inputs) are rounded to codes from -8 to 7
after training; the outputs are computed in floats. In a header the scales of
rows are powers of two, and mean and deviation of what a network reads are in
its kernel: *rows* rounds that. *columns* has shifts of what is read as well,
powers of two. *any scale* has one for each unit, of the kernel without mean and
deviation, which a header would multiply by. A row takes half the scale if
its squared error is less.

The compared network of 8 bits has units for about the flash of the one of 4
bits. Flash and instructions on a Cortex-M0+ are those of the first run's
header, and of that header with two codes in a byte and shifts of columns, whose
answers are not those of the network: it is compiled for its cost alone. The
learning rates are those of inputs, or of its larger network.
"""

import functools
import itertools
import pathlib
import re

import numpy as np
from devices import inputs
from devices import integers
from devices import smoothing
from devices import streams
from devices import watch

from engine import record
from engine.measurement import Variant
from engine.measurement import groups
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of
from keras_rin.export import Header

TOLD = inputs.INPUTS[1]
PAIRS = (  # of 4 bits, and of 8 in the same flash
    ((TOLD, "minGRU, bias -3", 21), (TOLD, "minGRU, bias -3", 15)),
    ((TOLD, "RIN, 0.95 I", 19),),
)
PARTS = "test", "scores"
LARGEST = 7
FORMS = "floats", "rows", "columns", "any scale"


def measure(
    pairs=PAIRS,
    people=tuple(watch.PEOPLE),
    seeds=inputs.SEEDS,
    updates=inputs.UPDATES,
    test=inputs.TEST,
    partial=None,
):
    runs = PartialRuns(partial, inputs.FIELDS)
    make = functools.partial(run, runs, people, seeds, updates, test)
    keys = [
        (*network, part) for pair in pairs for network in pair for part in PARTS
    ]
    completed = runs.complete(keys, make)
    return {"runs": [run for run in completed if run["part"] == "scores"]}


def run(runs, people, seeds, updates, test, name, layer, units, part):
    network = name, layer, units
    if part == "test":
        return smoothing.trained(*network, people, part, seeds, updates, test)
    results, tested = {form: [] for form in FORMS}, runs[*network, "test"]
    answer = smoothing.jitted(*network)
    cases = smoothing.cases_of(people, "test", seeds)
    for weights, (_, _, others, left_out) in zip(
        tested["trained"], cases, strict=True
    ):
        _, deviation = watch.scale(others, inputs.features_of(name))
        for form in FORMS:
            matrices = rounded(weights, form, deviation, units)
            outputs, y = answer(matrices, others, left_out, test)
            right = outputs.argmax(axis=-1) == y
            results[form].append(streams.rounded(right.mean()))
    costs = costs_of(network, tested["trained"][0], people[0])
    return (
        {"weights": tested["weights"], "people": len(people)} | results | costs
    )


def rounded(weights, form, deviation, units):
    """Weights with matrices of 4 bits: kernels first, the read-out last."""
    if form == "floats":
        return weights
    results, channels = [], len(deviation)
    for values in weights:
        values = np.array(values)
        rows = {channels * units: channels, units * units: units}
        rows[watch.CLASSES * units] = units
        if len(values) in rows:
            matrix = values.reshape(rows[len(values)], -1)
            factor = np.ones(len(matrix))
            if len(values) == channels * units and form != "any scale":
                factor = 1 / deviation
            matrix = matrix * factor[:, None]
            columns = np.ones(len(matrix))
            if form == "columns":
                columns = 2.0 ** np.round(np.log2(factor))
            codes = matrix / columns[:, None]
            values = of_4_bits(codes.T, form == "any scale").T
            values = values * (columns / factor)[:, None]
        results.append(values)
    return results


def of_4_bits(matrix, has_any_scale):
    scale = np.abs(matrix).max(axis=1, keepdims=True) / LARGEST
    if not has_any_scale:
        scale = 2.0 ** np.ceil(np.log2(scale))
    options = [
        part * scale * np.clip(np.round(matrix / (part * scale)), -8, 7)
        for part in (1, 0.5)
    ]
    errors = [((option - matrix) ** 2).sum(axis=1) for option in options]
    return np.where((errors[1] < errors[0])[:, None], *options[::-1])


def costs_of(network, trained, person):
    """Flash and instructions of the header, and of one with 4 bits."""
    name, layer, units = network
    others = watch.others((person,))
    model = integers.trained_model(
        layer, units, trained, others, inputs.features_of(name)
    )
    seen, _ = watch.streams(others)
    costs = {}
    with integers.header_of(model, "integer", seen) as header:
        costs["8 bits"] = integers.costs_of(header)["processors"]
        path = pathlib.Path(header.path)
        path.write_text(packed(path.read_text()))
        costs["4 bits"] = integers.costs_of(Header(path))["processors"]
    return {"costs": costs}


UNPACK = """for (int i = 0; i < columns; i += 2) {
            const int8_t codes = READ(matrix++);
            sum += (int32_t)x[i] * (int16_t)((int8_t)(codes << 4) >> 4);
            sum += (int32_t)x[i + 1] * (int16_t)(codes >> 4);
        }
"""
SCALE = """static const int8_t columns_of[18] PLACE = {1, 2, 3, 1, 2, 3};
static inline void scale_columns(int16_t x[], const int8_t shifts[], int n)
{
    for (int i = 0; i < n; i++)
        x[i] = INT16((int32_t)x[i] * ((int32_t)1 << READ(shifts + i)));
}

"""


def packed(text):
    """A header of two codes in a byte, and of shifts of the columns."""
    private = re.search(r"(\w+_private)_read_int8", text)[1]
    loop = r"for \(int i = 0; i < columns; i\+\+\)\n.*matrix\+\+\);\n"
    text = re.sub(loop, UNPACK, text)
    for matrix in re.findall(r"(\w+_kernel)\[\d+\]", text):
        columns = int(
            re.search(rf"\b{matrix},\s+\w+_shifts,\s+\S+, (\d+)", text)[1]
        )
        array = rf"(int8_t {matrix}\[)\d+(\] \w+ = \{{)([^}}]*)"
        codes = re.search(array, text)[3].split(",")
        count = len(codes) // columns * -(-columns // 2)
        halves = ", ".join(codes[:count])
        text = re.sub(array, rf"\g<1>{count}\g<2>{halves}", text)
    before, first, after = text.partition(f"    {private}_set(")
    call = "    scale_columns(a, columns_of, 18);\n"
    reset = "/* Sets the hidden"
    before, _, rest = before.partition(reset)
    text = before + SCALE + reset + rest + call + first + after
    for name in ("READ", "INT16", "PLACE"):
        full = {"READ": "read_int8", "INT16": "int16"}.get(name, name)
        text = re.sub(rf"\b{name}\b", f"{private}_{full}", text)
    return text


def by_person(run, form):
    return np.reshape(run[form], (run["people"], -1)).mean(axis=1)


def cost_rows(results):
    for run in results["runs"]:
        for bits, costs in run["costs"].items():
            m0, avr = (
                costs.get(name, {}) for name in ("Cortex-M0+", "ATmega328P")
            )
            forms = FORMS[:1] if bits == "8 bits" else FORMS[1:]
            accuracies = {
                form: f"{by_person(run, form).mean():.3f}" for form in forms
            }
            yield [
                run["layer"],
                run["units"],
                bits,
                *(f"{m0.get(name, 0):,}" for name in ("flash", "per_step")),
                f"{avr.get('per_step', 0):,}",
                *(accuracies.get(form, "") for form in FORMS),
            ]


def difference_rows(results):
    runs = groups(results["runs"], "inputs", "layer", "units")
    for (network, *others), form in itertools.product(PAIRS, FORMS[1:]):
        if network in runs:
            values = by_person(*runs[network], form)
            minus = [
                values - by_person(*runs[compared], "floats")
                for compared in (network, *others)
            ]
            texts = [mean_of(values, "+.4f", "+.4f") for values in minus]
            yield [*network[1:], form, *texts]


def tables(results):
    costs = ["network", "units", "weights of", "flash, M0+"]
    costs += ["instructions, M0+", "cycles, AVR", *FORMS]
    differences = ["network", "units", "4 bits", "minus its floats"]
    differences += ["minus those of the network of 8 bits"]
    return {
        "Cost of a header, and accuracy (mean over people and seeds) in floats "
        "and with 4 bits": record.markdown(costs, cost_rows(results), words=3),
        "Accuracy of 4 bits minus that in floats (mean and paired 95 % t "
        "interval over the people)": record.markdown(
            differences, difference_rows(results), words=3
        ),
    }


VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {
    "pairs": PAIRS[:1],
    "people": (1, 2),
    "seeds": 1,
    "updates": 2,
    "test": (1, 1_000),
}
