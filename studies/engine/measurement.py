"""Programs of studies: what they measure, and what a page says of it.

A program, PART.py of a part of a study, has question and method as docstring,
and

- `measure`, which returns the results, with an entry `figures`, {file: figure},
  of what is not stored. An argument `partial` is the file for `PartialRuns`, or
  None; it is deleted in the end.
- `tables`, from a record of results to {caption: table}.
- `PICTURES`, {file: function}. The function draws it from the results, and may
  return None; its docstring is the caption. A caption alone is that of a figure
  of `measure`.
- `VARIANTS`, {name: Variant}, the first without a name.
- `SMALLEST`, settings that show within seconds whether it runs.

What the results of the first variant decide is in claims_PART.toml,
{statement: arguments of `Claim`}, with the name of a function of the results as
`finding`.
"""

import dataclasses
import importlib
import inspect
import operator
import statistics
import sys
import tomllib
from collections.abc import Mapping

import keras
from absl import logging

from engine import page
from engine import record
from engine.claims import of_results
from engine.study import grouped


@dataclasses.dataclass(frozen=True)
class Variant:
    """Settings to measure with, whose results are a part of the page."""

    title: str = ""
    settings: Mapping = dataclasses.field(default_factory=dict)
    backend: str = "tensorflow"  # of Keras


class Measurement:
    """What a program measures, and how a page shows that."""

    def __init__(self, program, folder, part):
        self.program, self.folder, self.part = program, folder, part
        self.name = f"{folder.name}/{part}"
        self.pictures = getattr(program, "PICTURES", {})
        self.variants = getattr(program, "VARIANTS", {"": Variant()})

    @classmethod
    def load(cls, name):
        """The program of a part of a study, by its name, FOLDER/PART."""
        study, _, part = name.partition("/")
        if name not in programs():
            sys.exit(f"There is no {name}. Programs: {', '.join(programs())}.")
        program = importlib.import_module(f"{study}.{part}")
        return cls(program, record.STUDIES / study, part)

    def run(self, folder=None, variant="", smallest=False, page=False):
        """Writes results, of stored ones with `page`, pictures and page."""
        logging.set_verbosity(logging.ERROR)
        folder = folder or self.folder
        for name in self.variants if page else [variant]:
            path, figures = folder / self._file("results.json", name), {}
            if not page:
                results = self.results(name, smallest)
                figures = results.pop("figures", {})
                record.write(path, results)
                if not smallest:
                    self._partial(name).unlink(missing_ok=True)
            if results := record.read(path):
                self._draw(results, figures, folder, name)
        text = self.page(folder)
        record.write_page(folder / "README.md", self.part, text)
        print(text)

    def results(self, name="", smallest=False):
        """Measures; the smallest settings store no runs on the way."""
        if name not in self.variants:
            sys.exit(f"Variants are {', '.join(self.variants)}, not {name}.")
        variant, measure = self.variants[name], self.program.measure
        if keras.backend.backend() != variant.backend:
            sys.exit(f"Set KERAS_BACKEND={variant.backend}.")
        settings = {**variant.settings}
        if smallest:
            settings |= self.program.SMALLEST
        if "partial" in inspect.signature(measure).parameters:
            settings["partial"] = None if smallest else self._partial(name)
        return measure(**settings)

    def _partial(self, variant):
        """The file of the finished runs of a measurement under way."""
        return self.folder / self._file("partial.jsonl", variant)

    def _file(self, name, variant):
        return record.file_name(name, self.part, variant)

    def _draw(self, results, figures, folder, variant):
        for picture, draw in self.pictures.items():
            figure = draw(results) if callable(draw) else figures.get(picture)
            if figure is not None:
                path = folder / record.file_name(picture, variant)
                record.write_picture(path, figure)

    def page(self, folder):
        """README.md of the results in a folder, or the part of it."""
        question, _, method = self.program.__doc__.partition("\n\n")
        parts = [method.strip(), *page.of_claims(self.claims(folder))]
        for name, variant in self.variants.items():
            results = record.read(folder / self._file("results.json", name))
            if results is None:
                continue
            parts += [f"## {variant.title}"] * bool(variant.title)
            parts += [self._command(name), _made_by(results)]
            for caption, table in self.program.tables(results).items():
                parts += [f"{caption}:", table.strip()]
            for picture, draw in self.pictures.items():
                file = record.file_name(picture, name)
                line = f"![{_caption(draw)}]({file})"
                parts += [line] * (folder / file).exists()
        return page.text(self.name, question, parts)

    def claims(self, folder):
        """The claims of the program, from the results in a folder."""
        results = record.read(folder / self._file("results.json", ""))
        path = self.folder / self._file("claims.toml", "")
        if results is None or not path.exists():
            return []
        claims = tomllib.loads(path.read_text())
        return of_results(self.name, claims, self.program, results)

    def _command(self, name):
        backend = self.variants[name].backend
        set_backend = f"KERAS_BACKEND={backend} " * (backend != "tensorflow")
        line = f"    {set_backend}python -m engine measure {self.name}"
        return line + f" --variant={name}" * bool(name)


def programs():
    """The names of all programs, as `Measurement.load` takes them."""
    return [
        f"{path.parent.name}/{path.stem}"
        for path in sorted(record.STUDIES.glob("[a-z]*/*.py"))
        if "\ndef measure(" in path.read_text()
    ]


def claims_of_programs():
    """The claims of all programs, from their stored results."""
    measurements = map(Measurement.load, programs())
    return [
        claim
        for measurement in measurements
        for claim in measurement.claims(measurement.folder)
    ]


def _caption(draw):
    text = draw.__doc__ if callable(draw) else draw
    return " ".join(text.split()).removesuffix(".")


def _made_by(results):
    """The command, machine and versions of a record, as a sentence."""
    keys = "machine", "processor", "gpu"
    machine = [results[key] for key in keys if key in results]
    if "python" in results:
        machine.append(f"Python {results['python']}")
    versions = (f"{name} {v}" for name, v in results["versions"].items())
    made_with = ", ".join([*machine, *versions])
    return f"Recorded by `{results['command']}` with {made_with}."


def spread(values, digits=3):
    """Median, and lowest and highest of values that differ."""
    three = min(values), statistics.median(values), max(values)
    low, middle, high = (f"{value:.{digits}g}" for value in three)
    return middle if low == high else f"{middle} ({low} to {high})"


def groups(runs, *keys):
    """{value: runs that have it}, or tuple of values, in the order of runs."""
    return grouped(runs, operator.itemgetter(*keys))
