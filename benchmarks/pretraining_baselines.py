"""What needs no network: guesses at masked pieces and at the order of sentences.

    python -m benchmarks.pretraining_baselines --train_file='records/train*.tfrecord' \\
        --heldout_file='records/heldout*.tfrecord'

Everything is fitted on the training records and scored on the held-out ones:

masked-LM  a constant: the piece that is masked most often
           the two neighbours: the piece seen most often between them, [MASK] among them
order      the two lengths alone: gradient boosting on the pieces in A and in B
           the bags of pieces alone: logistic regression on (pieces of B) - (pieces of A)

A model that learns is above the tables. Running text whose pairs are cut well has the lengths
at 50 %; documentation has not, since it opens with a short summary.
"""

import numpy as np
from absl import flags

import command_line
from evaluation import pretraining_baselines as baselines

TRAIN_FILE = flags.DEFINE_string(
    "train_file", None, "Records to fit on: paths or patterns, comma between.", required=True
)
HELDOUT_FILE = flags.DEFINE_string(
    "heldout_file", None, "Records to score on: paths or patterns, comma between.", required=True
)
MAX_EXAMPLES = flags.DEFINE_integer(
    "max_examples", 500_000, "Most examples read of either; a table needs 100 bytes a piece."
)
READ_BATCH = 1024  # Examples parsed at once: speed alone depends on it.
INVERSE_PENALTIES = (1e-4, 1e-3, 1e-2)  # Of the logistic regression; the best one is kept.
MAX_ITERATIONS = 1000  # Enough for each of them to converge.


def read_examples(pattern, max_examples):
    """Reads records into memory.

    Returns:
        (dict of arrays [n, ...] by the features' names, the records' sentence objective).
    """
    from data import corpus, input_pipeline, metadata, record_checks

    files = corpus.expand_patterns(pattern)
    stored = record_checks.stored_settings(files[0], metadata.read(files[:1])[0])
    lengths = {name: stored[name] for name in ("max_seq_length", "max_predictions_per_seq")}
    batches = input_pipeline.pretraining_dataset(
        files, batch_size=READ_BATCH, training=False, **lengths
    ).take(-(-max_examples // READ_BATCH))
    parts = list(batches.as_numpy_iterator())
    examples = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    is_real = np.flatnonzero(examples["example_weights"])[:max_examples]
    objective = stored.get("sentence_objective", "sop")
    return {name: values[is_real] for name, values in examples.items()}, objective


def masked_lm_rows(train, heldout):
    """Yields (task, guess, accuracy, standard error, number) for the masked pieces."""
    truth = baselines.masked_labels(heldout)
    constant = baselines.most_frequent(baselines.masked_labels(train))
    yield "masked-LM", "constant", *baselines.accuracy(constant, truth), len(truth)
    tables = baselines.NeighbourTables.count(train)
    guesses = tables.guess(heldout)
    yield "masked-LM", "two neighbours", *baselines.accuracy(guesses, truth), len(truth)


def order_rows(train, heldout):
    """Yields (task, guess, accuracy, standard error, number) for the order of A and B."""
    from sklearn import ensemble

    labels, truth = train["next_sentence_labels"], heldout["next_sentence_labels"]
    constant = baselines.most_frequent(labels)
    yield "order", "constant", *baselines.accuracy(constant, truth), len(truth)
    lengths = ensemble.HistGradientBoostingClassifier(random_state=0)
    lengths.fit(baselines.segment_lengths(train), labels)
    guesses = lengths.predict(baselines.segment_lengths(heldout))
    yield "order", "two lengths", *baselines.accuracy(guesses, truth), len(truth)
    num_pieces = 1 + max(int(baselines.restored_ids(part).max()) for part in (train, heldout))
    guesses = guess_by_bags(bags(train, num_pieces), labels, bags(heldout, num_pieces), truth)
    yield "order", "bags of pieces", *baselines.accuracy(guesses, truth), len(truth)
    guesses = guess_by_ends(train, labels, heldout)
    yield "order", "ends and meeting", *baselines.accuracy(guesses, truth), len(truth)


def bags(examples, num_pieces):
    """Returns the sparse matrix [n, num_pieces] of the differences of the bags of B and A."""
    from scipy import sparse

    rows, pieces, signs = baselines.bag_differences(examples)
    shape = (len(examples["input_ids"]), num_pieces)
    return sparse.csr_array((signs.astype(np.float32), (rows, pieces)), shape=shape)


def guess_by_bags(train, labels, heldout, truth):
    """Fits logistic regressions of several penalties, and guesses with the best.

    The best on the held-out examples themselves: training records repeat their documents,
    so no part of them tells which penalty is best, and a baseline may be flattered.
    Without intercept, since B before A is the negation of A before B.

    Args:
        train: sparse [n, num_pieces].
        labels: int[n].
        heldout: sparse [m, num_pieces].
        truth: int[m].

    Returns:
        int[m].
    """
    from sklearn import linear_model

    attempts = []
    for inverse_penalty in INVERSE_PENALTIES:
        model = linear_model.LogisticRegression(
            C=inverse_penalty, fit_intercept=False, max_iter=MAX_ITERATIONS
        )
        attempts.append(model.fit(train, labels).predict(heldout))
    return max(attempts, key=lambda guesses: np.mean(guesses == truth))


def guess_by_ends(train, labels, heldout):
    """Fits a logistic regression to the pieces where the segments meet and begin and end.

    Args:
        train, heldout: dicts of arrays, as in `evaluation.pretraining_baselines`.
        labels: int[n].

    Returns:
        int[m].
    """
    from sklearn import feature_extraction, linear_model

    hasher = feature_extraction.FeatureHasher(2**20, input_type="string", alternate_sign=False)
    model = linear_model.SGDClassifier(loss="log_loss", alpha=1e-4, max_iter=8, tol=None)
    model.fit(hasher.transform(baselines.end_pieces(train)), labels)
    return model.predict(hasher.transform(baselines.end_pieces(heldout)))


def main():
    command_line.prepare_tensorflow()
    train, objective = read_examples(TRAIN_FILE.value, MAX_EXAMPLES.value)
    heldout, _ = read_examples(HELDOUT_FILE.value, MAX_EXAMPLES.value)
    print(f"{len(train['input_ids']):,} training examples, {len(heldout['input_ids']):,} held out")
    print(f"{'task':<11}{'guess from':<16}{'accuracy':>9}{'+-':>7}{'of':>12}")
    kinds = [masked_lm_rows] if objective == "none" else [masked_lm_rows, order_rows]
    for rows in kinds:
        for task, guess, accuracy, error, number in rows(train, heldout):
            print(f"{task:<11}{guess:<16}{accuracy:>8.2%}{error:>7.2%} {number:>12,}", flush=True)


if __name__ == "__main__":
    command_line.run(main)
