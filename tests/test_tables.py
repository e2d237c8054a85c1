import pytest

from data import tables


def written(folder, name, content):
    """Writes a file of a test; returns its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "id\ttext\tlabel\nr1\tone, two\t1\nr2\t\t0\n"),
        ("a.csv", 'id,text,label\nr1,"one, two",1\nr2,,0\n'),
        (
            "a.jsonl",
            '{"id": "r1", "text": "one, two", "label": "1"}\n'
            '{"id": "r2", "text": "", "label": "0", "more": null}\n',
        ),
    ],
)
def test_the_three_forms_hold_the_same(tmp_path, name, content):
    read = tables.read(written(tmp_path, name, content), ["text", "id"], optional=["label", "no"])
    assert read.values == {"text": ["one, two", ""], "id": ["r1", "r2"], "label": ["1", "0"]}
    assert read.lines[-1] - read.lines[0] == 1


def test_quotes_mean_nothing_in_tsv(tmp_path):
    path = written(tmp_path, "a.tsv", 'text\tlabel\n"He said "no\t1\n"x"\t0\n')
    assert tables.read(path, ["text"]).values["text"] == ['"He said "no', '"x"']


def test_a_quoted_row_of_csv_may_go_over_lines(tmp_path):
    path = written(tmp_path, "a.csv", 'text,label\r\n"one ""1""\r\nand two",1\r\nthree,0\r\n')
    read = tables.read(path, ["text"])
    assert read.values["text"] == ['one "1"\r\nand two', "three"]
    assert read.lines == [2, 4]


def test_a_cell_of_csv_may_hold_a_long_document(tmp_path):
    text = "word " * 40_000
    path = written(tmp_path, "a.csv", f'text,label\n"{text}",1\n')
    assert tables.read(path, ["text"]).values["text"] == [text]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_only_newlines_end_a_row(tmp_path, ending):
    path = written(tmp_path, "a.tsv", "text\nx\u2028y\x85z\x0b\r\n\nlast" + ending)
    assert tables.read(path, ["text"]).values["text"] == ["x\u2028y\x85z\x0b", "", "last"]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = written(tmp_path, "a.tsv", b"\xef\xbb\xbfQuality\ttext\n1\tone\n")
    assert tables.read(path, ["Quality"]).values == {"Quality": ["1"]}


def test_columns_go_by_number_too(tmp_path):
    path = written(tmp_path, "a.tsv", "a\tb\nc\td\n")
    assert tables.read(path, ["1"]).values == {"1": ["d"]}
    assert tables.read(path, ["1"], header=False).values == {"1": ["b", "d"]}


def test_a_known_header_is_seen_where_it_may_be_missing(tmp_path):
    names = ("text_a", "text_b", "label")
    with_one = written(tmp_path, "a.tsv", "text_a\ttext_b\tlabel\none\ttwo\t1\n")
    without = written(tmp_path, "b.tsv", "one\ttwo\t1\n")
    unlabelled = written(tmp_path, "c.tsv", "one\ttwo\n")
    for path in (with_one, without):
        assert tables.read(path, names, header=names).values["label"] == ["1"]
    read = tables.read(unlabelled, ["text_b"], optional=["label"], header=names)
    assert read.values == {"text_b": ["two"]}


def test_a_broken_row_is_an_error_or_is_counted(tmp_path):
    path = written(tmp_path, "a.tsv", "id\ttext\n1\tone\n2\n3\tthree\tmore\n4\tfour\n")
    with pytest.raises(ValueError, match=r"a\.tsv, line 3: .* 2 columns .*Received: 1, \['2'\]"):
        tables.read(path, ["text"])
    read = tables.read(path, ["text"], leave_out_broken=True)
    assert read.values == {"text": ["one", "four"]}
    assert (read.lines, read.broken_lines) == ([2, 5], [3, 4])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "must hold at least one row"),
        ("a.tsv", "id\ttext\n", "must hold at least one row"),
        ("a.csv", "\n\n", "must hold at least one row"),
        ("a.jsonl", "", "must hold at least one row"),
        ("a.tsv", "id\ttxet\n1\tone\n", r"must have the columns \['text'\].*'id', 'txet'"),
        ("a.tsv", "text\ttext\n1\tone\n", "must have one column `text`"),
        ("a.csv", 'text\n"one\n', r"a\.csv, line 2: .*well-formed CSV"),
        ("a.jsonl", '{"text": "one"}\n[1]\n', r"a\.jsonl, line 2: .*JSON object.*\[1\]"),
        ("a.jsonl", '{"text": "one"}\n\n{"text": "one"}', r"line 2: .*JSON object"),
        ("a.jsonl", '{"text": "one"}\n{"txet": "two"}\n', r"line 2: .*`text`.*txet"),
        ("a.tsv", b"text\none\n\xff\xfe\n", r"a\.tsv, line 3: .*UTF-8"),
        ("a.xlsx", "text\none\n", r"must end in one of \['\.tsv'"),
    ],
)
def test_a_fault_names_the_file_and_the_line(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        tables.read(written(tmp_path, name, content), ["text"])


def test_a_key_is_in_all_rows_or_in_none(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"text": "one", "label": 1}\n{"text": "two"}\n')
    with pytest.raises(ValueError, match="line 2: a row must have `label`"):
        tables.read(path, ["text"], optional=["label"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.tsv"):
        tables.read(str(tmp_path / "nowhere.tsv"), ["text"])
