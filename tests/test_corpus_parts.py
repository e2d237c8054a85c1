import pathlib

import pytest

from data import corpus, corpus_parts


def write_files(folder, num_files, num_documents):
    paths = []
    for file_number in range(num_files):
        documents = [
            f"First of {file_number}.{i}.\nSecond of {file_number}.{i}.\n"
            for i in range(num_documents)
        ]
        path = folder / f"{file_number}.txt"
        path.write_text("\n".join(documents))
        paths.append(str(path))
    return paths


def lines_of(parts):
    return [
        line
        for part in parts
        for block in part.blocks
        for document in corpus.documents_of(block, corpus.CorpusCounts())
        for line in document.lines
    ]


def test_small_files_share_a_part_and_large_ones_are_divided(tmp_path):
    paths = write_files(tmp_path, 20, 5)
    parts = list(corpus_parts.read_parts(paths, corpus.CorpusCounts(), block_bytes=500))
    assert 1 < len(parts) < 20
    assert lines_of(parts) == lines_of(
        corpus_parts.read_parts(paths, corpus.CorpusCounts(), block_bytes=100)
    )
    assert not any(part.is_heldout for part in parts)


@pytest.mark.parametrize("fraction", [0.1, 0.37, 0.5, 0.9])
@pytest.mark.parametrize("block_bytes", [100, 3000])
def test_the_held_out_text_is_one_stretch_of_whole_documents_at_the_end(
    tmp_path, fraction, block_bytes
):
    paths = write_files(tmp_path, 3, 40)
    num_bytes = sum(map(corpus.num_text_bytes, paths))
    bound = round(num_bytes * (1 - fraction))
    parts = list(corpus_parts.read_parts(paths, corpus.CorpusCounts(), bound, block_bytes))
    training = lines_of(part for part in parts if not part.is_heldout)
    heldout = lines_of(part for part in parts if part.is_heldout)
    assert training + heldout == lines_of(corpus_parts.read_parts(paths, corpus.CorpusCounts()))
    assert len(training) % 2 == 0  # Documents have two lines.
    size = sum(len(block.data) for part in parts if part.is_heldout for block in part.blocks)
    assert fraction * num_bytes - 40 < size <= fraction * num_bytes + 1


def test_line_numbers_count_on_in_the_held_out_part(tmp_path):
    (path,) = write_files(tmp_path, 1, 40)
    parts = corpus_parts.read_parts([path], corpus.CorpusCounts(), 500)
    heldout = [part for part in parts if part.is_heldout]
    (document, *_) = corpus.documents_of(heldout[0].blocks[0], corpus.CorpusCounts())
    all_lines = pathlib.Path(path).read_text().split("\n")
    assert all_lines[document.first_line - 1] == document.lines[0]
