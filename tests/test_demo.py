"""The networks of the page demo.md: in WebAssembly, in a browser, in Keras."""

import functools
import http.server
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import keras
import numpy as np
import pytest

from keras_rin.tasks import adding

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
DEMO = ROOT / "docs" / "demo"
NETWORKS = sorted(path.parent.name for path in DEMO.glob("*/network.keras"))
STEPS = 5_000


def load_script():
    """docs/demo/make.py, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("make", DEMO / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs(*programs):
    """A mark: the test runs where these programs are installed."""
    missing = [program for program in programs if not shutil.which(program)]
    return pytest.mark.skipif(
        bool(missing), reason=f"needs {', '.join(missing)}"
    )


def answers(name, x):
    """y of Keras at each step of x (steps, 2), in float64.

    A RIN adds its rounding errors up: Keras is off by 7e-5 in float32.
    """
    network = keras.saving.load_model(DEMO / name / "network.keras")
    model = keras.Sequential([keras.Input((None, 2), dtype="float64")])
    for layer in network.layers:
        config = {**layer.get_config(), "dtype": "float64"}
        if "return_sequences" in config:
            config["return_sequences"] = True
        model.add(type(layer).from_config(config))
        model.layers[-1].set_weights(layer.get_weights())
    model.layers[0].finalize_state()
    return model.predict(x[None].astype("float64"), verbose=0)[0, :, 0]


JAVASCRIPT = """
const fs = require("fs");
const [wasm] = process.argv.slice(1);
const functions = { expf: Math.exp, tanhf: Math.tanh };
WebAssembly.instantiate(fs.readFileSync(wasm), { env: functions }).then(
  ({ instance: { exports } }) => {
    const memory = exports.memory.buffer;
    const x = new Float32Array(memory, exports.x(), 2);
    const y = new Float32Array(memory, exports.y(), 1);
    const inputs = JSON.parse(fs.readFileSync(0));
    const outputs = [];
    exports.step(); // forgotten by reset
    exports.reset();
    for (const input of inputs) {
      x.set(input);
      exports.step();
      outputs.push(y[0]);
    }
    console.log(JSON.stringify(outputs));
  },
);
"""


def answers_in_node(wasm, x):
    run = subprocess.run(
        ["node", "-e", JAVASCRIPT, wasm],
        input=json.dumps(x.tolist()),
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array(json.loads(run.stdout))


@pytest.fixture(scope="module")
def x():
    return adding.generate(np.random.default_rng(0), 1, STEPS)[0][0]


@needs("node")
@pytest.mark.runtime
@pytest.mark.parametrize("name", NETWORKS)
def test_each_module_equals_keras(name, x):
    y = answers_in_node(DEMO / name / "network.wasm", x)
    np.testing.assert_allclose(y, answers(name, x), atol=1e-5)
    assert abs(y[-1] - (x[:, 0] * x[:, 1]).sum()) < 0.1  # it adds


@pytest.mark.parametrize("name", NETWORKS)
def test_each_header_is_that_of_its_model(name, tmp_path):
    load_script().write_header(name, tmp_path)
    headers = tmp_path / "network.h", DEMO / name / "network.h"
    remade, committed = (
        re.sub("Made by .*", "", path.read_text()) for path in headers
    )
    assert remade == committed


@needs("clang", "wasm-ld", "node")
@pytest.mark.runtime
@pytest.mark.parametrize("name", NETWORKS)
def test_each_module_can_be_made_again(name, x, tmp_path):
    shutil.copy(DEMO / name / "network.h", tmp_path)
    load_script().compile_header(tmp_path)
    y = answers_in_node(tmp_path / "network.wasm", x)
    committed = answers_in_node(DEMO / name / "network.wasm", x)
    np.testing.assert_allclose(y, committed, atol=1e-5)


CONFIG = """
INHERIT: {root}/mkdocs.yml
docs_dir: docs
site_dir: site
nav: [demo.md]
hooks: []
plugins: []
watch: []
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a server of the page, in the site's theme."""
    pytest.importorskip("material", reason="needs mkdocs-material")
    tmp_path = tmp_path_factory.mktemp("site")
    shutil.copytree(DEMO, tmp_path / "docs" / "demo")
    shutil.copy(ROOT / "docs" / "demo.md", tmp_path / "docs")
    (tmp_path / "mkdocs.yml").write_text(CONFIG.format(root=ROOT))
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f"]
    subprocess.run([*command, tmp_path / "mkdocs.yml"], check=True)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=tmp_path / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright"
    )
    path = shutil.which("chromium")
    if not path:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


# The page draws its numbers with Math.random.
RANDOM = """
let state = 1;
Math.random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};
"""


def random_numbers(count):
    numbers, state = [], 1
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        numbers.append(state / 2**32)
    return np.array(numbers, "float32")


def shown(page):
    """The step, the marks and the answers that a paused page shows."""
    marks = page.locator("#demo-marks data").all()
    names = page.locator("#demo section")
    return (
        int(page.inner_text("#demo-step").replace(",", "")),
        [int(mark.get_attribute("data-step")) for mark in marks],
        [
            float(section.locator("data").get_attribute("value"))
            for section in names.all()
        ],
    )


@pytest.mark.exhaustive
@pytest.mark.runtime
def test_the_page_equals_keras(site, browser):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(error))
    page.on("request", lambda request: requests.append(request.url))
    page.add_init_script(RANDOM)
    page.goto(f"{site}/demo.html")
    page.wait_for_selector("#demo-mark:enabled")
    page.focus("#demo-speed")
    page.keyboard.press("End")
    for _ in range(8):  # at this speed it pauses soon after it is told to
        page.keyboard.press("ArrowLeft")
    assert page.inner_text("#demo-speed-text") == "1,000 steps a second"
    for marks in 1, 2:
        page.focus("#demo-mark")
        page.keyboard.press("Enter")
        page.wait_for_function(
            f"document.querySelectorAll('#demo-marks data').length == {marks}"
        )
    page.wait_for_function(
        "+document.querySelector('#demo-step').textContent.replace(',', '')"
        f" >= {STEPS}",
        timeout=60_000,
    )
    page.focus("#demo-run")
    page.keyboard.press("Space")
    assert "Paused at step" in page.inner_text("#demo-status")
    steps, marks, y = shown(page)
    x = np.zeros((steps, 2), "float32")
    x[:, 0] = random_numbers(steps)
    x[np.array(marks) - 1, 1] = 1
    assert len(marks) == 2 and steps >= STEPS
    names = [
        re.search(r"demo/(\w+)/", section.get_attribute("data-wasm"))[1]
        for section in page.locator("#demo section").all()
    ]
    assert sorted(names) == NETWORKS
    expected = [answers(name, x)[-1] for name in names]
    # Marks and steps depend on the moment: more rounding than in Node.js.
    np.testing.assert_allclose(y, expected, atol=1e-4)
    assert not errors
    assert all(url.startswith(site) for url in requests)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.exhaustive
def test_the_page_starts_paused_where_motion_is_reduced(site, browser):
    page = browser.new_page(reduced_motion="reduce")
    page.goto(f"{site}/demo.html")
    page.wait_for_selector("#demo-mark:enabled")
    page.click("#demo-mark")
    page.click("#demo-one")
    steps, marks, _ = shown(page)
    assert (steps, marks) == (1, [1])
    assert "Marked 0." in page.inner_text("#demo-status")
    page.click("#demo-reset")
    assert shown(page)[:2] == (0, [])
