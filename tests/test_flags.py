"""Flags of the examples: senseless values are refused before any work."""

import contextlib
import runpy

import keras
import pytest
import scripts
from absl import app
from absl import flags

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="the scripts are tried on the default backend",
    ),
]
SCRIPTS = sorted(
    f"examples/{path.name}" for path in (scripts.ROOT / "examples").glob("*.py")
)
WITH_ZERO = {"seed", "devices", "process"}  # where 0 counts something
FLAGS = flags.FLAGS


@contextlib.contextmanager
def defined_by(script):
    """The main function of a script, and the names of its flags."""
    before, mains = set(FLAGS), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "run", mains.append)
        patch.syspath_prepend(scripts.ROOT)
        runpy.run_path(str(scripts.ROOT / script), run_name="__main__")
    names = sorted(set(FLAGS) - before)
    try:
        yield mains[0], names
    finally:
        FLAGS.unparse_flags()
        FLAGS.remove_flag_values(names)


@pytest.fixture(scope="module", params=SCRIPTS)
def script(request):
    with defined_by(request.param) as (main, names):
        yield main, [FLAGS[name] for name in names]


def parse(*arguments):
    FLAGS.unparse_flags()
    for name in FLAGS:
        FLAGS[name].unparse()
    return FLAGS(["script.py", *arguments])


def numbers(flag):
    """Values that the parser of a number has to refuse."""
    if isinstance(flag.parser, flags.IntegerParser):
        return ["-1", *["0"] * (flag.name not in WITH_ZERO)]
    if isinstance(flag.parser, flags.FloatParser):
        return ["-1", "0", "nan", "-inf", "inf"]
    return []


def accepted(flag, *values):
    """Whether the flag takes these values; if not, the error names it."""
    try:
        parse(*(f"--{flag.name}={value}" for value in values))
    except flags.IllegalFlagValueError as error:
        assert f"flag --{flag.name}=" in str(error)
        return False
    return True


def test_numbers_that_make_no_sense_are_refused(script):
    _, defined = script
    wrong = [
        f"--{flag.name}={number}"
        for flag in defined
        for number in numbers(flag)
        if accepted(flag, number)
    ]
    assert wrong == []


def test_a_seed_that_numpy_does_not_take_is_refused(script):
    _, defined = script
    seeds = [flag for flag in defined if flag.name == "seed"]
    assert not any(accepted(seed, 2**32) for seed in seeds)
    assert all(accepted(seed, 2**32 - 1) for seed in seeds)


def test_a_value_that_is_given_twice_is_refused(script):
    _, defined = script
    wrong = []
    for flag in defined:
        if isinstance(flag, flags.MultiFlag):
            value = flag.default[0]
            assert accepted(flag, value)
            if accepted(flag, value, value):
                wrong.append(flag.name)
    assert wrong == []


def test_an_empty_output_is_refused(script):
    _, defined = script
    (output,) = [flag for flag in defined if flag.name == "output"]
    assert not accepted(output, "") and not accepted(output, " ")
    assert accepted(output, "runs")


def test_words_that_are_no_flags_are_refused(script):
    main, _ = script
    arguments = parse("estimate", "--output=/dev/null/none")
    with pytest.raises(app.UsageError, match=r"Received: \['estimate'\]"):
        main(arguments)


@pytest.mark.parametrize(
    "line, message",
    [
        ("adding_problem.py --samples=0", "not a positive integer"),
        (
            "many_devices.py --process=2 --processes=2",
            "from 0 to PROCESSES - 1",
        ),
        ("fixed_points.py now", "Received: ['now']"),
    ],
)
def test_the_error_is_the_last_thing_that_is_printed(line, message, tmp_path):
    line = f"examples/{line} --output={tmp_path}"
    finished = scripts.run(*line.split())
    assert finished.returncode == 1
    assert message in "\n".join(finished.stderr.splitlines()[-3:])
    assert list(tmp_path.iterdir()) == []
