"""Does a header in integers answer as the network does in floats?

The trained networks of [streams](#streams), 15 runs each, become C headers
in floats, with int8 weights, and in integers alone, which are compiled with
gcc and read the same test streams, in counts of 1 / 1,024. The calibration of
a header in integers are streams of the people to train on. An answer is the
largest output of a step. `Header.cost` gives the cost of the first
run's header: flash and RAM as compiled with `-Os`, instructions in QEMU,
cycles in simavr. An `—` is more than the processor has.
"""

import contextlib
import functools
import pathlib
import tempfile

import keras
import numpy as np
from devices import streams
from devices import watch

from engine import record
from engine.measurement import Variant
from engine.partial_runs import PartialRuns
from keras_rin.export import export_c

COUNT = 2.0**-10  # of the sensor, in the units of the recordings
NETWORKS = tuple(
    (layer, size)
    for layer, size in streams.NETWORKS
    if layer.startswith(("RIN", "SimpleRNN", "GRU", "LSTM", "minGRU, bias -3"))
)
FORMS = {
    "float32": "float32",
    "int8 weights": "int8",
    "integers": "integer",
}
PROCESSORS = "Cortex-M0+", "Cortex-M4F", "ATmega328P"
NUMBERS = "flash", "ram", "per_step"


def measure(
    networks=NETWORKS,
    seeds=streams.SEEDS,
    updates=streams.UPDATES,
    test=streams.TEST,
    partial=None,
):
    runs = PartialRuns(partial, streams.FIELDS)
    make = functools.partial(run, runs, seeds, updates, test)
    parts = "test", "header"
    keys = [(*network, part) for network in networks for part in parts]
    completed = runs.complete(keys, make)
    return {"runs": [run for run in completed if run["part"] == "header"]}


def run(runs, seeds, updates, test, layer, size, part):
    if part == "header":
        return compared(runs[layer, size, "test"], layer, seeds, test)
    stored = record.read(record.STUDIES / "devices" / "results_streams.json")
    (chosen,) = (
        run
        for run in stored["runs"]
        if (run["layer"], run["size"], run["part"]) == (layer, size, "rates")
    )
    return streams.tested(chosen, layer, size, seeds, updates, test)


def compared(tested, layer, seeds, test):
    """Answers of the headers of each run, and the costs of the first run."""
    results = {"units": tested["units"], "weights": tested["weights"]}
    results |= {"right": [], "same": [], "costs": {}}
    for number, trained in enumerate(tested["trained"]):
        fold = watch.FOLDS[number // seeds]
        people = watch.others(fold)
        model = trained_model(layer, tested["units"], trained, people)
        seen, x, y = (
            *watch.streams(people, *test)[:1],
            *watch.streams(fold, *test),
        )
        answers = {}
        for form, arithmetic in FORMS.items():
            calibration = seen if form == "integers" else None
            with header_of(model, arithmetic, calibration) as header:
                answers[form] = answers_of(header, x)
                if number == 0:
                    results["costs"][form] = costs_of(header)
        right = {f: round(np.mean(a == y), 5) for f, a in answers.items()}
        same = {
            form: round(np.mean(of == answers["float32"]), 5)
            for form, of in answers.items()
        }
        results["right"].append(right)
        results["same"].append(same)
    return results


def trained_model(layer, units, trained, people, features=None):
    """Of counts, of which features are made and normalized as in training."""
    mean, deviation = (of / COUNT for of in watch.scale(people, features))
    before = [keras.layers.Normalization(mean=mean, variance=deviation**2)]
    if features is not None:
        before.insert(0, type(features).from_config(features.get_config()))
    model = streams.build(layer, units, *before)
    variables = model.trainable_variables
    for variable, values in zip(variables, trained, strict=True):
        variable.assign(np.reshape(values, variable.shape))
    return model


@contextlib.contextmanager
def header_of(model, arithmetic, seen=None):
    """The header of a model of counts, calibrated with streams or without."""
    calibration = None if seen is None else np.round(seen / COUNT)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "rin.h")
        yield export_c(model, path, arithmetic, calibration)


def answers_of(header, x):
    """The largest output of each step of streams, `(streams, steps)`."""
    return header.predict(np.round(x / COUNT)).argmax(axis=-1)


def costs_of(header):
    costs = {
        processor: {name: getattr(cost, name) for name in NUMBERS}
        for processor in PROCESSORS
        if not (cost := header.cost(processor)).problem
    }
    return {"state": header.state_bytes, "processors": costs}


def answer_rows(results):
    for run in rows_of(results):
        floats = np.mean([of["float32"] for of in run["right"]])
        for form in list(FORMS)[1:]:
            right, same = (
                [of[form] for of in run[name]] for name in ("right", "same")
            )
            yield [
                run["layer"],
                f"{run['weights']:,}",
                run["units"],
                form,
                f"{floats:.3f}",
                f"{np.mean(right):.3f}",
                f"{np.mean(right) - floats:+.4f}",
                f"{np.mean(same):.1%}",
                f"{min(same):.1%}",
            ]


def cost_rows(results):
    for run in rows_of(results):
        for form, costs in run["costs"].items():
            m0, m4, avr = (
                costs["processors"].get(name, {}) for name in PROCESSORS
            )
            numbers = (
                m0.get("flash"),
                m0.get("ram"),
                costs["state"],
                m0.get("per_step"),
                m4.get("per_step"),
                avr.get("flash"),
                avr.get("per_step"),
            )
            texts = [f"{number:,}" if number else "—" for number in numbers]
            yield [run["layer"], f"{run['weights']:,}", form, *texts]


def rows_of(results):
    return sorted(
        results["runs"], key=lambda run: (run["size"], run["layer"].lower())
    )


def tables(results):
    answers = ["layer", "weights", "units", "arithmetic", "float32"]
    answers += ["accuracy", "difference", "answers as in float32", "worst run"]
    costs = ["layer", "weights", "arithmetic", "flash, M0+", "RAM, M0+"]
    costs += ["bytes of states", "instructions, M0+", "instructions, M4F"]
    costs += ["flash, AVR", "cycles, AVR"]
    return {
        "Accuracy (mean of the runs) and answers on streams of people left "
        "out": record.markdown(answers, answer_rows(results), words=4),
        "Cost of the first run's header, in bytes, and of a step": (
            record.markdown(costs, cost_rows(results), words=3)
        ),
    }


VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {"networks": [("RIN", 350)], "seeds": 1, "updates": 2}
SMALLEST["test"] = 2, 1_000
