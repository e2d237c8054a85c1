import numpy as np
import tensorflow as tf
from scipy import stats

from data import counted_randomness

COLUMNS = tf.range(200)


def streams(numbers, seed=0):
    return list(counted_randomness.streams(seed, tf.constant(numbers, tf.int64)))


def test_the_mixtures_are_those_of_splitmix64_and_murmurhash3():
    counters = tf.constant([1, 2], tf.uint64) * tf.constant(counted_randomness.GOLDEN, tf.uint64)
    mixed = counted_randomness.mixed_64(counters).numpy().tolist()
    assert mixed == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]  # SplitMix64 from a seed of 0.
    (bits,) = counted_randomness.bits(tf.constant([[1]], tf.uint32), [0]).numpy()
    assert bits.tolist() == [0x514E28B7]


def test_numbers_are_even_and_differ_by_record_stream_seed_and_counter():
    rows = [counted_randomness.uniform(stream, COLUMNS) for stream in streams(range(500))[:3]]
    rows += [counted_randomness.uniform(streams(range(500), seed)[0], COLUMNS) for seed in (1, 2)]
    drawn = np.stack(rows).reshape(-1)
    assert drawn.min() >= 0 and drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert len(np.unique(drawn)) > 0.98 * len(drawn)
    for distance in (1, 200, 500 * 200):  # Of neighbours by counter, record and stream.
        assert abs(np.corrcoef(drawn[distance:], drawn[:-distance])[0, 1]) < 0.01


def test_integers_below_a_limit_are_even():
    (stream, *_) = streams(range(500))
    drawn = counted_randomness.below(30, stream, COLUMNS).numpy()
    assert stats.chisquare(np.bincount(drawn.reshape(-1), minlength=30)).pvalue > 1e-3
