"""What the machine can do: the rate of float32 products at a step's shapes, and of its memory.

Like a contestant, a limit is a row, and its function returns a step; the time of one is
weighed against what the step computes or moves. Shapes: R rows (B * T), H hidden, I inner.
"""

import concurrent.futures

import numpy as np

from benchmarks.contestants import Contestant, limit_tensorflow

REPEATS = 2  # Of a layer's products, so that a step takes about half a second at ALBERT-base.
TRIAD_SIZE = 2**25  # Elements of each array: 128 MiB, far more than any cache.


def products(work):
    """Lists the dense products of one layer: (transpose the left, transpose the right, sizes).

    Each product X W comes with the two of its backward pass, X' dY and dY W'.

    Returns:
        A list of (bool, bool, rows, inner size, columns).
    """
    rows, width, inner = work.num_tokens, work.config.hidden_size, work.config.intermediate_size
    result = []
    for a, b in [(width, width)] * 4 + [(width, inner), (inner, width)]:
        result += [(False, False, rows, a, b), (True, False, a, rows, b), (False, True, rows, b, a)]
    return result * REPEATS


def product_flops(work):
    return sum(2 * rows * inner * columns for _, _, rows, inner, columns in products(work))


def operands(work):
    """Yields (transpose left, transpose right, left, right), float32 arrays, for each product."""
    random = np.random.default_rng(0)
    made = {}
    for case in products(work):
        if case not in made:
            left_transposed, right_transposed, rows, inner, columns = case
            left = (inner, rows) if left_transposed else (rows, inner)
            right = (columns, inner) if right_transposed else (inner, columns)
            made[case] = [random.standard_normal(size, np.float32) for size in (left, right)]
        yield (*case[:2], *made[case])


def tensorflow_products(work):
    tf = limit_tensorflow(work.num_threads)
    constants = {}

    def constant(array):
        return constants.setdefault(id(array), tf.constant(array))

    cases = [(a, b, constant(left), constant(right)) for a, b, left, right in operands(work)]

    def step():
        for a, b, left, right in cases:
            result = tf.linalg.matmul(left, right, transpose_a=a, transpose_b=b)
        return float(result[0, 0])

    return step


def torch_products(work):
    import torch

    torch.set_num_threads(work.num_threads)
    cases = []
    for a, b, *arrays in operands(work):
        left, right = map(torch.from_numpy, arrays)
        cases.append((left.T if a else left, right.T if b else right))

    def step():
        for left, right in cases:
            result = torch.mm(left, right)
        return result[0, 0].item()

    return step


def numpy_products(work):
    cases = [(x.T if a else x, y.T if b else y) for a, b, x, y in operands(work)]

    def step():
        for left, right in cases:
            result = np.matmul(left, right)
        return float(result[0, 0])

    return step


def triad(work):
    """Builds a = b + c over arrays too large for any cache, a slice of them on each thread."""
    arrays = np.zeros((3, TRIAD_SIZE), np.float32)
    parts = np.array_split(arrays, work.num_threads, axis=1)
    pool = concurrent.futures.ThreadPoolExecutor(work.num_threads)

    def step():
        list(pool.map(lambda part: np.add(part[1], part[2], out=part[0]), parts))
        return float(arrays[0, 0])

    return step


TRIAD_BYTES = 3 * 4 * TRIAD_SIZE

PRODUCTS = {
    "tensorflow_products": Contestant("TensorFlow, oneDNN", ("tensorflow",), tensorflow_products),
    "torch_products": Contestant("PyTorch", ("torch",), torch_products, uses_tensorflow=False),
    "numpy_products": Contestant("NumPy", (), numpy_products, uses_tensorflow=False),
}
TRIAD = {"triad": Contestant("memory", (), triad, uses_tensorflow=False)}
LIMITS = PRODUCTS | TRIAD
