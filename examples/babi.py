"""Answers questions about short stories, the bAbI tasks, task by task.

    python examples/babi.py --data_dir=DIR
    python examples/babi.py --data_dir=DIR --task=1 --task=14 --layers=RIN

DIR holds the files of the tasks, `qa1_..._train.txt` and so on. Trains the
network of `babi_network.py` with each layer, and prints one table: tasks
against layers, and the answer that is most frequent in training.
"""

import dataclasses

import babi_network
import comparison
import outputs
from absl import app
from absl import flags
from absl import logging

from keras_rin.tasks import babi

BASELINE = "most frequent answer"

FLAGS = flags.FLAGS


def run_task(task, splits, words, output):
    (x, y), _, (_, y_test) = splits
    baseline = babi.chance_accuracy(y, y_test)
    metric = comparison.Metric(
        "accuracy", "accuracy", "max", baseline, BASELINE
    )
    sizes = len(words), x["story"].shape[1], FLAGS.units, FLAGS.learning_rate
    runs = comparison.train_all(
        lambda layer: babi_network.build_model(
            layer, *sizes, FLAGS.paper_start
        ),
        FLAGS.layers,
        splits,
        metric,
        outputs.prepare(output / f"task-{task}"),
    )
    about = {"task": task, "baseline": baseline}
    return [{**about, **dataclasses.asdict(run)} for run in runs]


def tables(record):
    """Tasks against layers: median accuracy on test data, and range."""
    scores, baselines, names = {}, {}, {}
    for run in record["runs"]:
        task, name = run["task"], run["layer"]
        scores.setdefault((task, name), []).append(run["score"])
        baselines[task], names[name] = [run["baseline"]], None
    rows = [
        [
            str(task),
            *(
                comparison.spread(scores.get((task, name), []))
                for name in names
            ),
            comparison.spread(baselines[task]),
        ]
        for task in baselines
    ]
    return {"table.md": outputs.markdown(["task", *names, BASELINE], rows)}


def main(argv):
    del argv
    logging.set_verbosity(logging.ERROR)
    output = outputs.prepare(FLAGS.output)
    runs = []
    try:
        data = {
            task: babi_network.load(FLAGS.data_dir, task) for task in FLAGS.task
        }
    except (FileNotFoundError, ValueError) as error:
        raise app.UsageError(str(error)) from error
    for task, (splits, words) in data.items():
        runs += run_task(task, splits, words, output)
        outputs.write(output, {"tables": "babi", "runs": runs}, tables)
        if not all(run["finished"] for run in runs):
            break  # by Ctrl-C


if __name__ == "__main__":
    flags.DEFINE_string("output", "runs/babi", "Where to write.")
    flags.DEFINE_string("data_dir", None, "With the tasks.", required=True)
    flags.DEFINE_multi_integer("task", [1], "Repeat it for several tasks.", 1)
    flags.DEFINE_bool("paper_start", False, "Input kernels as in the paper.")
    names = list(babi_network.LAYERS)
    flags.DEFINE_multi_enum("layers", names, names, "To compare.")
    app.run(main)
