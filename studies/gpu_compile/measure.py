"""What does XLA make of a training step for a GPU, without a GPU?

The gradient of a layer is compiled for an H100 and an A100, which are only
described to the compiler, and the optimized program is read. Nothing is run and
no time is measured: a step of a small recurrence takes about as long as its
kernels take to launch, so their number predicts the time. This needs the XLA
compiler for GPUs, two packages that run without any driver:

    pip install --no-deps jax-cuda12-pjrt==0.10.2 jax-cuda12-plugin==0.10.2

TensorFlow shows, without a GPU, the program that it gives to XLA: its loops are
read, and kernels are not known.
"""

import importlib.util
import os
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
# From NVIDIA's data sheets: major version of the compute capability, cores,
# bytes per second, bytes of cache and of shared memory, GHz.
GPUS = {
    "H100": (9, 132, 3_352_320_000_000, 52_428_800, 233_472, 1.98),
    "A100": (8, 108, 2_039_000_000_000, 41_943_040, 167_936, 1.41),
}
DESCRIPTION = """
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_core: {shared}
  shared_memory_per_block_optin: {optin}
  threads_per_core_limit: 2048 core_count: {cores} fpus_per_core: {fpus}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: {bandwidth}
  l2_cache_size: {cache} clock_rate_ghz: {clock}
  device_memory_size: 84942979072 cuda_compute_capability {{ major: {major} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  device_vendor: "NVIDIA Corporation" name: "{name}"
  driver_version: "12.8.0" runtime_version: "12.8.0"
  compile_time_toolkit_version: "12.8.0" dnn_version: "9.10.0"
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
device_description_str: "{name}"
"""

INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?(\S+) = .*? ([a-z][a-z0-9-]*)\(")
NOT_KERNELS = {
    "bitcast",
    "constant",
    "get-tuple-element",
    "parameter",
    "tuple",
    "while",
}
TO_HOST = {"infeed", "outfeed", "recv", "send"}


def device(name):
    """A GPU that need not be there, as a sharding of JAX."""
    import jax
    from jax.experimental import topologies

    major, cores, bandwidth, cache, shared, clock = GPUS[name]
    description = DESCRIPTION.format(
        name=f"NVIDIA {name}",
        major=major,
        cores=cores,
        fpus=128 if major == 9 else 64,
        bandwidth=bandwidth,
        cache=cache,
        shared=shared,
        optin=shared - 1024,
        clock=clock,
    )
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=description, topology="1x1x1"
    )
    return jax.sharding.SingleDeviceSharding(topology.devices[0])


def compiled(layer, size, gpu):
    """The gradient of a layer by its weights, compiled for a GPU."""
    import jax

    batch, time, features, units = size
    layer = layer(units)
    layer.build((batch, time, features))
    others = [v.value for v in layer.non_trainable_variables]

    def loss(weights, x):
        y, _ = layer.stateless_call(weights, others, x, training=True)
        return (y**2).mean()

    sharding = device(gpu)
    gradient = jax.jit(
        jax.grad(loss), in_shardings=sharding, out_shardings=sharding
    )
    x = jax.ShapeDtypeStruct((batch, time, features), "float32")
    weights = [v.value for v in layer.trainable_variables]
    weights = [jax.ShapeDtypeStruct(w.shape, w.dtype) for w in weights]
    with mock.patch("jax.default_backend", return_value="gpu"):
        return gradient.lower(weights, x).compile()


def before_compilation(layer, size):
    """The same gradient as TensorFlow gives it to XLA for a GPU."""
    import tensorflow as tf

    batch, time, features, units = size
    layer = layer(units)
    layer.build((batch, time, features))
    others = [v.numpy() for v in layer.non_trainable_variables]

    @tf.function(jit_compile=True)
    def gradient(x, *weights):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            y, _ = layer.stateless_call(weights, others, x, training=True)
            loss = tf.reduce_mean(y**2)
        return tape.gradient(loss, weights)

    shapes = (batch, time, features), *(w.shape for w in layer.weights)
    program = gradient.experimental_get_compiler_ir(*map(tf.TensorSpec, shapes))
    return program(stage="hlo", platform_name="GPU")


