"""Random numbers in TensorFlow that are a function of a seed, a record and a counter.

`tf.random` has one seed for a whole tensor; here each row has its own, so that a record's
numbers do not depend on the batch that it is in. n: records.
"""

import tensorflow as tf

GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio.
MAX_STREAMS = 16  # Of a record.
FLOAT_BITS = 24  # Of a float32 in [0, 1).


def streams(seed, numbers):
    """Yields streams of random numbers, MAX_STREAMS at most, that a seed has for some records.

    They begin where SplitMix64 says (Steele, Lea and Flood 2014, figure 17).

    Args:
        seed: int of 0 or more.
        numbers: int64[n], of the records.

    Yields:
        uint32[n, 1], to be given to `bits`, `uniform` or `below`.
    """
    golden = tf.constant(GOLDEN, tf.uint64)
    start = mixed_64(golden * (seed % 2**63 + 1))
    for stream in range(1, MAX_STREAMS + 1):
        place = tf.cast(numbers, tf.uint64) * MAX_STREAMS + stream
        yield tf.cast(
            tf.bitwise.right_shift(mixed_64(start + golden * place), tf.constant(32, tf.uint64)),
            tf.uint32,
        )[:, tf.newaxis]


def folded(values, shift):
    """Returns unsigned integers XOR themselves shifted to the right."""
    shifted = tf.bitwise.right_shift(values, tf.constant(shift, values.dtype))
    return tf.bitwise.bitwise_xor(values, shifted)


def mixed_64(values):
    """Returns SplitMix64's mixture of the bits of uint64[...]."""
    values = folded(values, 30) * tf.constant(0xBF58476D1CE4E5B9, tf.uint64)
    values = folded(values, 27) * tf.constant(0x94D049BB133111EB, tf.uint64)
    return folded(values, 31)


def bits(stream, counters):
    """Returns random bits; equal counters in a row give equal ones.

    Args:
        stream: uint32[n, 1], of `streams`.
        counters: int32[n, k] or [k], of 0 or more.

    Returns:
        uint32[n, k], mixed as MurmurHash3's finalizer does.
    """
    values = stream + tf.cast(counters, tf.uint32) * tf.constant(GOLDEN >> 32, tf.uint32)
    values = folded(values, 16) * tf.constant(0x85EBCA6B, tf.uint32)
    values = folded(values, 13) * tf.constant(0xC2B2AE35, tf.uint32)
    return folded(values, 16)


def uniform(stream, counters):
    """Returns float32[n, k] in [0, 1); arguments as of `bits`."""
    drawn = tf.bitwise.right_shift(bits(stream, counters), tf.constant(32 - FLOAT_BITS, tf.uint32))
    # To a signed integer first: from there alone the conversion is a fast one.
    return tf.cast(tf.cast(drawn, tf.int32), tf.float32) * 2.0**-FLOAT_BITS


def below(limit, stream, counters):
    """Returns int32[n, k] in [0, limit); arguments as of `bits`."""
    product = tf.cast(bits(stream, counters), tf.uint64) * limit
    return tf.cast(tf.bitwise.right_shift(product, tf.constant(32, tf.uint64)), tf.int32)
