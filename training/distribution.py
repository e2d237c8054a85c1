"""Where the replicas are: one device, all of this machine's, several machines, or TPUs."""

import json
import os

import numpy as np
import tensorflow as tf

# What collective operations end with when one of those who take part does.
LOST_WORKER = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
)


def create_strategy(name, tpu_name=""):
    """Creates the strategy that spreads each batch over replicas.

    Args:
        name: "one_device" (the first GPU, or the CPU), "mirrored" (every GPU, or every
            logical CPU), "multi_worker" (the machines in the environment variable TF_CONFIG)
            or "tpu".
        tpu_name: for "tpu": name or grpc address, "" for the environment's, "local" for one in
            this machine. This path connects and initialises the TPU; it could not be run where
            this code was written.

    Returns:
        tf.distribute.Strategy.

    Raises:
        ValueError: `name` is none of the four, there is no such TPU, or TF_CONFIG does not tell
            of this machine.
    """
    from official.common import distribute_utils  # Imports tf_keras, which tests need not.

    if name == "multi_worker":  # First: it must meet TensorFlow before any device is touched.
        check_cluster(os.environ.get("TF_CONFIG", ""))
        return distribute_utils.get_distribution_strategy("multi_worker_mirrored")
    if name == "tpu":
        try:
            return distribute_utils.get_distribution_strategy("tpu", tpu_address=tpu_name)
        except tf.errors.OpError as error:
            raise ValueError(
                "`strategy=tpu` needs a TPU that `tpu_name` reaches, and TensorFlow's build for "
                f"TPUs (requirements-tpu.txt). Received: tpu_name={tpu_name!r}, and the answer: "
                f"{error.message.splitlines()[0]}"
            ) from error
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


def check_cluster(told):
    """Refuses a TF_CONFIG that does not have this machine: TensorFlow would take it to be alone.

    Args:
        told: str, what the environment variable holds.
    """
    try:
        config = json.loads(told)
        task = config["task"]
        tf.train.ClusterSpec(config["cluster"]).task_address(task["type"], int(task["index"]))
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(
            "`strategy=multi_worker` needs the environment variable TF_CONFIG, JSON with "
            "`cluster`, the addresses of the machines, and `task`, the `type` and `index` of this "
            f"one among them. Received: {told or 'nothing'} ({error})."
        ) from error


def check_divisible(batch_size, strategy, name="train_batch_size", num_micro_batches=1):
    """Checks that a global batch can be shared out evenly, and prints the two sizes.

    Args:
        batch_size: examples over all replicas together.
        strategy: tf.distribute.Strategy.
        name: name of the setting, for the message.
        num_micro_batches: parts in which each replica takes its examples.

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
    if per_replica % num_micro_batches:
        raise ValueError(
            f"`{name}` must give each replica a number of examples that is divisible by "
            f"`gradient_accumulation_steps`. Received: {name}={batch_size}, {num_replicas} "
            f"replicas, gradient_accumulation_steps={num_micro_batches}."
        )
    print(f"{name}: {batch_size} examples, {per_replica} on each of {num_replicas} replica(s)")
    return per_replica


def is_multi_worker(strategy):
    """Says whether several processes like this one take each step together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy):
    """Returns whether this process writes for all: true but on the other workers of many."""
    if not is_multi_worker(strategy):
        return True
    resolver = strategy.cluster_resolver
    workers_only = "chief" not in resolver.cluster_spec().as_dict()
    return resolver.task_type == "chief" or (workers_only and resolver.task_id == 0)


def from_all_workers(strategy, numbers):
    """Returns what each worker has brought; none goes on before all have come.

    Args:
        strategy: tf.distribute.Strategy.
        numbers: list of n ints, this worker's.

    Returns:
        int64[replicas of all workers, n]; [1, n] where there is one process.
    """
    if not is_multi_worker(strategy):
        return np.array([numbers])
    return gather(strategy, tf.constant([numbers], tf.int64))


def gather(strategy, value):
    """Joins what each replica of all workers has given: array, [rows of all replicas, ...].

    Args:
        strategy: tf.distribute.Strategy.
        value: what `strategy.run` returned for one output, [B, ...] on each replica.
    """
    # Of a worker with one replica `run` returns the tensor, and `gather` would take it for all.
    if is_multi_worker(strategy) and not isinstance(value, tf.distribute.DistributedValues):
        value = strategy.experimental_distribute_values_from_function(lambda _, own=value: own)
    return strategy.gather(value, axis=0).numpy()


def largest(strategy, numbers):
    """Returns the largest of each number over all workers: list of int; see `from_all_workers`."""
    return from_all_workers(strategy, numbers).max(axis=0).tolist()


def distribute(dataset, strategy):
    """Spreads a dataset of global batches over the replicas.

    A step's examples are those it would have on one device, whatever the number of workers; so
    sharding by file, which changes them, is out. A dataset is read in whole by every worker,
    which takes its part of each batch. A function makes less of it: each worker asks for its
    part of each batch alone, and still reads, but does not parse, what the others take.

    Args:
        dataset: tf.data.Dataset of global batches, each of the same static shape, or a function
            of (number of the part, number of parts) that returns the tf.data.Dataset of that
            part of each: rows [number * B / parts, (number + 1) * B / parts).
        strategy: tf.distribute.Strategy.

    Returns:
        tf.distribute.DistributedDataset (a plain dataset on one device).
    """
    if not callable(dataset):
        options = tf.data.Options()
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        return strategy.experimental_distribute_dataset(dataset.with_options(options))

    def for_one_worker(context):
        part = dataset(context.input_pipeline_id, context.num_input_pipelines)
        num_replicas = context.num_replicas_in_sync // context.num_input_pipelines
        if num_replicas == 1:
            return part
        rows = next(iter(tf.nest.flatten(part.element_spec))).shape[0]
        return part.rebatch(rows // num_replicas, drop_remainder=True)

    return strategy.distribute_datasets_from_function(for_one_worker)


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
