"""A study that is one script, measure.py: its results and its page.

The script has its question and its method as docstring, and in capitals, where
needed, PICTURES, VARIANTS and SMALLEST; see `Measurement`.
"""

import dataclasses
import pathlib
import statistics
import sys
from collections.abc import Callable
from collections.abc import Mapping

import keras
from absl import app
from absl import flags
from absl import logging

from engine import record
from keras_rin import plots

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class Variant:
    """Settings to measure with, whose results are a part of the page.

    Attributes:
        title: Heading of the part.
        settings: Keyword arguments of `measure`.
        backend: Backend of Keras.
    """

    title: str = ""
    settings: Mapping = dataclasses.field(default_factory=dict)
    backend: str = "tensorflow"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What measure.py measures, and how its page shows that.

    Attributes:
        folder: That of measure.py.
        text: Its docstring: the question, then the method.
        measure: Function that returns the results and {picture: figure}; a
            figure may be the text of an SVG.
        tables: Function from a record of results to {caption: table}.
        pictures: {picture: caption}; a picture without a suffix is a PNG.
        variants: {name: Variant}; results of the first are in results.json,
            of one with a name in results_NAME.json.
        smallest: Settings that show within seconds whether it runs.
        figures: Function that draws the pictures from a record of results, or
            None if that does not contain all they show.
    """

    folder: pathlib.Path
    text: str
    measure: Callable
    tables: Callable
    pictures: Mapping = dataclasses.field(default_factory=dict)
    variants: Mapping = dataclasses.field(
        default_factory=lambda: {"": Variant()}
    )
    smallest: Mapping = dataclasses.field(default_factory=dict)
    figures: Callable | None = None

    @classmethod
    def of(cls, module):
        folder = pathlib.Path(module.__file__).parent
        optional = {
            name: getattr(module, name.upper())
            for name in ("pictures", "variants", "smallest")
            if hasattr(module, name.upper())
        }
        functions = module.measure, module.tables
        optional["figures"] = getattr(module, "figures", None)
        return cls(folder, module.__doc__, *functions, **optional)

    def _run(self, argv):
        if argv[1:]:
            raise app.UsageError(f"Flags begin with --. Received: {argv[1:]}")
        logging.set_verbosity(logging.ERROR)
        output = record.output_folder(FLAGS.output)
        if not FLAGS.page:
            self._measure(FLAGS.variant, output)
        elif self.figures:
            self._redraw(output)
        page = self.page(output)
        record.write_text(output / "README.md", page)
        print(page)

    def _measure(self, name, output):
        variant = self.variants[name]
        if keras.backend.backend() != variant.backend:
            raise app.UsageError(f"Set KERAS_BACKEND={variant.backend}.")
        smallest = self.smallest if FLAGS.smallest else {}
        results, figures = self.measure(**{**variant.settings, **smallest})
        record.write(output / _file("results", name, "json"), results)
        _write_pictures(figures, output, name)

    def _redraw(self, output):
        """Draws the pictures of each variant from its stored results."""
        for name in self.variants:
            results = record.read(output / _file("results", name, "json"))
            if results is not None:
                _write_pictures(self.figures(results), output, name)

    def page(self, folder):
        """README.md of the results in a folder."""
        question, _, method = self.text.partition("\n\n")
        title = self.folder.name.replace("_", " ")
        parts = [f"# {title}", f"**{question}**", method.strip()]
        for name, variant in self.variants.items():
            results = record.read(folder / _file("results", name, "json"))
            if results is None:
                continue
            parts += [f"## {variant.title}"] * bool(variant.title)
            parts += [self._command(name), _made_by(results)]
            for caption, table in self.tables(results).items():
                parts += [f"{caption}:", table.strip()]
            for picture, caption in self.pictures.items():
                file = picture_file(picture, name)
                parts += [f"![{caption}]({file})"] * (folder / file).exists()
        return "\n\n".join(filter(None, parts)) + "\n"

    def _command(self, name):
        backend = self.variants[name].backend
        line = f"python -m {self.folder.name}.measure"
        if backend != "tensorflow":
            line = f"KERAS_BACKEND={backend} {line}"
        return f"    {line}" + f" --variant={name}" * bool(name)


def main():
    """Measures and writes results, pictures and page, as flags say."""
    study = Measurement.of(sys.modules["__main__"])
    flags.DEFINE_string("output", str(study.folder), "Folder to write to.")
    flags.DEFINE_enum("variant", "", list(study.variants), "What to measure.")
    flags.DEFINE_bool("smallest", False, "Check with the smallest settings.")
    flags.DEFINE_bool(
        "page", False, "Write the page of stored results, and its pictures."
    )
    flags.register_validator("output", str.strip, "Name a folder.")
    app.run(study._run)


def _write_pictures(figures, folder, variant):
    for picture, figure in figures.items():
        path = folder / picture_file(picture, variant)
        record.write_picture(path, figure)


def picture_file(picture, variant):
    """The name of the file of a picture, of a variant of its study."""
    stem, _, suffix = picture.partition(".")
    return _file(stem, variant, suffix or "png")


def _file(stem, variant, suffix):
    return f"{stem}_{variant}.{suffix}" if variant else f"{stem}.{suffix}"


def _made_by(results):
    """The command, machine and versions of a record, as a sentence."""
    machine = [
        results[k] for k in ("machine", "processor", "gpu") if k in results
    ]
    if "python" in results:
        machine.append(f"Python {results['python']}")
    versions = (f"{name} {v}" for name, v in results["versions"].items())
    made_with = ", ".join([*machine, *versions])
    return f"Recorded by `{results['command']}` with {made_with}."


def spread(values, digits=3):
    """Median, and lowest and highest of values that differ."""
    low, middle, high = (
        f"{function(values):.{digits}g}"
        for function in (min, statistics.median, max)
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def learning_curves(runs, ylabel, baseline):
    """A figure of each layer's validation: median and range of the seeds."""
    curves = {
        layer: [run["validation"] for run in runs]
        for layer, runs in groups(runs, "layer").items()
    }
    return plots.plot_learning_curves(curves, ylabel=ylabel, baseline=baseline)


def groups(runs, key):
    """{value: runs that have it}, in the order of the runs."""
    grouped = {}
    for run in runs:
        grouped.setdefault(run[key], []).append(run)
    return grouped
