import gzip

import pytest

from data import corpus

TEXT = "One.\nTwo.\n\nThree.\nFour.\nFive.\n"


def read(path, **options):
    counts = corpus.CorpusCounts()
    return list(corpus.read_documents(str(path), counts, **options)), counts


def write(folder, content, name="text.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_blank_line_separates_documents(tmp_path):
    documents, counts = read(write(tmp_path, TEXT))
    assert documents == [
        corpus.Document(["One.", "Two."], 1),
        corpus.Document(["Three.", "Four.", "Five."], 4),
    ]
    assert (counts.num_documents, counts.num_lines, counts.num_bytes) == (2, 5, len(TEXT))


@pytest.mark.parametrize(
    "content",
    [
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        TEXT.rstrip("\n"),
        "\n\n" + TEXT.replace("\n\n", "\n \t\n\u00a0\n\n") + "\n\n",
        TEXT.replace("Two.", "  Two. \t"),
    ],
    ids=["CRLF", "byte order mark", "no last newline", "repeated blank lines", "outer blanks"],
)
def test_the_layout_may_vary(tmp_path, content):
    documents, _ = read(write(tmp_path, content))
    assert [document.lines for document in documents] == [
        ["One.", "Two."],
        ["Three.", "Four.", "Five."],
    ]


def test_a_packed_file_reads_as_the_plain_one(tmp_path):
    plain = read(write(tmp_path, TEXT))
    packed = write(tmp_path, gzip.compress(TEXT.encode()), "text.txt.gz")
    assert read(packed) == plain
    assert corpus.num_text_bytes(str(packed)) == len(TEXT)


@pytest.mark.parametrize("content", [b"plain", gzip.compress(TEXT.encode() * 99)[:-20]])
def test_a_damaged_packed_file_is_named(tmp_path, content):
    path = write(tmp_path, content, "text.gz")
    for reader in (read, corpus.num_text_bytes, corpus.num_mark_bytes):
        if reader is corpus.num_mark_bytes and content != b"plain":
            continue  # It reads three bytes, and these are there.
        with pytest.raises(ValueError, match=r"text\.gz. is not a whole gzip file"):
            reader(str(path))


def test_bad_bytes_are_replaced_and_counted_with_their_places(tmp_path):
    path = write(tmp_path, b"Good \xef\xbf\xbd.\nBad \xff\xfe.\n\nBad \xe2\x82.\n")
    documents, counts = read(path)
    assert documents[0].lines == ["Good \ufffd.", "Bad \ufffd\ufffd."]
    assert counts.num_bad_bytes == 3
    assert counts.places == [f"{path} line 2", f"{path} line 4"]
    with pytest.raises(ValueError, match=f"UTF-8.*{path} line 2"):
        read(path, fail_on_bad_bytes=True)


def test_utf_16_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(ValueError, match="UTF-16.*iconv"):
        read(write(tmp_path, TEXT.encode("utf-16")))


def test_blocks_hold_whole_documents_and_all_of_them(tmp_path):
    lines = [f"Sentence {i} of the text." if i % 7 else "" for i in range(2000)]
    path = write(tmp_path, "\r\n".join(lines))
    counts = corpus.CorpusCounts()
    blocks = list(corpus.read_blocks(str(path), counts, block_bytes=1000))
    documents = [d for block in blocks for d in corpus.documents_of(block, counts)]
    assert documents == read(path)[0]
    assert len(blocks) > 30 and counts.num_cut_documents == 0
    assert max(len(block.data) for block in blocks) < 3000


def test_a_document_longer_than_a_block_is_cut_at_a_line_and_keeps_its_sentences(tmp_path):
    lines = [f"Sentence {i}." for i in range(1000)]
    counts = corpus.CorpusCounts()
    blocks = list(corpus.read_blocks(str(write(tmp_path, "\n".join(lines))), counts, 500))
    documents = [d for block in blocks for d in corpus.documents_of(block, counts)]
    assert [line for document in documents for line in document.lines] == lines
    assert len(documents) == counts.num_cut_documents + 1 > 10
    assert [document.first_line for document in documents] == [
        1 + int(document.lines[0].split()[1][:-1]) for document in documents
    ]
    assert min(len(document.lines) for document in documents) > 1


@pytest.mark.parametrize("word", ["word ", "ééé"])
def test_a_line_longer_than_a_block_is_cut_between_words_or_characters(tmp_path, word):
    counts = corpus.CorpusCounts()
    blocks = list(corpus.read_blocks(str(write(tmp_path, word * 1000)), counts, 400))
    assert b"".join(block.data for block in blocks).decode() == word * 1000
    for block in blocks:
        assert block.data.decode().strip().startswith(word.strip()[0])
        assert len(block.data) < 1200


def test_patterns_name_files_in_one_order_without_repetition(tmp_path):
    for name in ("b.txt", "a.txt", "c.md"):
        write(tmp_path, TEXT, name)
    (tmp_path / "folder.txt").mkdir()
    expected = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    assert corpus.expand_patterns(f"{tmp_path}/b.txt, {tmp_path}/*.txt") == expected
    assert corpus.expand_patterns(f"{tmp_path}/*.txt,{tmp_path}/b.txt") == expected


def test_a_pattern_that_matches_nothing_is_quoted(tmp_path):
    write(tmp_path, TEXT)
    with pytest.raises(FileNotFoundError, match=r"`.*/\*\.nothing`"):
        corpus.expand_patterns(f"{tmp_path}/text.txt,{tmp_path}/*.nothing")
    with pytest.raises(ValueError, match="Received: ' , '"):
        corpus.expand_patterns(" , ")
