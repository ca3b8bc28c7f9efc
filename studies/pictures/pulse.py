"""An SVG in which a pulse travels through recurrent layers.

It is animated by CSS, and stands still where motion is unwelcome.
"""

import numpy as np

from engine.pictures import NEGATIVE
from engine.pictures import POSITIVE

SECONDS = 0.7  # of a time step
STILL = 4  # the time step that is shown without animation
WIDTH, ROW, LEFT, GAP = 460, 66, 92, 30
TEXT = {
    "identity": "The identity keeps it.",
    "chain": "A chain passes it on, to the last unit.",
    "orthogonal": "An orthogonal matrix spreads it.",
}


def animation(matrices):
    """The hidden state of linear layers after a pulse into the first unit.

    Args:
        matrices: {name: recurrent matrix of shape (units, units)}.
    """
    units = len(next(iter(matrices.values())))
    rules, rows = [], []
    for number, (name, matrix) in enumerate(matrices.items()):
        powers = (np.linalg.matrix_power(matrix, n) for n in range(units + 2))
        states = np.array([power[0] for power in powers])
        y = 24 + ROW * number
        rows.append(f'<text x="4" y="{y + 5}">{name}</text>')
        note = f'<text class="note" x="{LEFT}" y="{y + 30}">'
        rows.append(f"{note}{TEXT[name]}</text>")
        for unit, values in enumerate(states.T):
            key = f"{name[0]}{unit}"
            x = LEFT + 13 + GAP * unit
            circle = f'<circle cx="{x}" cy="{y}" r="12" class='
            rows.append(f'{circle}"unit"/>')
            if np.abs(values).max() < 1e-9:
                continue
            fill, opacity = _look(values[STILL])
            look = f'fill="{fill}" fill-opacity="{opacity}"'
            rows.append(f'{circle}"{key}" {look}/>')
            if np.ptp(values) > 1e-9:
                rules.append(_rule(key, values))
    height = ROW * len(matrices) + 4
    style = (
        "text{font:15px sans-serif;fill:#444}.note{font-size:13px;fill:#666}"
        ".unit{fill:none;stroke:#888}@media (prefers-reduced-motion:"
        f"no-preference){{{''.join(rules)}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n'
        f"<style>{style}</style>\n" + "\n".join(rows) + "\n</svg>\n"
    )


def _look(value):
    return (POSITIVE if value >= 0 else NEGATIVE), round(min(1, abs(value)), 2)


def _rule(key, values):
    """Keyframes that hold the value of each step for most of its time."""
    frames, steps = [], len(values)
    for step, value in enumerate(values):
        fill, opacity = _look(value)
        look = f"{{fill:{fill};fill-opacity:{opacity}}}"
        begin, end = (100 * (step + part) / steps for part in (0.0, 0.7))
        frames.append(f"{begin:.1f}%,{end:.1f}%{look}")
    return (
        f".{key}{{animation:{key} {SECONDS * steps:.1f}s infinite}}"
        f"@keyframes {key}{{{''.join(frames)}}}"
    )
