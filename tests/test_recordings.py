"""Recordings are read as they were written, or the flag is named."""

import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas reads the recordings")

from keras_rin.recordings import read  # noqa: E402

pytestmark = pytest.mark.one_backend

AXES = ["acc_x", "acc_y", "acc_z"]
MOTIONS = np.repeat(["run", "sit", "walk"], 4)
RNG = np.random.default_rng(0)
X = [RNG.normal(size=(RNG.integers(20, 30), 3)).round(4) for _ in MOTIONS]
LENGTHS = [*map(len, X)]
STAMP = pd.Timestamp("2025-03-01T12:00:00")
HERTZ = RNG.uniform(1, 3, 12).round(3)


def frame(number, clock=None):
    x = pd.DataFrame(X[number], columns=AXES)
    milliseconds = 20 * np.arange(len(x))
    if clock == "iso":
        stamps = STAMP + pd.to_timedelta(milliseconds, unit="ms")
        x.insert(0, "timestamp", stamps.strftime("%Y-%m-%dT%H:%M:%S.%f"))
    if clock == "ms":
        x.insert(0, "time_ms", 1740830400000 + milliseconds)
    return x


def folder(clock=None, name="{motion}/{number:02}.csv", change=str, **options):
    """Writes a file for each recording."""

    def write(path):
        for number, motion in enumerate(MOTIONS):
            file = path / name.format(motion=motion, number=number)
            file.parent.mkdir(parents=True, exist_ok=True)
            options.setdefault("index", False)
            frame(number, clock).to_csv(file, **options)
        (path / ".hidden.csv").write_text("x")
        return path

    return write


def table(write, name):
    """Writes all recordings into one file."""

    def write_table(path):
        parts = [
            frame(n, "iso").assign(id=n, label=motion)
            for n, motion in enumerate(MOTIONS)
        ]
        write(pd.concat(parts, ignore_index=True), path / name)
        return path / name

    return write_table


def npz(**arrays):
    def write(path):
        np.savez(path / "data.npz", **arrays)
        return path / "data.npz"

    return write


def padded(steps=40):
    x = np.full((12, steps, 3), np.nan)
    for row, of in zip(x, X, strict=True):
        row[3 : 3 + len(of)] = of  # and missing values before it
    return x


def ts(path, stamps=False, target=False, name="Motions"):
    lines = [f"@problemName {name}", f"@timeStamps {stamps}".lower()]
    kind = "@targetLabel true" if target else "@classLabel true run sit walk"
    lines += ["@univariate false", kind, "@data"]
    for x, motion, hertz in zip(X, MOTIONS, HERTZ, strict=True):
        dimensions = [
            ",".join(
                f"({t},{v})" if stamps else f"{v}" for t, v in enumerate(of)
            )
            for of in x.T
        ]
        lines.append(":".join([*dimensions, str(hertz if target else motion)]))
    (path / f"{name}.ts").write_text("\n".join(lines))
    return path / f"{name}.ts"


UNEQUAL = np.empty(12, object)
UNEQUAL[:] = X
EQUAL = np.array([x[:20] for x in X])
# What is written, and what is left out of it.
FORMS = {
    "decimal commas": (folder("iso", sep=";", decimal=","), {"timestamp"}),
    "milliseconds": (folder("ms"), {"time_ms"}),
    "an index of pandas": (folder(index=True), {""}),
    "no header": (folder(header=False), set()),
    "numbers for a header": (folder(header=["0", "1", "2"]), set()),
    "a byte order mark": (folder("iso", encoding="utf-8-sig"), {"timestamp"}),
    "quoted decimal commas": (folder(quoting=1, decimal=","), set()),
    "tabs in UTF-16": (folder(sep="\t", encoding="utf-16"), set()),
    "another ending": (folder(name="{motion}/{number:02}.CSV"), set()),
    "names": (folder("iso", name="{motion}_{number:02}.csv"), {"timestamp"}),
    "a table": (
        table(lambda of, path: of.to_csv(path, index=False), "all.csv"),
        {"timestamp"},
    ),
    "a table in Parquet": (
        table(pd.DataFrame.to_parquet, "all.parquet"),
        {"timestamp"},
    ),
    "arrays with NaN": (npz(X=padded(), Y=MOTIONS[:, None]), set()),
    "an archive": (ts, set()),
    "time stamps": (lambda path: ts(path, stamps=True), {"time stamps"}),
}


