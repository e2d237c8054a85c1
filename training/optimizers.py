"""LAMB and AdamW as the original computes them, for any `tf.distribute` strategy.

Keras's own optimizers are another formula (`Lamb`), clip before they sum over
replicas, and see no layer norms by name; hence these few lines of ours. Sources:
google-research/albert lamb_optimizer.py:46-147 and optimization.py:120-207.
"""

import tensorflow as tf

EXCLUDED_ROLES = frozenset({"bias", "output_bias", "beta", "gamma"})


def default_exclusions(names):
    """Picks the variables without weight decay and layer adaptation: biases and layer norms.

    A variable's role is the last component of its name. Differs from the original: it
    searches the whole name for "LayerNorm", "layer_norm" and "bias"
    (optimization.py:81,90); on ALBERT's names both pick the same.

    Args:
        names: variable names, such as "bert/pooler/dense/bias".

    Returns:
        frozenset of those names that are excluded.
    """
    return frozenset(name for name in names if name.rsplit("/", 1)[-1] in EXCLUDED_ROLES)


class Optimizer:
    """Updates named variables by LAMB or AdamW from gradients that are already summed and clipped.

    With m and v the running means of the gradient and its square,
        u = m / (sqrt(v) + epsilon) + weight_decay * w
        w <- w - learning_rate * (|w| / |u| for LAMB, 1 for AdamW) * u
    where excluded variables have neither decay nor the ratio, and the ratio is 1 when
    either norm is 0. Each variable has one ratio, however often the network uses it.

    Attributes:
        slots: dict of "<name>/adam_m" and "<name>/adam_v" to tf.Variable, the original's
            names; with `bias_correction` also "optimizer/num_updates", int64[].
        trust_ratios: dict of name to tf.Variable, float32[], LAMB's ratio in the last step that
            was applied, for the variables that have one. A figure to look at, in no checkpoint.
    """

    def __init__(
        self,
        named_variables,
        *,
        kind,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude=None,
        bias_correction=False,
    ):
        """Creates the slots; call it within the scope of the strategy.

        Args:
            named_variables: dict of name to the tf.Variable that is to be trained.
            kind: "lamb" or "adamw".
            weight_decay: decoupled decay per step, times the learning rate.
            beta_1: decay of m, in [0, 1).
            beta_2: decay of v, in [0, 1).
            epsilon: added to the root of v.
            exclude: names without decay and adaptation; None takes `default_exclusions`.
            bias_correction: divide m and v by 1 - beta^t; the original does not.

        Raises:
            ValueError: unknown `kind`, or `exclude` names a variable that is not there.
        """
        if kind not in ("lamb", "adamw"):
            raise ValueError(f'`kind` must be "lamb" or "adamw". Received: {kind!r}.')
        exclude = default_exclusions(named_variables) if exclude is None else frozenset(exclude)
        if unknown := sorted(exclude - set(named_variables)):
            raise ValueError(f"`exclude` must name variables of the model. Received: {unknown}.")
        self.kind, self.exclude = kind, exclude
        self.weight_decay, self.epsilon = weight_decay, epsilon
        self.beta_1, self.beta_2 = beta_1, beta_2
        self.variables = dict(named_variables)
        self.slots = {}
        for name, variable in self.variables.items():
            for slot in ("adam_m", "adam_v"):
                zeros = tf.zeros(variable.shape, variable.dtype)
                self.slots[f"{name}/{slot}"] = tf.Variable(zeros, trainable=False)
        self.trust_ratios = {}
        if kind == "lamb":
            self.trust_ratios = {
                name: tf.Variable(tf.ones([]), trainable=False)
                for name in sorted(set(self.variables) - exclude)
            }
        self.num_updates = None
        if bias_correction:
            self.num_updates = tf.Variable(tf.zeros([], tf.int64), trainable=False)
            self.slots["optimizer/num_updates"] = self.num_updates

    def apply(self, gradients, learning_rate, apply_update):
        """Updates variables and slots, or leaves every bit of them as it is.

        Call it in replica context (inside `strategy.run`), with the same values on every
        replica. Not inside a `tf.cond`: the replicas meet here.

        Args:
            gradients: dict of name to dense float[...] of the variable's shape, or None:
                that variable and its slots stay as they are.
            learning_rate: float32[].
            apply_update: bool[]; False leaves everything untouched, whatever the gradients.
        """
        gradients = {name: g for name, g in gradients.items() if g is not None}
        corrections = None
        if self.num_updates is not None:
            t = tf.cast(self.num_updates + 1, tf.float32)
            corrections = (1.0 - self.beta_1**t, 1.0 - self.beta_2**t)
        tf.distribute.get_replica_context().merge_call(
            self._update_all, args=(gradients, learning_rate, corrections, apply_update)
        )

    def _update_all(self, strategy, gradients, learning_rate, corrections, apply_update):
        """Runs the update of each variable on each device; called in cross-replica context."""
        for name, gradient in gradients.items():
            slots = self.slots[f"{name}/adam_m"], self.slots[f"{name}/adam_v"]
            strategy.extended.update(
                self.variables[name],
                self._update,
                args=(*slots, self.trust_ratios.get(name), gradient, learning_rate),
                kwargs={
                    "corrections": corrections,
                    "apply_update": apply_update,
                    "excluded": name in self.exclude,
                },
            )
        if self.num_updates is not None:
            strategy.extended.update(
                self.num_updates,
                lambda count, applied: count.assign_add(tf.cast(applied, tf.int64)),
                args=(apply_update,),
            )

    def _update(
        self,
        variable,
        m,
        v,
        last_ratio,
        gradient,
        learning_rate,
        *,
        corrections,
        apply_update,
        excluded,
    ):
        """Updates one variable on one device."""

        def assign():
            next_m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
            next_v = self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient)
            m.assign(next_m)
            v.assign(next_v)
            if corrections is not None:
                next_m, next_v = next_m / corrections[0], next_v / corrections[1]
            direction = next_m / (tf.sqrt(next_v) + self.epsilon)
            rate = learning_rate
            if not excluded:
                direction += self.weight_decay * variable
            if last_ratio is not None:
                ratio = trust_ratio(variable, direction)
                last_ratio.assign(ratio)
                rate *= ratio
            variable.assign_sub(rate * direction)
            return True

        return tf.cond(apply_update, assign, lambda: False)


def trust_ratio(variable, direction):
    """Returns |variable| / |direction|, or 1 where either norm is 0 (lamb_optimizer.py:108-113)."""
    weight_norm, direction_norm = tf.norm(variable), tf.norm(direction)
    both = (weight_norm > 0) & (direction_norm > 0)
    return tf.where(both, weight_norm / direction_norm, 1.0)
