"""Training that resumes after a kill."""

import errno
import json
import os
import pathlib
import warnings
from typing import Any

import keras
import numpy as np

from keras_rin import _callers
from keras_rin import _files
from keras_rin._layer_walk.layers import hidden_states
from keras_rin.callbacks import _checkpoint
from keras_rin.callbacks import _model_description


class ResumableTraining(keras.callbacks.Callback):
    """Keeps a checkpoint of training, from which it resumes after a kill.

    The checkpoint is one file with all that training changes: the weights, the
    states of layers and of their random generators, the variables of the
    optimizer and of those in other attributes of the model, the epoch and the
    logs. It is written before the first epoch and after each one, under
    another name that then takes the place of `path`. So whenever the process
    dies, and also where the disk is full, the file holds one whole epoch.

    To resume, make the model and this callback again and hand its `epoch` to
    `fit`: `model.fit(..., initial_epoch=resumable.epoch,
    callbacks=[..., resumable])`. `resumable.history` has the logs of all
    epochs so far, like `keras.callbacks.History`. Without the file training
    starts from the beginning. The same callback may resume as well: after an
    epoch that did not end, the model gets back the state in the file.

    The result is what one run without an end would have made, bit for bit
    on one machine and backend, if the batches of an epoch depend on its number
    and on nothing that the process did before. Arrays that `fit` shuffles do
    not: their order begins again with each call. On Torch with a GPU, Dropout
    needs a `seed`. The state of other callbacks is not kept. Place this one
    last, so that an epoch counts only when the others are done with it.

    The file also holds what the training is of: the config of the model, the
    loss, the class and config of the optimizer, the path, dtype and shape of
    each variable, and `settings`. Where one of them differs, resuming is
    refused with an error that names it. Numbers in names count by their order
    alone, so that `rin_3` made in a notebook resumes as `rin`. A model that
    Keras cannot serialize is compared by its class, its `layers` and its
    variables; the code of lambdas, metrics and arguments of `compile` such as
    `jit_compile` are not compared. A learning rate that is a number is state,
    which callbacks change: that of the file is used, with a warning where the
    model was compiled with a new one.

    Where an epoch ends with a variable that is not finite, the file keeps the
    epoch before and training ends.

    Args:
        path: The file, by custom with the suffix `.npz`. A symbolic link stays
            one. A relative path is made absolute here, so that training may
            change the current folder.
        settings: Dict of JSON values, what else the training depends on, such
            as the command line of a script. Defaults to `None`, an empty dict.

    Raises:
        ValueError: If the file is no checkpoint, or of other `settings`, or
            these are no such dict; when training begins, if the model or one
            of its other optimizers is not built, or the file is of another
            model or optimizer, or of settings where there are none now; if
            the first epoch is not `epoch`.
        OSError: If the file cannot be read or written, in which case it stays
            as it is; a FileExistsError if another process has written it.
        FloatingPointError: If a variable is not finite after an epoch.

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

    def __init__(
        self, path: str | os.PathLike, settings: dict[str, Any] | None = None
    ):
        super().__init__()
        self.path = pathlib.Path(path).absolute()
        self.settings = _as_json(settings)
        self._stamp = _stamp(self.path)
        self._saved = _checkpoint.read(self.path)
        self._description: dict = {}
        self._within_epoch = False
        self.epoch, self.history = 0, {}
        if self._saved is not None:
            self.epoch, self.history = self._saved.epoch, self._saved.history
            if settings is not None:
                self._refuse_changes(self._changed_settings())
        self._summary = _summary(self)

    def on_train_begin(self, logs=None):
        if self._within_epoch:  # an earlier `fit` ended there
            self._saved = _checkpoint.read(self.path)
        variables = self._variables()
        self._refuse_another_model(_model_description.describe(self.model))
        if self._saved is not None:
            self._restore(variables)
        arrays = _arrays(variables)
        self._never_finite = set(_indices_not_finite(variables, arrays))
        self._write(arrays)
        _files.remove_unfinished(self.path)
        self._within_epoch = False

    def on_epoch_begin(self, epoch, logs=None):
        if epoch != self.epoch:
            raise ValueError(
                f"`fit` needs `initial_epoch={self.epoch}`, the `epoch` of "
                f"ResumableTraining. Received: initial_epoch={epoch}"
            )
        self._within_epoch = True

    def on_epoch_end(self, epoch, logs=None):
        variables = self._variables()
        arrays = _arrays(variables)
        for index in _indices_not_finite(variables, arrays):
            if index not in self._never_finite:
                raise FloatingPointError(
                    f"Epoch {epoch + 1} ends with {variables[index].path} not "
                    f"finite. {self.path} keeps the state before this epoch."
                )
        self.epoch = epoch + 1
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
        self._write(arrays)
        self._within_epoch = False

    def _variables(self):
        model, optimizer = self.model, self.model.optimizer
        if not model.built:
            raise ValueError(
                "ResumableTraining needs a model that is built before `fit`, "
                f"with keras.Input or model.build(shape). Received: {model}"
            )
        variables = model.variables + hidden_states(model)
        if optimizer is not None and not optimizer.built:
            optimizer.build(model.trainable_variables)
        for optimizer in _optimizers(model):
            if not optimizer.built:
                raise ValueError(
                    "ResumableTraining needs all optimizers of a model to be "
                    "built before `fit`: call `optimizer.build(variables)`. "
                    f"Received: {optimizer.name}, not built"
                )
            variables += optimizer.variables
        return variables

    def _refuse_another_model(self, description):
        changes = []
        if self._saved is not None:
            self._description = self._saved.model
            changes = self._changed_settings()
        self._description = self._description or description
        changes += _model_description.model_differences(
            self._description, description
        )
        self._refuse_changes(changes)

    def _changed_settings(self):
        return _model_description.differences(
            {"settings": self._saved.settings}, {"settings": self.settings}
        )

    def _refuse_changes(self, changes):
        if changes:
            rest = f"; {len(changes) - 5} more" if len(changes) > 5 else ""
            raise ValueError(
                f"{self.path} is of another training. In the file "
                f"{'; '.join(changes[:5])}{rest}. To resume, make the model, "
                "the optimizer and the settings as they were; to train anew, "
                "name another file."
            )

    def _restore(self, variables):
        saved = self._saved
        shapes = [tuple(v.shape) for v in variables]
        if [array.shape for array in saved.arrays] != shapes:
            raise ValueError(
                f"{self.path} does not contain the arrays of its model: they "
                f"have the shapes {[array.shape for array in saved.arrays]}. "
                f"Received: {[(v.path, tuple(v.shape)) for v in variables]}"
            )
        compiled_rates = _model_description.rates(variables)
        for variable, array in zip(variables, saved.arrays, strict=True):
            if array.dtype.kind == "V":  # NumPy's files know no bfloat16
                dtype = keras.ops.convert_to_numpy(variable).dtype
                array = array.view(dtype)
            variable.assign(array)
        self._warn_of_rates(compiled_rates, _model_description.rates(variables))
        if saved.generator is not None and keras.backend.backend() == "torch":
            import torch

            torch.set_rng_state(torch.from_numpy(saved.generator))
        self._saved = None

    def _warn_of_rates(self, compiled, restored):
        if compiled not in (restored, self._description.get("rates")):
            warnings.warn(
                f"The learning rate is {restored}, as in {self.path}, and not "
                f"{compiled}, with which the model was compiled. To change it "
                "on the way use a callback.",
                stacklevel=_callers.stacklevel(),
            )

    def _write(self, arrays):
        self._refuse_foreign_file()
        content = _checkpoint.Checkpoint(
            epoch=self.epoch,
            history=self.history,
            model=self._description,
            settings=self.settings,
            arrays=arrays,
            generator=_torch_generator(),
        )
        _checkpoint.write(self.path, content)
        self._stamp, self._summary = _stamp(self.path), _summary(self)

    def _refuse_foreign_file(self):
        """Raises an error if another process has written the file."""
        if _stamp(self.path) in (None, self._stamp):
            return
        stored = _checkpoint.read(self.path)
        if stored is not None and _summary(stored) != self._summary:
            raise FileExistsError(
                errno.EEXIST,
                f"Another process has written this file, after {stored.epoch} "
                "epochs of a training, and it is unchanged. Each training "
                "needs a file of its own",
                str(self.path),
            )


def _optimizers(model):
    """The optimizer of `compile`, then those in other attributes."""
    candidates = [model.optimizer, *vars(model).values()]
    kind = keras.optimizers.Optimizer
    return list({id(o): o for o in candidates if isinstance(o, kind)}.values())


def _as_json(settings):
    settings = {} if settings is None else settings
    try:
        text = json.dumps(settings, sort_keys=True)
    except (TypeError, ValueError):
        text = ""
    if not isinstance(settings, dict) or not text:
        raise ValueError(
            "`settings` must be a dict that JSON can encode. "
            f"Received: settings={settings!r}"
        )
    return json.loads(text)


def _stamp(path):
    """The identity of a file, other after another process replaces it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _summary(training):
    return training.epoch, repr(training.history)


def _arrays(variables):
    return [keras.ops.convert_to_numpy(v) for v in variables]


def _indices_not_finite(variables, arrays):
    """The indices of the variables that are not finite."""
    for index, (v, array) in enumerate(zip(variables, arrays, strict=True)):
        if "float" in v.dtype and not np.isfinite(array).all():
            yield index


def _torch_generator():
    """The state of Torch's generator, of which Keras draws without a seed."""
    if keras.backend.backend() != "torch":
        return None
    import torch

    return torch.get_rng_state().numpy()
