"""Where the replicas are: one device, all of this machine's, several machines, or TPUs."""

import os

import tensorflow as tf


def create_strategy(name, tpu_name=""):
    """Creates the strategy that spreads each batch over replicas.

    Args:
        name: "one_device" (the first GPU, or the CPU), "mirrored" (every GPU, or every
            logical CPU), "multi_worker" (the machines in the environment variable TF_CONFIG)
            or "tpu".
        tpu_name: for "tpu": name or grpc address; "" for a TPU in this machine. This path
            connects and initialises the TPU; it could not be run where this code was written.

    Returns:
        tf.distribute.Strategy.

    Raises:
        ValueError: `name` is none of the four, there is no such TPU, or no TF_CONFIG.
    """
    from official.common import distribute_utils  # Imports tf_keras, which tests need not.

    if name == "multi_worker":  # First: it must meet TensorFlow before any device is touched.
        if "TF_CONFIG" not in os.environ:
            raise ValueError(
                "`strategy=multi_worker` needs the environment variable TF_CONFIG, which lists the "
                "machines and this one's place among them. Received: no TF_CONFIG."
            )
        return distribute_utils.get_distribution_strategy("multi_worker_mirrored")
    if name == "tpu":
        return distribute_utils.get_distribution_strategy("tpu", tpu_address=tpu_name)
    num_gpus = len(tf.config.list_logical_devices("GPU"))
    if name == "one_device":
        return distribute_utils.get_distribution_strategy("one_device", num_gpus=min(num_gpus, 1))
    if name == "mirrored" and num_gpus == 0:
        # The library mirrors over one CPU at most; this is how two replicas are tried without GPUs.
        # Not by TensorFlow's collectives: those of two strategies in one process mix up.
        cpus = [device.name for device in tf.config.list_logical_devices("CPU")]
        reduction = tf.distribute.ReductionToOneDevice()
        return tf.distribute.MirroredStrategy(cpus, cross_device_ops=reduction)
    if name == "mirrored":
        return distribute_utils.get_distribution_strategy("mirrored", num_gpus=num_gpus)
    raise ValueError(
        f"`strategy` must be one of one_device, mirrored, multi_worker, tpu. Received: {name!r}."
    )


def check_divisible(batch_size, strategy, name="train_batch_size"):
    """Checks that a global batch can be shared out evenly, and prints the two sizes.

    Args:
        batch_size: examples over all replicas together.
        strategy: tf.distribute.Strategy.
        name: name of the setting, for the message.

    Returns:
        int: examples on each replica.

    Raises:
        ValueError: the replicas would get unequal parts.
    """
    num_replicas = strategy.num_replicas_in_sync
    if batch_size % num_replicas:
        raise ValueError(
            f"`{name}` is the batch of all replicas together and must be divisible by their "
            f"number. Received: {name}={batch_size}, {num_replicas} replicas."
        )
    per_replica = batch_size // num_replicas
    print(f"{name}: {batch_size} examples, {per_replica} on each of {num_replicas} replica(s)")
    return per_replica


def is_chief(strategy):
    """Returns whether this process writes for all: true but on the other workers of many."""
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type is None:
        return True
    workers_only = "chief" not in resolver.cluster_spec().as_dict()
    return resolver.task_type == "chief" or (workers_only and resolver.task_id == 0)


def distribute(dataset, strategy):
    """Spreads a dataset of global batches over the replicas.

    Every worker reads all of the data and takes its part of each batch: sharding by file
    would change which examples share a batch with the number of workers.

    Args:
        dataset: tf.data.Dataset of global batches, each of the same static shape.
        strategy: tf.distribute.Strategy.

    Returns:
        tf.distribute.DistributedDataset (a plain dataset on one device).
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return strategy.experimental_distribute_dataset(dataset.with_options(options))


def make_deterministic(seed):
    """Makes the same command give the same bits on the same machine.

    Call it before TensorFlow touches a device. Ops choose reproducible algorithms, or raise
    where there is none; operations run one after the other (`inter_op` 1), while the threads
    within an operation stay as many as TensorFlow chooses, so another number of cores may give
    other bits.

    Args:
        seed: int, seed of whatever draws from TensorFlow's and Keras's global generators.
    """
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.experimental.enable_op_determinism()
    tf.keras.utils.set_random_seed(seed)
