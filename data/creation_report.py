"""What data creation says about a text and the examples made of it."""

from data import corpus

NOTABLE_LOSS = 0.1  # Of the text or the masked pieces; more than this is worth a warning.
NOTABLE_LONG_LINES = 0.01  # Of the lines.


def nothing_made(name, corpus_counts, example_counts):
    """Says why a set of records would be empty.

    Args:
        name: str, "training" or "held-out".
        corpus_counts: CorpusCounts of the whole text.
        example_counts: ExampleCounts of the set.

    Returns:
        A sentence or two.
    """
    if not corpus_counts.num_bytes:
        reason = "empty files"
    elif not corpus_counts.num_lines:
        reason = "only blank lines"
    elif example_counts.num_documents:
        reason = (
            f"{example_counts.num_documents:,} documents, all too short: of one sentence each. "
            "Write one sentence a line, and a blank line between documents"
        )
    else:
        reason = (
            f"none of {corpus_counts.num_documents:,} documents. `heldout_fraction` says where "
            "the text is divided"
        )
    return f"the text must give at least one {name} example. Received: {reason}."


def warnings(corpus_counts, example_counts, settings):
    """Returns what the user should know, list[str].

    Args:
        corpus_counts: CorpusCounts.
        example_counts: ExampleCounts.
        settings: ExampleSettings.
    """
    found = [*text_warnings(corpus_counts)]
    num_pieces = example_counts.num_pieces
    if example_counts.num_skipped_pieces > NOTABLE_LOSS * num_pieces:
        found.append(
            f"{example_counts.num_skipped_documents:,} of {example_counts.num_documents:,} "
            f"documents have a single sentence and make no pair; they were skipped, "
            f"{example_counts.num_skipped_pieces / num_pieces:.1%} of the text."
        )
    usable = (num_pieces - example_counts.num_skipped_pieces) * settings.dupe_factor
    cut_off = usable - example_counts.num_pieces_used
    if cut_off > NOTABLE_LOSS * usable:
        found.append(
            f"{cut_off / usable:.1%} of the text was cut off, as its sentences are too long for "
            f"max_seq_length={settings.max_seq_length}."
        )
    lost = example_counts.num_wanted - example_counts.num_masked
    if lost > NOTABLE_LOSS * example_counts.num_wanted:
        pieces = example_counts.num_pieces_used + special_pieces(example_counts, settings)
        found.append(
            f"{example_counts.num_masked / pieces:.1%} of the pieces are masked, not "
            f"{settings.masked_lm_prob:.1%}, as max_predictions_per_seq={settings.max_predictions}."
        )
    return found


def special_pieces(example_counts, settings):
    """Returns how many [CLS] and [SEP] examples hold."""
    return example_counts.num_examples * (2 if settings.sentence_objective == "none" else 3)


def text_warnings(counts):
    """Yields what is odd about a text: see `warnings`."""
    if counts.num_documents == 1:
        yield (
            f"the text is a single document of {counts.num_lines:,} lines. "
            "A blank line should separate documents."
        )
    if counts.num_long_lines > NOTABLE_LONG_LINES * counts.num_lines:
        yield (
            f"{counts.num_long_lines:,} of {counts.num_lines:,} lines are longer than "
            f"{corpus.LONG_LINE_CHARACTERS:,} characters. A line should be one sentence."
        )
    if counts.num_cut_documents:
        yield (
            f"documents were cut at {counts.num_cut_documents:,} places, as they are longer than "
            f"{2 * corpus.BLOCK_BYTES // 1000:,} kB. A blank line should separate documents."
        )
    if counts.num_bad_bytes:
        yield (
            f"{counts.num_bad_bytes:,} bytes are not UTF-8 and were replaced: "
            f"{', '.join(counts.places)}{' and so on' * (len(counts.places) == 10)}."
        )


def summary(corpus_counts, sets, seconds):
    """Returns the lines that end a run.

    Args:
        corpus_counts: CorpusCounts.
        sets: list of record_sets.RecordSet.
        seconds: float, how long it took.
    """
    megabytes = corpus_counts.num_bytes / 1e6
    num_examples = sum(record_set.counts.num_examples for record_set in sets)
    lines = []
    for record_set in sets:
        counts = record_set.counts
        lines.append(
            f"{record_set.name}: {counts.num_documents:,} documents, "
            f"{counts.num_sentences:,} sentences, {counts.num_pieces:,} pieces; "
            f"skipped {counts.num_skipped_documents:,} documents of one sentence; "
            f"{counts.num_examples:,} examples, {counts.num_masked:,} masked pieces, "
            f"{len(record_set.shards)} file(s)"
        )
    lines.append(
        f"{megabytes:.1f} MB, {corpus_counts.num_bad_bytes:,} bad bytes; {seconds:.1f} s, "
        f"{megabytes / seconds:.1f} MB/s, {num_examples / seconds:,.0f} examples/s"
    )
    return "\n".join(lines)
