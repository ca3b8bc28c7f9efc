"""Texts use the terms of the field, one term per idea.

README, CONTRIBUTING, the pages and the package are searched for words that this
project once made up for standard terms.
"""

import pathlib
import re

import pytest

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]

# Each pattern with what to say instead.
HOME_MADE = {
    r"know(s|ing)? nothing": "baseline, constant predictor, chance level",
    r"(not|be|are|is) told( apart)?\b|(does|do|can)? ?not tell": (
        "no significant difference, distinguished, decoded"
    ),
    r"\btold (apart|best|from)": "distinguished, decoded",
    r"\bcontenders?\b": "models, layers",
    r"held out to the end": "test set, validation set",
    r"\bg[eo]ts? there\b": "solved the task, converged",
    r"\bto be had\b|\b(can|cannot|could) (not )?be had\b": (
        "supported, available"
    ),
    r"\bobstacles?\b": "unsupported options",
    r"\bsize of the gradient": "gradient norm",
    r"\bproducts alone\b": "matmul lower bound",
    r"\bstate files?\b": "checkpoint",
    r"\bspeaks? to\b": "is connected to, has feedback connections to",
    r"\bturns? round\b": "reverses",
    r"\b(a|each|any|which|default|random|mixed|chain|orthogonal|small)"
    r" starts?\b(?! of )": "initializer, initialization",
    r"\bstart(s|ed)? (at|from) (the |an? )?(identity|chain|zero)": (
        "is initialized to"
    ),
    r"\b(is|was) at hand\b": "available",
    r"ChainIdentity\([^()]*-": "Offset(ChainIdentity(...)), one spelling",
}

TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    ROOT / "studies" / "README.md",
    *sorted(ROOT.glob("studies/[a-z]*/README.md")),
    *sorted(ROOT.glob("keras_rin/**/*.py")),
]


def in_one_line(text):
    """The text without line breaks, comment signs and adjacent quotes."""
    text = re.sub(r'"\s*\n\s*f?"', "", text)
    return re.sub(r"[\s#`*]+", " ", text)


def home_made(text):
    """The home-made words of a text, each with what to say instead."""
    text = in_one_line(text)
    return {
        match.group(): instead
        for pattern, instead in HOME_MADE.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    }


def test_texts_use_the_terms_of_the_field():
    found = {path: home_made(path.read_text()) for path in TEXTS}
    assert not {path: words for path, words in found.items() if words}


@pytest.mark.parametrize(
    "text",
    [
        "what knowing nothing\nscores",
        "# the two are not\n    # told apart",
        'f"an option that cannot "\n    f"be had"',
        "the *contenders* of a table",
        "starts from the identity",
        "the default start, A = 0",
        "RIN(8, recurrent_initializer=ChainIdentity(0.9, -0.5))",
    ],
)
def test_home_made_words_are_found(text):
    assert home_made(text)


@pytest.mark.parametrize(
    "text",
    [
        "the baseline of a constant predictor",
        "the start of the sequence",
        "training starts from a checkpoint",
        "all options are supported",
    ],
)
def test_terms_of_the_field_are_not(text):
    assert not home_made(text)
