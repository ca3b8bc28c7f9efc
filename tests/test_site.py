"""The site: what its hooks add, and its page demo.md in a browser."""

import json
import pathlib
import re
import shutil
import types
import urllib.parse
import warnings
import xml.etree.ElementTree as ElementTree

import keras
import markdown
import numpy as np
import pytest
from public_objects import OBJECTS

from docs import demo_networks
from docs import mathematics
from docs import study_pages

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
FILES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
PAGES = {page: page.read_text() for page in FILES}
CODE = re.compile(r"^```.*?^```$|^    .*?$|`[^`\n]*`", re.M | re.S)
STEPS, SEQUENCES = 10_000, 9  # of the demonstration, until it pauses


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the whole site; a warning stops its build."""
    pytest.importorskip("material", reason="needs mkdocs-material")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = load_config(
            str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)
        )
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return folder


@pytest.mark.runtime
def test_the_site_is_built_and_shows_every_public_name(site):
    html = "".join(page.read_text() for page in site.glob("api/*.html"))
    assert OBJECTS.keys() <= set(re.findall(r'id="(keras_rin\.[\w.]+)"', html))
    index = (site / "index.html").read_text()
    assert 'href="studies/short_then_longer/index.html"' in index
    cells = json.loads((site / "tutorial.ipynb").read_text())["cells"]
    source = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    tutorial = PAGES[DOCS / "tutorial.md"]
    blocks = re.findall(r"```python\n(.*?)\n```", tutorial, re.S)
    assert len(source) == len(blocks) + 1
    assert all(map(str.startswith, source[1:], blocks))
    tag = re.compile(
        r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?http"
    )
    for page in site.rglob("*.html"):  # nothing comes from other servers
        assert not tag.search(page.read_text()), page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_of_a_page_is_set(page):
    text = CODE.sub("", PAGES[page])
    latex = re.findall(
        r"^\$\$\n.*?\n\$\$$|\$(?=\S)[^$\n]*(?<=\S)\$", text, re.M | re.S
    )
    html = markdown.markdown(
        text,
        extensions=["pymdownx.arithmatex", "tables"],
        extension_configs={"pymdownx.arithmatex": {"generic": True}},
    )
    html = mathematics.on_page_content(html)
    formulas = re.findall("<math.*?</math>", html, re.S)
    assert len(formulas) == len(latex) == html.count("arithmatex")
    for formula in formulas:
        tree = ElementTree.fromstring(formula)
        assert "\\" not in "".join(tree.itertext()), "an unknown command"


def test_the_study_pages_link_to_the_repository():
    config = types.SimpleNamespace(repo_url="https://a.b/c")
    file = types.SimpleNamespace(src_uri="a.md")
    page = types.SimpleNamespace(file=file, meta={})
    linked = study_pages.on_page_markdown("a copy of the source", page, config)
    assert linked == "[a copy of the source](https://a.b/c)"


# The demonstration.


def answers(name, x):
    """The last y of Keras for x (sequences, steps, 2), in float64."""
    network = keras.saving.load_model(
        demo_networks.FOLDER / name / "network.keras"
    )
    model = keras.Sequential([keras.Input((None, 2), dtype="float64")])
    for layer in network.layers:
        config = {**layer.get_config(), "dtype": "float64"}
        model.add(type(layer).from_config(config))
        model.layers[-1].set_weights(layer.get_weights())
    model.layers[0].finalize_state()
    return model.predict(x.astype("float64"), verbose=0)[:, 0]


def test_without_a_compiler_the_page_has_no_buttons(monkeypatch):
    monkeypatch.setattr(demo_networks, "can_compile", lambda: False)
    page = types.SimpleNamespace(
        file=types.SimpleNamespace(src_uri="demo.md"), meta={}
    )
    markdown = demo_networks.on_page_markdown(PAGES[DOCS / "demo.md"], page)
    assert demo_networks.MISSING in markdown and "## What to try" in markdown
    assert (
        "<button" not in markdown and "demo.js" not in markdown.split("##")[0]
    )


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright"
    )
    path = shutil.which("chromium")
    if not path or not demo_networks.can_compile():
        pytest.skip("needs chromium, clang and wasm-ld")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


def open_demo(browser, site, **options):
    """The page, of a server that has nothing else; the errors on it."""

    def answer(route):
        path = site / urllib.parse.urlsplit(route.request.url).path[1:]
        route.fulfill(path=path) if path.is_file() else route.abort()

    page, errors = browser.new_page(**options), []
    page.on("pageerror", lambda error: errors.append(error))
    page.on("requestfailed", lambda request: errors.append(request.url))
    page.route("**/*", answer)
    # The page draws its numbers with Math.random.
    page.add_init_script("let k = 0; Math.random = () => (k++ * 0.618) % 1")
    page.goto("http://site/demo.html")
    page.wait_for_selector("#demo-mark:enabled")
    return page, errors


def shown(page):
    """The step, the marks and the answers by network of a paused page."""
    marks = page.locator("#demo-marks data").all()
    sections = page.locator("#demo section").all()
    return (
        int(page.inner_text("#demo-step").replace(",", "")),
        [int(mark.get_attribute("data-step")) for mark in marks],
        {
            section.get_attribute("data-name").lower(): float(
                section.locator("data").get_attribute("value")
            )
            for section in sections
        },
    )


@pytest.mark.exhaustive
@pytest.mark.runtime
def test_the_page_equals_keras(site, browser):
    phone = {"viewport": {"width": 390, "height": 800}}
    page, errors = open_demo(browser, site, **phone)
    assert page.inner_text("#demo-speed-text") == "1,000 steps a second"
    page.focus("#demo-speed")
    page.keyboard.press("End")
    # It pauses at the length of the longest sequences of the training.
    page.wait_for_function(
        "document.querySelector('#demo-run').textContent === 'Run'",
        timeout=120_000,
    )
    assert "Paused at step 10,000" in page.inner_text("#demo-status")
    steps, marks, y = shown(page)
    assert (steps, marks) == (STEPS, [1, 2])
    x = np.zeros((SEQUENCES, STEPS, 2), "float32")
    drawn = np.arange(STEPS * SEQUENCES).reshape(STEPS, SEQUENCES)
    x[..., 0] = (drawn * 0.618 % 1).T
    x[:, :2, 1] = 1
    assert sorted(y) == demo_networks.NAMES
    for name in y:
        expected = answers(name, x)
        np.testing.assert_allclose(y[name], expected[0], atol=1e-4)
        error = np.median(abs(expected - x[:, :2, 0].sum(axis=1)))
        text = page.inner_text(f"#demo section[data-name={name} i] small")
        shown_error = float(text.removeprefix("median error "))
        np.testing.assert_allclose(shown_error, error, atol=1e-3)
    for curve in page.locator("#demo-errors polyline").all():
        assert len(curve.get_attribute("points").split()) > 50
    assert not errors
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.exhaustive
@pytest.mark.runtime
def test_the_page_is_paused_at_first_where_motion_is_reduced(site, browser):
    page, errors = open_demo(browser, site, reduced_motion="reduce")
    assert shown(page)[:2] == (2, [1, 2])
    page.click("#demo-reset")
    assert shown(page)[:2] == (0, [])
    page.click("#demo-mark")
    page.click("#demo-one")
    assert shown(page)[:2] == (1, [1])
    assert "Marked 0." in page.inner_text("#demo-status")
    page.click("#demo-one")
    assert page.inner_text("#demo-status") == "Paused at step 2."
    assert not errors
