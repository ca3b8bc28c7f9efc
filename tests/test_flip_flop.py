import numpy as np
import pytest

from keras_rin.tasks import flip_flop

pytestmark = pytest.mark.one_backend


def test_the_target_is_the_sign_of_the_latest_pulse(rng):
    x, y = flip_flop.generate(rng, 20, 30, bits=4, pulse_probability=0.2)
    assert x.shape == y.shape == (20, 30, 4)
    assert x.dtype == y.dtype == np.float32
    held = np.zeros((20, 4))
    for t in range(30):
        held = np.where(x[:, t] != 0, x[:, t], held)
        np.testing.assert_array_equal(y[:, t], held)


def test_pulses_are_as_rare_as_asked_and_of_both_signs(rng):
    x, _ = flip_flop.generate(rng, 400, 101, pulse_probability=0.25)
    assert (x[:, 0] != 0).all()
    assert (x[:, 1:] != 0).mean() == pytest.approx(0.25, abs=0.01)
    assert x[x != 0].mean() == pytest.approx(0, abs=0.02)
    for probability, share in ((0, 1 / 101), (1, 1)):
        x, _ = flip_flop.generate(rng, 2, 101, 1, probability)
        assert (x != 0).mean() == pytest.approx(share)


def test_the_baseline_is_the_loss_of_the_best_constant(rng):
    y = flip_flop.generate(rng, 2000, 50)[1].astype("float64")
    assert y.var() == pytest.approx(flip_flop.baseline_loss(), abs=0.01)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"samples": 0}, "`samples` must be an integer"),
        ({"length": 0}, "`length` must be an integer"),
        ({"bits": 1.5}, "`bits` must be an integer"),
        ({"pulse_probability": 1.1}, "`pulse_probability` must be a finite"),
    ],
)
def test_bad_arguments_are_named(rng, arguments, message):
    with pytest.raises(ValueError, match=message):
        flip_flop.generate(rng, **{"samples": 2, "length": 3, **arguments})
    with pytest.raises(TypeError, match="`rng` must be"):
        flip_flop.generate(0, 2, 3)
