"""What does XLA make of a training step for a GPU, without a GPU?

The gradient of a layer is compiled for an H100, which is only described to the
compiler, and the optimized program is read. Nothing is run and no time is
measured: a step of a small recurrence takes about as long as its kernels take
to launch, so their number predicts the time. This needs the XLA compiler for
GPUs, two packages that run without any driver:

    pip install --no-deps jax-cuda12-pjrt==0.10.2 jax-cuda12-plugin==0.10.2
"""

import importlib.util
import os
import pathlib
import re
from unittest import mock

import keras
from tqdm import tqdm

from engine import record
from engine.measurement import Variant
from keras_rin.layers import RIN
from keras_rin.layers import RINCell

SIZE = 32, 784, 1, 100  # batch, time, features, units
LAYERS = {
    "RIN": RIN,
    "RNN(RINCell)": lambda units: keras.layers.RNN(RINCell(units)),
    "SimpleRNN": lambda units: keras.layers.SimpleRNN(units, "relu"),
    "GRU": lambda units: keras.layers.GRU(units, use_cudnn=False),
    "LSTM": lambda units: keras.layers.LSTM(units, use_cudnn=False),
}
# From the data sheet of NVIDIA, in the format of XLA.
H100 = pathlib.Path(__file__).with_name("h100.txtpb").read_text()

INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?(\S+) = .*? ([a-z][a-z0-9-]*)\(")
NOT_KERNELS = "bitcast constant get-tuple-element parameter tuple while".split()


def device():
    """A GPU that need not be there, as a sharding of JAX."""
    import jax
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(
        platform="cuda", target_config=H100, topology="1x1x1"
    )
    return jax.sharding.SingleDeviceSharding(topology.devices[0])


def compiled(layer, size):
    """The gradient of a layer by its weights, compiled for a GPU."""
    import jax

    batch, time, features, units = size
    layer = layer(units)
    layer.build((batch, time, features))
    others = [v.value for v in layer.non_trainable_variables]

    def loss(weights, x):
        y, _ = layer.stateless_call(weights, others, x, training=True)
        return (y**2).mean()

    gpu = device()
    gradient = jax.jit(jax.grad(loss), in_shardings=gpu, out_shardings=gpu)
    x = jax.ShapeDtypeStruct((batch, time, features), "float32")
    weights = [v.value for v in layer.trainable_variables]
    weights = [jax.ShapeDtypeStruct(w.shape, w.dtype) for w in weights]
    with mock.patch("jax.default_backend", return_value="gpu"):
        return gradient.lower(weights, x).compile()


def loops(program):
    """Of each loop in a program: trip count, kernels, loops within."""
    bodies, all_loops = {}, []
    for line in program.splitlines():
        if line.startswith(("%", "ENTRY")):
            name = re.match(r"(?:ENTRY )?%?(\S+)", line)[1]
            body = bodies.setdefault(name, [])
        elif match := INSTRUCTION.match(line):
            body.append((match[2], line))
    for lines in bodies.values():
        for operation, line in lines:
            if operation != "while":
                continue
            body = bodies[re.search(r"body=%?([^,\s]+)", line)[1]]
            operations = [operation for operation, _ in body]
            trips = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
            kernels = sum(op not in NOT_KERNELS for op in operations)
            loop = {"trips": int(trips[1]), "kernels": kernels}
            all_loops.append(loop | {"loops": operations.count("while")})
    return all_loops


def measure(size=SIZE, names=tuple(LAYERS)):
    if not importlib.util.find_spec("jax_cuda12_plugin"):
        raise ModuleNotFoundError("jax-cuda12-plugin is missing.")
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    # Autotuning would run kernels.
    os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
    records = []
    for name in tqdm(names):
        program = compiled(LAYERS[name], size)
        temporary = program.memory_analysis().temp_size_in_bytes
        run = {"layer": name, "gpu": "H100", "size": size}
        run |= {"loops": loops(program.as_text())}
        records.append(run | {"temporary_bytes": temporary})
    return {"records": records}


def kernels_per_step(loops, time):
    """Kernels of one time step, forward and backward."""
    inner = [loop for loop in loops if not loop["loops"]]
    outer = [loop for loop in loops if loop["loops"]] or [{"trips": 1}] * 2
    for loop, around in zip(inner, outer, strict=True):
        steps = time // (loop["trips"] * around["trips"])
        yield f"{loop['kernels'] / steps:.3g}"


def tables(results):
    batch, time, features, units = results["records"][0]["size"]
    columns = {
        "compiled for": "{gpu}",
        "layer": "{layer}",
        "kernels per time step": lambda run: " + ".join(
            kernels_per_step(run["loops"], time)
        ),
        "iterations of the loops": lambda run: ", ".join(
            str(loop["trips"]) for loop in run["loops"]
        ),
        "temporary memory, MiB": lambda run: (
            f"{run['temporary_bytes'] / 2**20:.0f}"
        ),
    }
    caption = f"Gradient of {batch} sequences of {time} steps, {features} "
    caption += f"feature, {units} units"
    return {caption: record.table(columns, results["records"], words=2)}


VARIANTS = {"": Variant(backend="jax")}
SMALLEST = {"size": (2, 32, 1, 3), "names": ("RIN",)}
