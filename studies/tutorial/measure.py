"""What does the tutorial print, and which pictures does it draw?

The Python blocks of [the tutorial](../../docs/tutorial.md) run as one script,
with the seed that they set.
"""

import contextlib
import io
import pathlib
import re
import tempfile

from engine import pictures
from engine import record

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tutorial.md"
PICTURES = {
    "gradient_norms.svg": "Gradient norm over the lag, of the trained layer",
    "eigenvalues.svg": "Eigenvalues of the trained recurrent matrix",
    "accuracy.svg": "Accuracy on the test recordings over their time steps",
}


def measure():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names, printed = {}, io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
    ):
        exec("\n".join(blocks), names)  # noqa: S102
    figures = {
        "gradient_norms.svg": names["norms_figure"],
        "eigenvalues.svg": names["eigenvalues_figure"],
        "accuracy.svg": draw(names["accuracies"]),
    }
    return {"printed": printed.getvalue(), "figures": figures}


def draw(accuracies):
    figure, axes = pictures.subplots(6, 4)
    axes.plot(range(1, len(accuracies) + 1), accuracies)
    axes.axhline(0.25, color="grey", linewidth=0.8)
    axes.set(xlabel="time step", ylabel="accuracy", ylim=(0, 1.02))
    axes.set_title("The answer is useful early", loc="left")
    return figure


def tables(results):
    lines = [
        line.rpartition(": ")[::2]
        for line in results["printed"].splitlines()
        if re.fullmatch(r"[a-z \d]+: \d.*", line)
    ]
    return {"Printed": record.markdown(["", "printed"], lines)}
