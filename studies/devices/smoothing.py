"""Which rule turns the outputs of each step into an answer that stays?

The networks of [inputs](#inputs) give outputs at each step, whose largest
changes more often than the exercise does. Three rules, each with a number,
change the answer less often:

- *hold*: an answer is given after n equal ones;
- *mean*: the largest of a running mean m of the outputs, m += (y - m) / n;
- *evidence*: the largest of the sums s of the outputs, of which none falls
  behind the largest by more than a bound b, s = max(s, max(s) - b) + y. That is
  the likeliest exercise now (Viterbi) if outputs are log-likelihoods of
  independent steps, and a change of the exercise has the likelihood e^-b.

The number of each person is the largest whose accuracy on the validation is at
most 0.005 below the best one of the rule, as `keras-rin stream` chooses it.
The validation is that of the learning rates: three people whom a network
streams that was trained without them, with one seed. The learning rates are
those of inputs, the test its test. All is in floats.
"""

import functools
import itertools

import numpy as np
from devices import inputs
from devices import streams
from devices import watch

from engine import pictures
from engine import record
from engine.many_models import ManyModels
from engine.measurement import Variant
from engine.partial_runs import PartialRuns
from engine.verdicts import mean_of

NETWORKS = inputs.NETWORKS[:4]
COST = 0.005
NEVER = watch.SEGMENT[1] * watch.RATE  # steps to settle, where it never does
PARTS = "validation", "test", "scores"
NUMBERS = {
    "hold": (1, 2, 4, 8, 16, 32),
    "mean": (1, 2, 4, 8, 16, 32),
    "evidence": (0, 1, 2, 4, 8, 16, 32, 64),
}
SCORES = "accuracies", "settle", "changes"


def measure(
    networks=NETWORKS,
    people=tuple(watch.PEOPLE),
    seeds=inputs.SEEDS,
    updates=inputs.UPDATES,
    test=inputs.TEST,
    partial=None,
):
    runs = PartialRuns(partial, inputs.FIELDS)
    make = functools.partial(run, runs, people, seeds, updates, test)
    keys = [(*network, part) for network in networks for part in PARTS]
    completed = runs.complete(keys, make)
    return {
        "people": people,
        "runs": [run for run in completed if run["part"] == "scores"],
    }


def run(runs, people, seeds, updates, test, name, layer, units, part):
    network = name, layer, units
    if part == "scores":
        parts = {
            tested: scores(
                runs[*network, tested], network, people, tested, seeds, test
            )
            for tested in ("validation", "test")
        }
        return {"weights": runs[*network, "test"]["weights"]} | parts
    return trained(*network, people, part, seeds, updates, test)


def trained(name, layer, units, people, part, seeds, updates, test):
    """Networks with the learning rates of inputs."""
    network = name, layer, units
    rates = dict(zip(people, inputs.stored(*network)["best"], strict=False))
    cases = [
        (rates[person], others, left_out, seed)
        for person, seed, others, left_out in cases_of(people, part, seeds)
    ]
    return inputs.train(*network, cases, updates, test)


def cases_of(people, part, seeds):
    """The people to train on and those left out, for each person and seed."""
    if part == "test":
        for person, seed in itertools.product(people, range(seeds)):
            yield person, seed, watch.others((person,)), (person,)
        return
    for person in people:
        left_out = inputs.validation_of(person)
        yield person, 0, watch.others((person, *left_out)), left_out


def scores(tested, network, people, part, seeds, test):
    """{rule: {number: {score: values of the networks}}}."""
    values = {
        rule: {number: {name: [] for name in SCORES} for number in numbers}
        for rule, numbers in NUMBERS.items()
    }
    answer = jitted(*network)
    for weights, case in zip(
        tested["trained"], cases_of(people, part, seeds), strict=True
    ):
        outputs, y = answer(weights, *case[2:], test)
        for rule, numbers in NUMBERS.items():
            for number, answers in zip(
                numbers, RULES[rule](outputs, numbers), strict=True
            ):
                of_answers = streams.scores_of(answers, y)
                for score in SCORES:
                    value = streams.rounded(of_answers[score])
                    values[rule][number][score].append(value)
    return values


def jitted(name, layer, units):
    """A function of weights, people to train on and left out: outputs, y."""
    import jax

    transform = inputs.features_of(name)
    many = ManyModels(inputs.build(name, layer, units), streams.loss)
    shapes = [variable.shape for variable in many.model.trainable_variables]
    outputs = jax.jit(many.outputs)

    def answer(weights, people, left_out, test):
        weights = [
            np.reshape(weight, shape).astype("float32")
            for weight, shape in zip(weights, shapes, strict=True)
        ]
        mean, deviation = watch.scale(people, transform)
        x, y = watch.streams(left_out, *test)
        x = x if transform is None else transform(x)
        return np.asarray(outputs(weights, (x - mean) / deviation)), y

    return answer


