"""Training that goes on after a kill."""

import contextlib
import io
import json
import os
import pathlib

import keras
import numpy as np


class ResumableTraining(keras.callbacks.Callback):
    """Keeps the state of training in a file, to go on from after a kill.

    The state is all that training changes: the weights, the states of layers
    and of their random generators, the variables of the optimizer, the epoch
    and the logs. It is written before the first epoch and after each one,
    under another name that then takes the place of `path`. So whenever the
    process dies, and also where the disk is full, the file holds one whole
    epoch.

    To go on, make the model and this callback again and hand its `epoch` to
    `fit`: `model.fit(..., initial_epoch=resumable.epoch,
    callbacks=[..., resumable])`. `resumable.history` has the logs of all
    epochs so far, like `keras.callbacks.History`. Without the file training
    starts from the beginning.

    What comes out is what one run without an end would have made, bit for bit
    on one machine and backend, if the batches of an epoch depend on its number
    and on nothing that the process did before. Arrays that `fit` shuffles do
    not: their order begins again with each call. On Torch with a GPU, Dropout
    needs a `seed`. The state of other callbacks is not kept. Place this one
    last, so that an epoch counts only when the others are done with it.

    Args:
        path: The file, by custom with the suffix `.npz`.

    Raises:
        ValueError: If the file cannot be read; when training begins, if the
            model is not built, or the file is of another model or optimizer;
            if the first epoch is not `epoch`.
        OSError: If the file cannot be written. The one before stays.

    Example:

    >>> def train(epochs):
    ...     model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    ...     model.compile("adam", "mse")
    ...     resumable = keras_rin.callbacks.ResumableTraining(path)
    ...     model.fit(
    ...         np.ones((8, 2)),
    ...         np.ones((8, 1)),
    ...         epochs=epochs,
    ...         initial_epoch=resumable.epoch,
    ...         callbacks=[resumable],
    ...         verbose=0,
    ...     )
    ...     return len(resumable.history["loss"])
    >>> train(epochs=2), train(epochs=5)
    (2, 5)
    """

    def __init__(self, path):
        super().__init__()
        self.path = pathlib.Path(path)
        self.epoch = 0
        self.history = {}
        self._saved = None
        self._generator = None
        if self.path.exists():
            self._read()

    def on_train_begin(self, logs=None):
        if self._saved is not None:
            self._restore()
        self._write()

    def on_epoch_begin(self, epoch, logs=None):
        if epoch != self.epoch:
            raise ValueError(
                f"`fit` needs `initial_epoch={self.epoch}`, the `epoch` of "
                f"ResumableTraining. Received: initial_epoch={epoch}"
            )

    def on_epoch_end(self, epoch, logs=None):
        self.epoch = epoch + 1
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(float(value))
        self._write()

    def _variables(self):
        model, optimizer = self.model, self.model.optimizer
        if not model.built:
            raise ValueError(
                "ResumableTraining needs a model that is built before `fit`, "
                f"with keras.Input or model.build(shape). Received: {model}"
            )
        if optimizer is None:
            return model.variables
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        return model.variables + optimizer.variables

    def _write(self):
        arrays = [keras.ops.convert_to_numpy(v) for v in self._variables()]
        history = np.bytes_(json.dumps(self.history))
        with _replacing(self.path) as file:
            np.savez(
                file,
                *arrays,
                **_torch_generator(),
                epoch=self.epoch,
                history=history,
            )

    def _read(self):
        content = io.BytesIO(self.path.read_bytes())
        try:
            with np.load(content) as file:
                saved = dict(file)
            self.epoch = int(saved.pop("epoch"))
            self.history = json.loads(saved.pop("history").item())
            self._generator = saved.pop("torch", None)
            self._saved = [saved[f"arr_{i}"] for i in range(len(saved))]
        except Exception as error:  # a damaged archive raises this and that
            raise ValueError(
                f"{self.path} cannot be read as a state of training "
                f"({error}). Delete it to start from the beginning."
            ) from error

    def _restore(self):
        variables, saved = self._variables(), self._saved
        if [tuple(v.shape) for v in variables] != [a.shape for a in saved]:
            raise ValueError(
                f"{self.path} is of another model or optimizer: it has arrays "
                f"of shapes {[a.shape for a in saved]}. "
                f"Received: {[(v.path, tuple(v.shape)) for v in variables]}"
            )
        for variable, array in zip(variables, saved, strict=True):
            if array.dtype.kind == "V":  # NumPy's files know no bfloat16
                dtype = keras.ops.convert_to_numpy(variable).dtype
                array = array.view(dtype)
            variable.assign(array)
        if self._generator is not None and keras.backend.backend() == "torch":
            import torch

            torch.set_rng_state(torch.from_numpy(self._generator))
        self._saved = None


def _torch_generator():
    """Keras drops out by Torch's own generator where a layer has no seed."""
    if keras.backend.backend() != "torch":
        return {}
    import torch

    return {"torch": torch.get_rng_state().numpy()}


@contextlib.contextmanager
def _replacing(path):
    """A file to write to, which takes the place of `path` once it is whole."""
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise OSError(
            error.errno,
            f"The state of training cannot be written ({error}); what was "
            "there before stays as it is",
            str(path),
        ) from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
