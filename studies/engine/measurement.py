"""Programs of studies: what they measure, and what a page says of it.

A program has its question and its method as docstring, a function `measure`
that returns the results, a function `tables`, and in capitals, where needed,
PICTURES, VARIANTS, SMALLEST and CLAIMS; see `Measurement`. The page of a study
with one program, measure.py, is made of it. A study of several parts has a
program for each, NAME.py, which writes its part of the page between the marks
of its name.
"""

import dataclasses
import functools
import importlib
import inspect
import operator
import pathlib
import runpy
import statistics
import sys
import types
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import keras
from absl import logging

from engine import record
from engine.claims import of_results
from engine.page import of_claims
from engine.study import grouped


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
    """What a program measures, and how a page shows that.

    Attributes:
        folder: That of the study.
        text: Its docstring: the question, then the method.
        measure: Function that returns the results, with an entry `figures`,
            {picture: figure}, of what is not stored. An argument `partial` is
            the file for `PartialRuns`, or None; it is deleted in the end.
        tables: Function from a record of results to {caption: table}.
        pictures: {file: function}. The function draws it from the results, and
            may return None; its docstring is the caption. A caption alone is
            that of a figure of `measure`.
        variants: {name: Variant}; results of the first are in results.json,
            of one with a name in results_NAME.json.
        part: Name of the program, if the study has several; it stands in the
            names of the files of results.
        smallest: Settings that show within seconds whether it runs.
        claims: What the results of the first variant decide, as arguments of
            `Claim`, with a function of the results as `finding`.
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
    claims: Sequence = ()
    part: str = ""

    @classmethod
    def of(cls, name):
        """The program of a study, by its name, FOLDER or FOLDER/PART."""
        study, _, part = name.partition("/")
        path = record.STUDIES / study / f"{part or 'measure'}.py"
        if not path.exists():
            sys.exit(f"There is no {path}. Programs: {', '.join(programs())}.")
        module = importlib.import_module(f"{study}.{path.stem}")
        optional = {
            name: getattr(module, name.upper())
            for name in ("pictures", "variants", "smallest", "claims")
            if hasattr(module, name.upper())
        }
        functions = module.measure, module.tables
        return cls(
            path.parent, module.__doc__, *functions, **optional, part=part
        )

    def run(self, output=None, variant="", smallest=False, page=False):
        """Measures and writes results, pictures and page.

        With `page` pictures and page are made of the stored results.
        """
        logging.set_verbosity(logging.ERROR)
        output = record.output_folder(output or self.folder)
        for name in self.variants if page else [variant]:
            path = output / self._file("results.json", name)
            if page:
                results, figures = record.read(path), {}
            else:
                results, figures = self.results(name, smallest)
                results = record.write(path, results)
                if not smallest:
                    self._partial(name).unlink(missing_ok=True)
            if results is not None:
                self._draw(results, figures, output, name)
        text, path = self.page(output), output / "README.md"
        if self.part:
            record.insert(path, self.part, text)
        else:
            record.write_text(path, text)
        print(text)

    def results(self, name="", smallest=False):
        """Measures; returns the results and the figures of what is not stored.

        The smallest settings store no runs on the way.
        """
        if name not in self.variants:
            sys.exit(f"Variants are {', '.join(self.variants)}, not {name}.")
        variant = self.variants[name]
        if keras.backend.backend() != variant.backend:
            sys.exit(f"Set KERAS_BACKEND={variant.backend}.")
        settings = {**variant.settings, **(self.smallest if smallest else {})}
        if "partial" in inspect.signature(self.measure).parameters:
            path = None if smallest else self._partial(name)
            settings = {"partial": path, **settings}
        results = self.measure(**settings)
        return results, results.pop("figures", {})

    def _partial(self, variant):
        """The file of the finished runs of a measurement under way."""
        return self.folder / self._file("partial.jsonl", variant)

    def _file(self, name, variant):
        """The name of a file of this part and variant."""
        stem, _, suffix = name.partition(".")
        return "_".join(filter(None, [stem, self.part, variant])) + f".{suffix}"

    def _draw(self, results, figures, folder, variant):
        for picture, draw in self.pictures.items():
            figure = draw(results) if callable(draw) else figures.get(picture)
            if figure is not None:
                path = folder / picture_file(picture, variant)
                record.write_picture(path, figure)

    def page(self, folder):
        """README.md of the results in a folder, or the part of it."""
        question, _, method = self.text.partition("\n\n")
        level = "##" if self.part else "#"
        title = (self.part or self.folder.name).replace("_", " ")
        parts = [f"{level} {title}", f"**{question}**", method.strip()]
        parts += of_claims(self.asserted(folder), level)
        for name, variant in self.variants.items():
            results = record.read(folder / self._file("results.json", name))
            if results is None:
                continue
            parts += [f"{level}# {variant.title}"] * bool(variant.title)
            parts += [self._command(name), _made_by(results)]
            for caption, table in self.tables(results).items():
                parts += [f"{caption}:", table.strip()]
            for picture, draw in self.pictures.items():
                file = picture_file(picture, name)
                line = f"![{_caption(draw)}]({file})"
                parts += [line] * (folder / file).exists()
        return "\n\n".join(filter(None, parts)) + "\n"

    def asserted(self, folder):
        """The claims of the program, from the results in a folder."""
        results = record.read(folder / self._file("results.json", ""))
        return of_results(self.name, self.claims, results) if results else []

    @property
    def name(self):
        """FOLDER, or FOLDER/PART."""
        return "/".join(filter(None, [self.folder.name, self.part]))

    def _command(self, name):
        backend = self.variants[name].backend
        line = f"python -m engine measure {self.name}"
        if backend != "tensorflow":
            line = f"KERAS_BACKEND={backend} {line}"
        return f"    {line}" + f" --variant={name}" * bool(name)


def programs():
    """The names of all programs, as `Measurement.of` takes them."""
    paths = sorted(record.STUDIES.glob("[a-z]*/*.py"))
    return [
        path.parent.name + f"/{path.stem}" * (path.stem != "measure")
        for path in paths
        if "\ndef measure(" in path.read_text()
    ]


def asserted():
    """The claims of all programs, from their stored results."""
    every = map(Measurement.of, programs())
    return [claim for made in every for claim in made.asserted(made.folder)]


def _caption(draw):
    text = draw.__doc__ if callable(draw) else draw
    return " ".join(text.split()).removesuffix(".")


def picture_file(picture, variant):
    """The name of the file of a picture, of a variant of its program."""
    stem, _, suffix = picture.partition(".")
    return "_".join(filter(None, [stem, variant])) + f".{suffix or 'png'}"


def _made_by(results):
    """The command, machine and versions of a record, as a sentence."""
    keys = "machine", "processor", "gpu"
    machine = [results[key] for key in keys if key in results]
    if "python" in results:
        machine.append(f"Python {results['python']}")
    versions = (f"{name} {v}" for name, v in results["versions"].items())
    made_with = ", ".join([*machine, *versions])
    return f"Recorded by `{results['command']}` with {made_with}."


@functools.cache
def example(name):
    """The functions of an example, which is no module of a package."""
    path = record.STUDIES.parent / "examples" / f"{name}.py"
    return types.SimpleNamespace(**runpy.run_path(str(path)))


def spread(values, digits=3):
    """Median, and lowest and highest of values that differ."""
    three = min(values), statistics.median(values), max(values)
    low, middle, high = (f"{value:.{digits}g}" for value in three)
    return middle if low == high else f"{middle} ({low} to {high})"


def groups(runs, *keys):
    """{value: runs that have it}, or tuple of values, in the order of runs."""
    return grouped(runs, operator.itemgetter(*keys))


def first(key, form=""):
    """The column of a value that all runs of a group have."""
    return lambda runs: f"{runs[0][key]:{form}}"


def spread_of(key, digits=3):
    """The column of median and range over the runs of a group."""
    return lambda runs: spread([run[key] for run in runs], digits)