UNNAMED = {"no header", "numbers for a header", "arrays with NaN"}
UNNAMED |= {"an archive", "time stamps"}


def check(data, y=MOTIONS, x=X):
    np.testing.assert_array_equal(np.array(data.classes)[data.y], y)
    for values, expected in zip(data.x, x, strict=True):
        assert values.dtype == "float64"
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("name", FORMS)
def test_each_form_has_the_same_recordings(name, tmp_path):
    write, left_out = FORMS[name]
    if "Parquet" in name:
        pytest.importorskip("pyarrow")
    data = read(write(tmp_path))
    check(data)
    assert {*data.left_out} == left_out
    has_names = name not in UNNAMED
    assert data.channels == AXES if has_names else len(data.channels) == 3
    assert f"12 recordings of {min(LENGTHS)} to {max(LENGTHS)} steps" in repr(
        data
    )
    assert "walk (4)" in repr(data)


def rising(**options):
    return {
        "x": [np.column_stack([np.cumsum(x[:, 0] ** 2 + 1), x]) for x in X],
        "y": MOTIONS,
    }


def pair(path):
    (path / "run").mkdir()
    (path / "sit").mkdir()
    (path / "run" / "1.npz").write_bytes(b"x")
    for name in ("run/1", "run/2", "sit/3", "sit/4"):
        (path / f"{name}.csv").write_text("1,5\n2,5\n3,5\n2,5\n")
    return path


# What can be meant in two ways: the flag that is named, and how it ends.
TWO_WAYS = {
    "axes": (
        npz(x=EQUAL.swapaxes(1, 2), y=MOTIONS),
        {"axes": "recordings,channels,steps"},
        lambda data: check(data, x=EQUAL),
    ),
    "allow-pickle": (npz(x=UNEQUAL, y=MOTIONS), {"allow_pickle": True}, check),
    "target": (
        npz(x=EQUAL, y=np.arange(12) % 5),
        {"target": True},
        lambda data: np.testing.assert_array_equal(data.y, np.arange(12) % 5),
    ),
    "classes": (
        npz(x=EQUAL, y=np.arange(12.0) % 5),
        {"classes": True},
        lambda data: check(data, (np.arange(12) % 5).astype(str), EQUAL),
    ),
    "time": (rising, {"time": "1"}, check),
    "channels": (rising, {"channels": ["2", "3", "4"]}, check),
    "decimal": (
        pair,
        {"decimal": ","},
        lambda data: check(
            data, ["run"] * 2 + ["sit"] * 2, [[[1.5], [2.5], [3.5], [2.5]]] * 4
        ),
    ),
    "label": (
        folder(name="{number:02}{motion}_{motion}.csv"),
        {"label": "([a-z]+)_"},
        check,
    ),
    "recording": (
        table(
            lambda of, path: of.rename(columns={"id": "who"}).to_csv(path),
            "all.csv",
        ),
        {"recording": "who"},
        check,
    ),
}


@pytest.mark.parametrize("flag", TWO_WAYS)
def test_what_has_two_meanings_is_asked_for(flag, tmp_path):
    write, options, compare = TWO_WAYS[flag]
    data = write() if write is rising else None
    data = write(tmp_path) if data is None else data
    with pytest.raises(ValueError, match=f"--{flag}"):
        read(data)
    compare(read(data, **options))


def test_targets_are_numbers_whether_they_repeat_or_not(tmp_path):
    repeated = np.where(np.arange(12) % 2, 0.5, 2.5)
    for data, y in (
        (ts(tmp_path, target=True), HERTZ),
        (ts(tmp_path, stamps=True, target=True), HERTZ),
        ({"x": EQUAL, "y": repeated}, repeated),
        ({"x": EQUAL, "y": repeated[:, None].astype(str)}, repeated),
    ):
        data = read(data)
        np.testing.assert_array_equal(data.y, y)
        assert not data.classes


