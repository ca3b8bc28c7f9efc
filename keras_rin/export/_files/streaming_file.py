"""What an export of a model of sequences returns."""

import pathlib
import typing


class StreamingFile(typing.NamedTuple):
    """A file or folder that was written. Printed, it is a line.

    Attributes:
        path: `pathlib.Path`, the file or folder.
        contents: String, its functions and their inputs.
        file_bytes: Integer, the bytes of the file or folder.
        state_bytes: Integer, the bytes of the hidden states of one stream, as
            `streaming_step` takes them.
    """

    path: pathlib.Path
    contents: str
    file_bytes: int
    state_bytes: int

    def __str__(self):
        sizes = f"{self.file_bytes:,} bytes, {self.state_bytes:,} of states"
        return f"{self.path}: {self.contents}; {sizes}"
