"""Keeps the best network in a file that is whole at any moment."""

import keras


class KeepBest(keras.callbacks.ModelCheckpoint):
    """A ModelCheckpoint of the best that writes to another name, then renames.

    So a run that is killed while it writes keeps the best network before, and
    so does one whose disk is full.
    """

    def __init__(self, file, **kwargs):
        self._file = file
        self._new = file.with_suffix(".new.keras")
        super().__init__(self._new, save_best_only=True, **kwargs)

    def on_train_begin(self, logs=None):
        self._new.unlink(missing_ok=True)  # half of one, after a kill

    def on_epoch_end(self, epoch, logs=None):
        try:
            super().on_epoch_end(epoch, logs)
            if self._new.exists():
                self._new.replace(self._file)
        except OSError as error:
            self._new.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"The best network cannot be written ({error}); what was "
                "there before stays as it is",
                str(self._file),
            ) from error
