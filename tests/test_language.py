"""Texts use the terms of the field, one term per idea.

README, CONTRIBUTING, the pages and the package are searched for words that this
project once made up for standard terms.
"""

import pathlib
import re

import pytest

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("studies/**/README.md"),
    *ROOT.glob("keras_rin/**/*.py"),
]
# Each pattern with what to say instead.
HOME_MADE = {
    r"know(s|ing)? nothing": "baseline, constant predictor, chance level",
    r"told (apart|best|from)\b|not tell": "no significant difference, decoded",
    r"\bcontenders?\b": "models, layers",
    r"held out to the end": "test set, validation set",
    r"\bg[eo]ts? there\b": "solved the task, converged",
    r"\bto be had\b|\bobstacles?\b": "supported, unsupported options",
    r"\bsize of the gradient": "gradient norm",
    r"\bstate files?\b": "checkpoint",
    r"\bspeaks? to\b": "is connected to, has feedback connections to",
    r"\b(any|default|random|mixed|chain|orthogonal|small) starts?\b(?! of )": (
        "initializer, initialization"
    ),
    r"ChainIdentity\([^()]*-": "Offset(ChainIdentity(...)), one spelling",
}


def test_texts_use_the_terms_of_the_field():
    replacements = {}
    for path in TEXTS:
        # In one line, without comment signs and adjacent quotes.
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text())
        text = re.sub(r"[\s#`*]+", " ", text)
        for pattern, instead in HOME_MADE.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                replacements[path, match[0]] = instead
    assert not replacements
