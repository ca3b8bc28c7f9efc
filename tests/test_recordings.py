"""Tables are read as their owner says, refused, or asked about."""

import re
import shlex

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas reads the recordings")

from keras_rin.recordings import MissingArguments  # noqa: E402
from keras_rin.recordings import _command  # noqa: E402
from keras_rin.recordings import read  # noqa: E402
from keras_rin.recordings._read import recordings_of  # noqa: E402

pytestmark = pytest.mark.one_backend

RNG = np.random.default_rng(0)
PERSONS, ROWS = ("01", "null", "20240101"), 40
MOTIONS = np.repeat(["run", "nan", "1.10"], 4)
X = [RNG.normal(size=(RNG.integers(20, 30), 2)).round(4) for _ in MOTIONS]
COLUMNS = {"channels": "ax,ay", "label": "motion"}
ONE = COLUMNS | {"recording": "id"}
LOG = COLUMNS | {"group": "person", "time": "t"}
STAMP = pd.Timestamp("2025-03-01T12:00:00")


def log():
    """Forty rows of each person, whose label changes every ten."""
    count = len(PERSONS) * ROWS
    x = RNG.normal(size=(count, 2))
    frame = pd.DataFrame(x, columns=["ax", "ay"]).assign(note="a, b")
    frame["person"] = np.repeat(PERSONS, ROWS)
    frame["motion"] = np.tile(np.repeat(["sit", "null"], 10), count // 20)
    return frame.assign(t=np.arange(count) * 0.02)


def table():
    frames = [
        pd.DataFrame(x, columns=["ax", "ay"]).assign(id=n, motion=motion)
        for n, (x, motion) in enumerate(zip(X, MOTIONS, strict=True))
    ]
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(t=np.arange(len(frame)))


def csv(frame, **options):
    def write(path):
        options.setdefault("index", False)
        frame.to_csv(path / "data.csv", **options)
        return path / "data.csv"

    return write


def text(content, name="data.csv"):
    def write(path):
        (path / name).write_bytes(content.encode())
        return path / name

    return write


def folder(ending="csv", name="{motion}/{n:02}", **options):
    def write(path):
        path = path / "classes"
        for n, motion in enumerate(MOTIONS):
            file = path / f"{name.format(motion=motion, n=n)}.{ending}"
            file.parent.mkdir(parents=True, exist_ok=True)
            frame = pd.DataFrame(X[n], columns=["ax", "ay"])
            if ending == "parquet":
                frame.to_parquet(file)
            else:
                frame.to_csv(file, index=False, **options)
        (path / ".DS_Store").write_text("x")
        return path

    return write


def npz(**arrays):
    def write(path):
        np.savez(path / "data.npz", **arrays)
        return path / "data.npz"

    return write


def ts(target=False, stamps=False):
    def write(path):
        kind = (
            "@targetLabel true" if target else "@classLabel true run nan 1.10"
        )
        lines = ["@problemName M", f"@timeStamps {str(stamps).lower()}"]
        lines += ["@missing false", "@univariate false", kind, "@data"]
        for n, (x, motion) in enumerate(zip(X, MOTIONS, strict=True)):
            values = [
                ",".join(
                    f"({t},{v})" if stamps else f"{v}" for t, v in enumerate(of)
                )
                for of in x.T
            ]
            lines.append(":".join([*values, str(n / 4) if target else motion]))
        (path / "M.ts").write_text("\n".join(lines))
        return path / "M.ts"

    return write


def padded():
    x = np.full((12, 40, 2), np.nan)
    for row, values in zip(x, X, strict=True):
        row[: len(values)] = values
    return x


def interleaved():
    """The persons' rows in turn, with one clock."""
    frame = log()
    frame["t"] = np.tile(np.arange(ROWS), len(PERSONS))
    return frame.sort_values("t", kind="stable")


TABLE, LOGGED = table(), log()
RECORDINGS = {
    "csv": (csv(TABLE), ONE),
    "a frame": (lambda path: TABLE, ONE),
    "channels in a list": (
        lambda path: TABLE,
        ONE | {"channels": ["ax", "ay"]},
    ),
    "decimal commas": (
        csv(TABLE, sep=";", decimal=","),
        ONE | {"separator": ";", "decimal": ","},
    ),
    "tabs and a byte order mark": (
        csv(TABLE, sep="\t", encoding="utf-8-sig"),
        ONE | {"separator": "\t"},
    ),
    "quoted, with carriage returns": (
        csv(TABLE, quoting=2, lineterminator="\r\n"),
        ONE,
    ),
    "an index": (csv(TABLE, index=True), ONE),
    "empty lines": (
        lambda path: text(csv(TABLE)(path).read_text().replace("\n", "\n\n"))(
            path
        ),
        ONE,
    ),
    "parquet": (
        lambda path: (TABLE.to_parquet(path / "a.parquet"), path / "a.parquet")[
            1
        ],
        ONE,
    ),
    "a time": (csv(TABLE), ONE | {"time": "t"}),
    "interleaved, with a time": (
        csv(TABLE.iloc[TABLE.groupby("id").cumcount().argsort(kind="stable")]),
        ONE | {"time": "t"},
    ),
    "two columns of a recording": (
        csv(TABLE.assign(a=TABLE["id"] // 4, b=TABLE["id"] % 4)),
        COLUMNS | {"recording": "a,b"},
    ),
    "a folder": (folder(), {"channels": "ax,ay"}),
    "a folder of Parquet": (folder("parquet"), {"channels": "ax,ay"}),
    "another ending": (folder("CSV"), {"channels": "ax,ay"}),
    "arrays": (npz(x=padded(), y=MOTIONS), {}),
    "an archive": (ts(), {}),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_what_was_written(name, tmp_path):
    write, said = RECORDINGS[name]
    if "archive" in name:
        pytest.importorskip("sktime")
    data = read(write(tmp_path), **said)
    order = np.argsort(
        [x[0, 0] for x in data.x], kind="stable"
    )  # a folder is in the order of names
    expected = np.argsort([x[0, 0] for x in X])
    assert not data.is_log and len(data.x) == 12
    for a, b in zip(order, expected, strict=True):
        np.testing.assert_array_equal(data.x[a], X[b])
        assert data.classes[data.y[a]] == MOTIONS[b]
    assert sum(map(len, X)) == sum(map(len, data.x))
    assert f"12 recordings of {min(map(len, X))} to" in repr(data)


CLOCKS = {
    "seconds": (LOGGED["t"], "t"),
    "milliseconds": (LOGGED["t"] * 1000, "t:ms"),
    "since 1970": (
        1740830400000 + (LOGGED["t"] * 1000).round().astype(int),
        "t",
    ),
    "text": ((STAMP + pd.to_timedelta(LOGGED["t"], unit="s")).astype(str), "t"),
    "dates": (STAMP + pd.to_timedelta(LOGGED["t"], unit="s"), "t"),
}


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("is_file", [False, True])
def test_a_log_has_groups_stretches_and_a_rate(name, is_file, tmp_path):
    clock, time = CLOCKS[name]
    frame = LOGGED.assign(t=clock)
    frame = frame.drop(index=range(50, 60))  # a gap
    data = csv(frame)(tmp_path) if is_file else frame
    data = read(data, **LOG | {"time": time})
    assert [len(x) for x in data.x] == [40, 10, 20, 40]
    np.testing.assert_allclose(data.rows()[0], frame[["ax", "ay"]])
    assert data.groups.tolist() == [PERSONS[n] for n in (0, 1, 1, 2)]
    labels = np.array(data.classes)[data.rows()[1]]
    np.testing.assert_array_equal(labels, frame["motion"])
    assert data.rate == pytest.approx(50)
    assert "Left out: note." in repr(data)


def test_interleaved_persons_are_told_apart_by_group_and_time():
    frame = interleaved()
    data = read(frame, **LOG)
    for person, x in zip(data.groups, data.x, strict=True):
        of_person = frame[frame["person"] == person]
        np.testing.assert_array_equal(x, of_person[["ax", "ay"]])


def test_targets_are_numbers_and_labels_are_text(tmp_path):
    y = np.arange(12) % 3
    frame = TABLE.assign(motion=y[TABLE["id"]])
    numbers = {"channels": "ax", "recording": "id", "target": "motion"}
    np.testing.assert_array_equal(read(frame, **numbers).y, y)
    assert read(frame, **ONE).classes == ["0", "1", "2"]
    arrays = {"x": padded(), "y": y, "group": np.repeat(["a", "b"], 6)}
    np.testing.assert_array_equal(read(arrays, target="y").y, y)
    assert read(arrays, label="y").groups[-1] == "b"
    pytest.importorskip("sktime")
    data = read(ts(target=True)(tmp_path))
    np.testing.assert_array_equal(data.y, np.arange(12) / 4)


def cell(row, column, value):
    frame = log().astype(object)
    frame.loc[row, column] = value
    return frame


TWICE = LOGGED.set_axis([*"abc", "motion", "ax", "ax"], axis=1)
NO_TIME = LOG | {"time": None}
# What is said of which data, and the error.
REFUSED = {
    "a word": (cell(7, "ax", "high"), LOG, r"row 8 \(line 9\), .*ax.*high"),
    "a complex number": (cell(7, "ax", 1 + 2j), LOG, r"line 9\), column .ax"),
    "no value": (cell(7, "ay", np.nan), LOG, r"line 9\), column .ay"),
    "infinite": (cell(7, "ay", np.inf), LOG, r"line 9\), column .ay.*inf"),
    "no label": (cell(7, "motion", None), LOG, r"line 9\), column .motion"),
    "no group": (cell(7, "person", ""), LOG, r"line 9\), column .person"),
    "no time": (cell(7, "t", "soon"), LOG, "line 2|line 9"),
    "newest first": (LOGGED[::-1], LOG, r"line 3\), column .t.*no later"),
    "shuffled": (LOGGED.sample(frac=1, random_state=0), LOG, "no later than"),
    "interleaved": (interleaved(), LOG | {"group": None}, "no later than"),
    "a group again": (interleaved(), NO_TIME, "column .person.*begin again"),
    "two labels": (
        TABLE.assign(id=TABLE["id"] // 8),
        ONE,
        "column .motion.*two values",
    ),
    "a gap": (
        TABLE.drop(index=range(5, 15)),
        ONE | {"time": "t"},
        "a gap of 11 s",
    ),
    "no column": (LOGGED, LOG | {"channels": "ax,az"}, "no column 'az': ax"),
    "two columns": (
        TWICE,
        {"channels": "ax", "label": "motion"},
        "two columns",
    ),
    "both": (LOGGED, LOG | {"target": "ax"}, "label or a target"),
    "no rows": (LOGGED[:0], LOG, "no rows"),
    "a word in a frame": (
        lambda path: cell(7, "ax", "high"),
        LOG,
        "row 7, .*ax",
    ),
    "masked": (
        lambda path: LOGGED.assign(
            ax=LOGGED["ax"].convert_dtypes().mask(LOGGED.index == 7)
        ),
        LOG,
        "row 7, column .ax",
    ),
    "a semicolon at the ends": (
        text("ax;ay;motion\n1;2;a;\n3;4;b;\n"),
        COLUMNS | {"separator": ";"},
        "more cells than the header",
    ),
    "a cell more": (
        text("ax,ay,motion\n1,2,a\n1,2,3,b\n"),
        COLUMNS,
        "line 3, saw 4",
    ),
    "a cell less": (
        text("ax,ay,motion\n1,2,a\n1,2\n"),
        COLUMNS,
        "line 3.*motion",
    ),
    "decimal commas unsaid": (
        text("ax;ay;motion\n1,5;2,5;a\n"),
        COLUMNS | {"separator": ";"},
        "line 2.*1,5",
    ),
    "cp1252": (
        lambda path: csv(LOGGED.assign(note="ü"), encoding="cp1252")(path),
        LOG,
        "not in UTF-8",
    ),
    "an empty file": (text(""), COLUMNS, "No columns"),
    "a folder in a folder": (
        folder(name="{motion}/a/{n}"),
        {"channels": "ax"},
        "folder for each class, unlike",
    ),
    "files beside each other": (
        folder(name="{n}"),
        {"channels": "ax"},
        "unlike",
    ),
    "labels of a folder": (folder(), COLUMNS, "no meaning for the folder"),
    "a pickle": (
        npz(x=np.array([*X, None], object)[:-1], y=MOTIONS),
        {},
        "data.npz: ",
    ),
    "other arrays": (
        npz(x=padded(), y=MOTIONS, z=MOTIONS),
        {},
        "group at most: x, y, z",
    ),
    "one-hot": (npz(x=padded(), y=np.eye(12)), {"label": "y"}, "the shape"),
    "two axes": (
        npz(x=padded()[..., 0], y=MOTIONS),
        {},
        "recordings, steps, chan",
    ),
    "complex": (npz(x=padded() * 1j, y=MOTIONS), {}, "numbers"),
    "NaN inside": (
        npz(
            x=np.where(np.arange(40)[:, None] == 3, np.nan, padded()), y=MOTIONS
        ),
        {},
        "recording 0, step 3",
    ),
    "targets with stamps": (
        ts(target=True, stamps=True),
        {},
        "beside time stamps",
    ),
    "a name": (lambda path: "Nothing", {}, "Nothing is no folder"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_as_said_is_refused_in_a_line(name, tmp_path, capsys):
    data, said, message = REFUSED[name]
    data = (
        csv(data)(tmp_path)
        if isinstance(data, pd.DataFrame)
        else data(tmp_path)
    )
    said = {key: value for key, value in said.items() if value}
    with pytest.raises(ValueError, match=message) as error:
        read(data, **said)
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, MissingArguments)
    if not isinstance(data, pd.DataFrame):
        flags = [f"--{key}={value}" for key, value in said.items()]
        assert _command.main(["stream", str(data), *flags]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1


ASKED = {
    "a log": (csv(LOGGED), "stream"),
    "semicolons": (csv(LOGGED, sep=";", decimal=","), "stream"),
    "tabs": (csv(LOGGED, sep="\t"), "stream"),
    "parquet": (RECORDINGS["parquet"][0], "recordings"),
    "a table": (csv(TABLE, index=True), "recordings"),
    "a folder": (folder(), "recordings"),
    "numbers": (npz(x=padded(), y=np.arange(12)), "recordings"),
    "reversed": (csv(LOGGED[::-1]), "stream"),
    "nothing known": (text("a,b\n1,2\n3,1\n"), "stream"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_not_said_is_asked_with_a_line_to_copy(name, tmp_path, capsys):
    """Copied, the proposal is read right or refused."""
    write, command = ASKED[name]
    assert _command.main([command, str(write(tmp_path))]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    program, *arguments = shlex.split(line)
    assert program == "keras-rin"
    values = vars(_command._parser().parse_args(arguments))
    columns = *_command.COLUMNS, *_command.FORM
    said = {name: values[name] for name in columns}
    if name in ("reversed", "nothing known"):
        with pytest.raises(ValueError, match="no later|no column 'LABEL'"):
            recordings_of(values["data"], said, command == "recordings")
        return
    data = recordings_of(values["data"], said, command == "recordings")
    if "t" in str(data.channels) or name == "numbers":
        return
    assert data.channels == ["ax", "ay"]
    assert len(data.x) == (3 if data.is_log else 12)


def test_the_question_shows_the_columns():
    with pytest.raises(MissingArguments) as error:
        read(LOGGED, channels="ax,ay")
    assert re.search(r"t +0 to 2.38, rises", str(error.value))
    assert "person  01, null, 20240101 (3)" in str(error.value)
    assert error.value.arguments["label"] == "motion"