def test_a_test_set_of_the_data_is_kept(tmp_path):
    for part in ("TRAIN", "TEST"):
        ts(tmp_path, name=f"Motions_{part}")
    arrays = {"x": EQUAL, "y": MOTIONS, "x_test": EQUAL, "y_test": MOTIONS}
    for data in (tmp_path, arrays):
        assert read(data).is_test.tolist() == [False] * 12 + [True] * 12


def test_small_changes_of_large_values_are_kept():
    x = 471234567 + np.rint(20 * RNG.normal(size=(24, 50, 1)))
    data = read({"x": x, "y": np.arange(24) % 2})
    np.testing.assert_array_equal(data.x, x)


# The text of one recording, and what it has.
TEXTS = {
    "comments": ("# x\n\na,b\n1,2\n\n3,4.5\n,,\n", "ab", [[1, 2], [3, 4.5]]),
    "no header, no number": (
        "nan,1.5\n2.5,3.5\n1,2\n",
        "12",
        [[2.5, 3.5], [1, 2]],
    ),
    "spaces": ("  1.5  2.5\n  3.5 4.5\n", "12", [[1.5, 2.5], [3.5, 4.5]]),
    "one column": ("a\n1,5\n2,5\n", "a", [[1.5], [2.5]]),
    "two columns": ("a,b\n1,5\n2,5\n", "ab", [[1, 5], [2, 5]]),
    "exponents": ("a;b\n1e5;-2,5E-3\n+3;4\n", "ab", [[1e5, -2.5e-3], [3, 4]]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_file_is_read_as_it_was_meant(name, tmp_path):
    text, channels, x = TEXTS[name]
    (tmp_path / "1.csv").write_text(text)
    data = read(tmp_path / "1.csv", labelled=False, channels=[*channels])
    np.testing.assert_array_equal(data.x[0], x)


def changed(old, new, name="sit/05.csv"):
    """The folder, with a text replaced in one file."""

    def write(path):
        file = folder("iso")(path) / name
        text = file.read_text().splitlines()
        file.write_text("\n".join(re.sub(old, new, of) for of in text))
        return path

    return write


def several(*names):
    def write(path):
        for name in names:
            ts(path, name=name)
        return path

    return write


SECOND = X[5][1, 0]  # in line 3
REFUSED = {
    "a word": (
        changed(f",{SECOND},", ",high,"),
        '05.csv, line 3, column "acc_x',
    ),
    "no value": (
        changed(f",{SECOND},", ",,"),
        'line 3, column "acc_x.* missing',
    ),
    "infinite": (changed(f",{SECOND},", ",inf,"), "line 3, .* infinite"),
    "a cell more": (
        changed(f",{SECOND},", ",1,2,"),
        "05.csv, line 3 has 5 cells",
    ),
    "columns": (changed("acc_x", "acc_w"), "05.csv has the columns .*acc_w"),
    "one-hot": ({"x": EQUAL, "y": np.eye(12)}, "one label each"),
    "two targets": ({"x": EQUAL, "y": EQUAL[:, 0, :2]}, "one label each"),
    "labels for steps": ({"x": EQUAL, "y": EQUAL[..., 0]}, "one label each"),
    "another number": ({"x": EQUAL, "y": MOTIONS[1:]}, "12 recordings and y"),
    "no labels": ({"x": EQUAL}, "has no 'y': x"),
    "test alone": ({"x": EQUAL, "y": MOTIONS, "x_test": EQUAL}, "no 'y_test'"),
    "no target": ({"x": EQUAL, "y": HERTZ * np.inf}, "finite"),
    "no label": ({"x": EQUAL, "y": [None, *MOTIONS[1:]]}, "has no label"),
    "versions": (several("T_TRAIN", "T_TEST", "T_eq_TRAIN"), "T_eq_TRAIN"),
    "TRAIN and VALID": (several("T_TRAIN", "T_VALID"), "name one file"),
    "subjects": (several("subject1", "subject2"), "name one file"),
    "no archive": (lambda path: pair(path) / "run" / "1.npz", "no .npz file"),
    "a name": ("Nothing", "nor a data set of sktime: .*BasicMotions"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_sentence(name, tmp_path):
    data, message = REFUSED[name]
    if name == "a name":
        pytest.importorskip("sktime")
    data = data(tmp_path) if callable(data) else data
    with pytest.raises(ValueError, match=message) as error:
        read(data)
    assert "\n" not in str(error.value)
