"""The few lengths that batches are padded to, so that what is compiled for a shape meets few."""

LENGTHS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


def padded_length(longest, max_seq_length):
    """Returns the next of LENGTHS that is long enough, and at most `max_seq_length`."""
    reaching = (length for length in LENGTHS if length >= longest)
    return min(next(reaching, max_seq_length), max_seq_length)