def loops(program):
    """Of each loop in a program: trip count, kernels, loops within."""
    bodies, all_loops = {}, []
    for line in program.splitlines():
        if line.startswith(("%", "ENTRY")):
            body = bodies.setdefault(
                re.match(r"(?:ENTRY )?%?(\S+)", line)[1], []
            )
        elif match := INSTRUCTION.match(line):
            body.append((match[2], line))
    for lines in bodies.values():
        for operation, line in lines:
            if operation != "while":
                continue
            body = bodies[re.search(r"body=%?([^,\s]+)", line)[1]]
            operations = [operation for operation, _ in body]
            all_loops.append(
                {
                    "trips": trip_count(line, bodies),
                    "kernels": sum(op not in NOT_KERNELS for op in operations),
                    "loops": operations.count("while"),
                    "to_host": sum(op in TO_HOST for op in operations),
                }
            )
    return all_loops


def trip_count(line, bodies):
    """As the compiler wrote it, or the constant that a counter has to reach."""
    if known := re.search(r'known_trip_count":\{"n":"(\d+)"', line):
        return int(known[1])
    name, lines = re.search(r"condition=%?([^,\s]+)", line)[1], []
    while name:
        body = [line for _, line in bodies[name]]
        lines += body
        called = re.search(r"to_apply=%?([^,\s]+)", " ".join(body))
        name = called and called[1]
    text = "\n".join(lines)
    limit = re.search(r" compare\(.*%(\S+)\), direction=LT", text)
    constant = re.search(rf"%{re.escape(limit[1])} = .*constant\((\d+)", text)
    return int(constant[1]) if constant else None


def measure_layer(name, gpu, size):
    if keras.backend.backend() == "tensorflow":
        program = before_compilation(LAYERS[name], size)
        return {"layer": name, "size": size, "loops": loops(program)}
    program = compiled(LAYERS[name], size, gpu)
    return {
        "layer": name,
        "gpu": gpu,
        "size": size,
        "loops": loops(program.as_text()),
        "temporary_bytes": program.memory_analysis().temp_size_in_bytes,
    }


def measure(size=SIZE, names=tuple(LAYERS), gpus=tuple(GPUS)):
    backend = keras.backend.backend()
    if backend == "jax" and not importlib.util.find_spec("jax_cuda12_plugin"):
        raise ModuleNotFoundError("jax-cuda12-plugin is missing.")
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    # Autotuning would run kernels.
    os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
    cases = [(name, gpu) for gpu in gpus for name in names]
    records = [measure_layer(*case, size) for case in tqdm(cases)]
    return {"records": records}


def kernels_per_step(loops, time):
    """Kernels of one time step, forward and backward."""
    inner = [loop for loop in loops if not loop["loops"]]
    outer = [loop for loop in loops if loop["loops"]] or [{"trips": 1}] * 2
    for loop, around in zip(inner, outer, strict=True):
        steps = time // (loop["trips"] * around["trips"])
        yield f"{loop['kernels'] / steps:.3g}"


def tables(results):
    rows = []
    for run in results["records"]:
        row = {"layer": run["layer"]}
        if "gpu" in run:
            kernels = kernels_per_step(run["loops"], run["size"][1])
            row = {"compiled for": run["gpu"], **row}
            row["kernels per time step"] = " + ".join(kernels)
        trips = [str(loop["trips"] or "unknown") for loop in run["loops"]]
        row["iterations of the loops"] = ", ".join(trips)
        transfers = sum(loop["to_host"] for loop in run["loops"])
        row["host transfers in loops"] = str(transfers)
        if "gpu" in run:
            mebibytes = run["temporary_bytes"] / 2**20
            row["temporary memory, MiB"] = f"{mebibytes:.0f}"
        rows.append(row)
    words = 2 if "compiled for" in rows[0] else 1
    body = [list(row.values()) for row in rows]
    batch, time, features, units = results["records"][0]["size"]
    caption = f"Gradient of {batch} sequences of {time} steps, {features} "
    caption += f"feature, {units} units"
    return {caption: record.markdown(list(rows[0]), body, words=words)}


VARIANTS = {
    "": Variant("Compiled by JAX", backend="jax"),
    "tensorflow": Variant("TensorFlow, before compilation", {"gpus": (None,)}),
}
SMALLEST = {"size": (2, 32, 1, 3), "names": ("RIN",), "gpus": ("H100",)}
