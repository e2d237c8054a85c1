"""XLA's compiler for TPUs, without a TPU: what a program takes of a core's memory.

Needs `requirements-tpu-compile.txt`, whose versions are pinned: the compiler is reached by jaxlib's
own interface for clients that only compile, which no promise covers.
"""

import os
import re

# Slices of eight cores, as the compiler counts them: a chip of v3 or v4 has two, of v5e one.
TOPOLOGIES = {"v3": "v3:2x2x1", "v4": "v4:2x2x1", "v5e": "v5e:2x4"}
NUM_CORES = 8
# The library looks for the machine that it would run on, and asks the cloud, unless it is told.
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v4-8",
    "JAX_PLATFORMS": "cpu",
}


def compile_for(kind, text):
    """Compiles a program for each core of a slice.

    Args:
        kind: key of TOPOLOGIES.
        text: str, XLA's text of a module before any optimization.

    Returns:
        (dict of bytes on a core: `peak`, the most that is held at a time, and `arguments`,
        `temporaries`, `code`; str, the optimized module's text).

    Raises:
        MemoryError: it does not fit; its one argument is the compiler's line.
    """
    os.environ.update(ENVIRONMENT)
    import jax
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax.experimental import topologies
    from jaxlib import _hlo, _jax

    # The way to the compiler knows no copies; a reshape to the same shape is one.
    text = re.sub(r"(\S+ = \S+) copy\(", r"\1 reshape(", text)
    computation = _hlo.XlaComputation(
        _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    )
    slice_ = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[kind])
    devices = slice_.devices
    assert len(devices) == NUM_CORES, devices
    with mlir.make_ir_context():
        module = ir.Module.parse(_jax.mlir.xla_computation_to_mlir_module(computation))
        options = compiler.get_compile_options(
            num_replicas=len(devices),
            num_partitions=1,
            device_assignment=np.array([[device.id] for device in devices]),
        )
        try:
            program = compiler.backend_compile_and_load(
                devices[0].client, module, _jax.DeviceList(tuple(devices)), options, []
            )
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise MemoryError(str(error).splitlines()[0]) from error
    sizes = program.get_compiled_memory_stats()
    optimized = program.hlo_modules()[0].to_string()
    return {
        "peak": sizes.peak_memory_in_bytes,
        "arguments": sizes.argument_size_in_bytes,
        "temporaries": sizes.temp_size_in_bytes,
        "code": sizes.generated_code_size_in_bytes,
    }, optimized
