"""Training of many models of one architecture in one program, on JAX.

Models that differ only in numbers (seed, initial weights, learning rate, data)
are compiled once and trained one after the other, which a CPU does faster than
together with `jax.vmap`. `stateless_call` and `stateless_apply` of Keras are
the model and the optimizer.
"""

import functools

import keras
import numpy as np

UPDATES_OF_WARMUP = 0.05  # a part of all updates
ADAM = {"beta_2": 0.99, "global_clipnorm": 1.0}


def initial_weights(makers, cases):
    """The weights of models, along a new first axis.

    `makers` is {name: function that makes the model}, `cases` a list of (name,
    seed), one a model.
    """
    drawn = {}
    for name, seed in dict.fromkeys(cases):
        keras.utils.set_random_seed(seed)
        drawn[name, seed] = makers[name]().get_weights()
    models = (drawn[case] for case in cases)
    return [np.stack(arrays) for arrays in zip(*models, strict=True)]


def recipe(updates, rate=1.0, warmup=None):
    """Warm-up to a learning rate, and cosine decay."""
    if warmup is None:
        warmup = int(updates * UPDATES_OF_WARMUP)
    return keras.optimizers.schedules.CosineDecay(
        0.0, updates - warmup, warmup_target=rate, warmup_steps=warmup
    )


class ManyModels:
    """Models of one architecture, all of whose weights are trained.

    `model` gives the architecture; its own weights are neither used nor
    changed. `loss` is a function of (targets, outputs).
    """

    def __init__(self, model, loss):
        self.model, self.loss = model, loss
        # The states of seed generators, which nothing here uses.
        self.fixed = [v.numpy() for v in model.non_trainable_variables]

    def outputs(self, weights, x):
        return self.model.stateless_call(weights, self.fixed, x)[0]

    def train(self, weights, settings, batch, updates, together=False):
        """Trained weights, and the losses `(models, updates)`.

        `weights` are arrays `(models, ...)`, and `settings` too, by name; one
        is `rate`, the highest learning rate. `batch` is a function of (settings
        of a model, update) that returns inputs and targets. Very small models
        are trained in less time `together`.
        """
        import jax

        optimizer = keras.optimizers.Adam(1.0, **ADAM)
        optimizer.build(self.model.trainable_variables)
        start = [variable.numpy() for variable in optimizer.variables]
        rate = optimizer.learning_rate
        is_rate = [variable is rate for variable in optimizer.variables]
        schedule = recipe(updates)

        def update(carry, number, settings):
            weights, state = carry
            x, y = batch(settings, number)
            loss, gradients = jax.value_and_grad(
                lambda weights: self.loss(y, self.outputs(weights, x))
            )(weights)
            now = settings["rate"] * schedule(number)
            state = [
                now if replace else value
                for value, replace in zip(state, is_rate, strict=True)
            ]
            return optimizer.stateless_apply(state, gradients, weights), loss

        def train(of_model):
            weights, settings = of_model
            (weights, _), losses = jax.lax.scan(
                functools.partial(update, settings=settings),
                (weights, start),
                keras.ops.arange(updates),
            )
            return weights, losses

        every = (
            jax.vmap(train)
            if together
            else functools.partial(jax.lax.map, train)
        )
        return jax.jit(every)((weights, settings))