def hold(outputs, counts):
    answers = outputs.argmax(axis=-1)
    given = np.repeat(answers[None, :, 0], len(counts), axis=0)
    same, before, held = 0, answers[:, 0], []
    for now in answers.T:
        same = np.where(now == before, same + 1, 1)
        given = np.where(same >= np.reshape(counts, (-1, 1)), now, given)
        before = now
        held.append(given)
    return np.stack(held, axis=2)


def mean(outputs, counts):
    means = np.zeros((len(counts), *outputs[:, 0].shape))
    answers = []
    for y in np.moveaxis(outputs, 1, 0):
        means += (y - means) / np.reshape(counts, (-1, 1, 1))
        answers.append(means.argmax(axis=-1))
    return np.stack(answers, axis=2)


def evidence(outputs, bounds):
    sums = np.zeros((len(bounds), *outputs[:, 0].shape))
    answers = []
    for y in np.moveaxis(outputs, 1, 0):
        behind = sums - sums.max(axis=-1, keepdims=True)
        sums = np.maximum(behind, -np.reshape(bounds, (-1, 1, 1))) + y
        answers.append(sums.argmax(axis=-1))
    return np.stack(answers, axis=2)


RULES = {"hold": hold, "mean": mean, "evidence": evidence}


def chosen(run, rule):
    """The number of each person, from the validation."""
    numbers = NUMBERS[rule]
    accuracies = np.array(
        [run["validation"][rule][str(n)]["accuracies"] for n in numbers]
    )
    is_close = accuracies >= accuracies.max(axis=0) - COST
    return [max(itertools.compress(numbers, near)) for near in is_close.T]


def by_person(run, rule, score):
    """A mean over the seeds; of the largest output where the rule is None."""
    numbers = chosen(run, rule or "hold")
    values = []
    for place, number in enumerate(numbers):
        of_runs = run["test"][rule or "hold"][str(number if rule else 1)][score]
        of_runs = [NEVER if value is None else value for value in of_runs]
        values.append(np.mean(np.reshape(of_runs, (len(numbers), -1))[place]))
    return np.array(values)


def score_rows(results):
    for run in results["runs"]:
        for rule in (None, *RULES):
            accuracies, settle, changes = (
                by_person(run, rule, score) for score in SCORES
            )
            numbers = sorted(set(chosen(run, rule))) if rule else [""]
            yield [
                run["inputs"],
                run["layer"],
                run["weights"],
                rule or "none",
                ", ".join(map(str, numbers)),
                f"{accuracies.mean():.3f}",
                f"{settle.mean() / watch.RATE:.2f}",
                f"{changes.mean():,.0f}",
            ]


def difference_rows(results):
    for run, rule in itertools.product(results["runs"], ("mean", "evidence")):
        accuracy, settle, changes = (
            by_person(run, rule, score) - by_person(run, "hold", score)
            for score in SCORES
        )
        yield [
            run["layer"],
            run["weights"],
            rule,
            mean_of(accuracy, "+.3f", "+.3f"),
            mean_of(settle / watch.RATE, "+.2f", "+.2f"),
            mean_of(changes, "+,.0f", "+,.0f"),
        ]


def tables(results):
    header = ["inputs", "network", "weights", "rule", "numbers", "accuracy"]
    header += ["s to settle", "changes an hour"]
    differences = ["network", "weights", "rule", "accuracy", "s to settle"]
    differences += ["changes an hour"]
    return {
        "Answers on streams of each person, whom training has not seen (means "
        "over people and seeds)": record.markdown(
            header, score_rows(results), words=5
        ),
        "Minus the hold (mean and paired 95 % t interval over the people)": (
            record.markdown(differences, difference_rows(results), words=3)
        ),
    }


def draw(results):
    """Accuracy by changes of the answer an hour, for each number of a rule:
    means over networks and people.
    """
    figure, axes = pictures.subplots(5, 3)
    for rule, numbers in NUMBERS.items():
        accuracies, changes = (
            [
                np.mean(
                    [
                        run["test"][rule][str(n)][score]
                        for run in results["runs"]
                    ]
                )
                for n in numbers
            ]
            for score in ("accuracies", "changes")
        )
        axes.plot(changes, accuracies, "o-", label=rule)
    axes.set_xscale("log")
    axes.set_xticks([500, 1000, 2000, 4000], ["500", "1,000", "2,000", "4,000"])
    axes.minorticks_off()
    axes.set_xlabel("changes an hour")
    axes.set_ylabel("accuracy")
    axes.legend()
    return figure


PICTURES = {"smoothing.svg": draw}
VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {
    "networks": inputs.NETWORKS[3:4],
    "people": (1, 2),
    "seeds": 1,
    "updates": 2,
    "test": (1, 1_000),
}
