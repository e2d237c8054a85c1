"""The parts that a text is worked through in: blocks of several files, training and held out."""

import dataclasses
import re

from data.corpus import BLOCK_BYTES, Block, read_blocks

BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")


@dataclasses.dataclass(frozen=True)
class Part:
    """Some blocks that are worked on together, all for training or all held out."""

    blocks: tuple[Block, ...]
    is_heldout: bool


def read_parts(paths, counts, num_training_bytes=None, block_bytes=BLOCK_BYTES):
    """Yields the text of files, one after the other, in parts of at most some blocks' size.

    Small files share a part. What is held out is one stretch, from the first document
    that starts after `num_training_bytes` to the end of the last file, so that it
    holds whole books where the text has them in chapters. The bounds of the parts
    depend on the files alone.

    Args:
        paths: list[str].
        counts: CorpusCounts, as of `corpus.read_blocks`.
        num_training_bytes: int, or None to hold nothing out.
        block_bytes: int, as of `corpus.read_blocks`.

    Yields:
        Part.
    """
    blocks, is_heldout, size = [], False, 0
    for block, block_is_heldout in split_heldout(paths, counts, num_training_bytes, block_bytes):
        if blocks and (block_is_heldout != is_heldout or size + len(block.data) > block_bytes):
            yield Part(tuple(blocks), is_heldout)
            blocks, size = [], 0
        blocks.append(block)
        is_heldout = block_is_heldout
        size += len(block.data)
    if blocks:
        yield Part(tuple(blocks), is_heldout)


def split_heldout(paths, counts, num_training_bytes, block_bytes):
    """Yields (Block, whether it is held out); the block with the bound in it is split."""
    offset = 0
    for path in paths:
        for block in read_blocks(path, counts, block_bytes):
            end = len(block.data)
            if num_training_bytes is not None:
                end = end_of_document(block.data, num_training_bytes - offset)
            offset += len(block.data)
            if end:
                yield Block(path, block.first_line, block.data[:end]), False
            if end < len(block.data):
                first_line = block.first_line + block.data.count(b"\n", 0, end)
                yield Block(path, first_line, block.data[end:]), True


def end_of_document(data, place):
    """Returns where the document ends that `place` lies in: 0 before the data, else its end."""
    if place <= 0:
        return 0
    match = BLANK_LINE.search(data, place)
    return match.end() if match else len(data)
