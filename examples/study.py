"""Many runs as one study: tasks x starts x learning rates x seeds.

    python examples/study.py
    python examples/study.py --ray_address=auto

A RIN learns each task from each start, at each rate, from each seed. Each run
that ends, well or not, is a file in OUTPUT/records; the same command after a
stop makes only those that are missing. They share this machine or, with
`--ray_address`, a Ray cluster, all of whose machines must see OUTPUT.
"""

import hashlib
import itertools
import json
import os
import pathlib
import sys

import joblib
import outputs
import study_report
import study_run
from absl import app
from absl import flags
from tqdm import tqdm

FLAGS = flags.FLAGS


def all_settings():
    """The settings of each run of the study."""
    sizes = {
        "units": FLAGS.units,
        "length": FLAGS.length,
        "samples": 64 if FLAGS.smoke else FLAGS.samples,
        "epochs": 1 if FLAGS.smoke else FLAGS.epochs,
    }
    names = ("task", "start", "learning_rate", "seed")
    values = (FLAGS.task, FLAGS.start, FLAGS.learning_rate, FLAGS.seed)
    for chosen in itertools.product(*values):
        yield {**dict(zip(names, chosen, strict=True)), **sizes}


def path_of(settings, folder):
    """Where its record stands: other settings, another file."""
    text = json.dumps(settings, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


class Progress(joblib.Parallel):
    """A joblib.Parallel with a bar instead of lines, and the time left."""

    def __init__(self, bar, **kwargs):
        super().__init__(batch_size=1, **kwargs)
        self._bar = bar

    def print_progress(self):
        self._bar.update(self.n_completed_tasks - self._bar.n)


def run(missing):
    """Makes the runs, several at a time, until Ctrl-C."""
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # a core each
    with backend(), tqdm(total=len(missing), unit="run") as bar:
        Progress(bar)(
            joblib.delayed(study_run.write)(settings, path.resolve())
            for settings, path in missing
        )


def backend():
    if FLAGS.ray_address is None:
        return joblib.parallel_config(n_jobs=FLAGS.jobs)
    import ray
    from ray.util.joblib import register_ray

    here = str(pathlib.Path(__file__).parent)
    ray.init(FLAGS.ray_address, runtime_env={"working_dir": here})
    register_ray()
    # A run whose worker dies is made again by another, twice at most.
    again = {"max_restarts": -1, "max_task_retries": 2}
    return joblib.parallel_config(
        "ray", n_jobs=FLAGS.jobs, ray_remote_args=again
    )


def main(argv):
    del argv
    output = outputs.prepare(FLAGS.output)
    records = outputs.prepare(output / "records")
    paths = {
        path_of(settings, records): settings for settings in all_settings()
    }
    missing = [(s, path) for path, s in paths.items() if not path.exists()]
    try:
        if missing:
            run(missing)
    except KeyboardInterrupt:
        print("\nInterrupted: here is what there is.", file=sys.stderr)
    runs = [json.loads(path.read_text()) for path in paths if path.exists()]
    if runs:
        record = {"tables": "study_report", "runs": runs}
        outputs.write(output, record, study_report.tables)
        outputs.save_picture(study_report.draw(runs), output / "study.png")


if __name__ == "__main__":
    tasks, starts = list(study_run.TASKS), study_run.STARTS
    flags.DEFINE_string("output", "runs/study", "Where to write.")
    flags.DEFINE_multi_enum("task", tasks, tasks, "To learn.")
    flags.DEFINE_multi_enum("start", starts, starts, "Of the recurrence.")
    flags.DEFINE_multi_float(
        "learning_rate", [3e-4, 1e-3, 3e-3], "Of Adam.", lower_bound=0
    )
    flags.DEFINE_multi_integer("seed", [0, 1, 2], "Of start and data.")
    flags.DEFINE_integer("units", 64, "Width of the layer.", lower_bound=1)
    flags.DEFINE_integer("length", 50, "Steps of a sequence.", lower_bound=7)
    flags.DEFINE_integer("samples", 5_000, "To train on.", lower_bound=1)
    flags.DEFINE_integer("epochs", 10, "Epochs of training.", lower_bound=1)
    flags.DEFINE_integer("jobs", -1, "Runs at a time; -1: one a core.")
    flags.DEFINE_string("ray_address", None, "Of a Ray cluster, or auto.")
    flags.DEFINE_bool("smoke", False, "One epoch on 64 samples: does it run?")
    app.run(main)
