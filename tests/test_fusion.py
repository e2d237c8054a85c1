"""Elementwise arithmetic is compiled where XLA is, and computed all the same where it is not."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import activations, fusion


def without(**kwargs):
    """Stands for TensorFlow's function in its build for TPUs, which has no XLA for the host."""
    assert kwargs["jit_compile"]
    raise tf.errors.NotFoundError(None, None, "could not find a transfer manager for Host")


@pytest.fixture
def no_xla(monkeypatch):
    """Makes this process one that XLA compiles nothing for."""
    fusion.has_xla.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(tf, "function", lambda _, **kwargs: lambda *_: without(**kwargs))
        assert not fusion.has_xla()
    yield
    fusion.has_xla.cache_clear()


def compiled_nodes(function):
    graph = tf.function(function).get_concrete_function(tf.TensorSpec([4])).graph
    functions = graph.as_graph_def().library.function
    return [f for f in functions if f.attr["_XlaMustCompile"].b]


def test_gelu_is_compiled_where_there_is_xla():
    assert fusion.has_xla() and compiled_nodes(activations.gelu)


def test_gelu_is_the_same_without_xla(no_xla):
    x = tf.constant([-2.0, -0.5, 0.0, 3.0])
    plain = activations.gelu(x)
    assert not compiled_nodes(activations.gelu)
    fusion.has_xla.cache_clear()
    np.testing.assert_allclose(plain, activations.gelu(x), atol=1e-6)


def test_a_graph_for_use_elsewhere_is_not_compiled():
    with fusion.without_xla():
        assert not compiled_nodes(activations.gelu)
