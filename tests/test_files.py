import os

import pytest

from data import files


def test_a_file_is_written_with_its_folder_and_replaced_as_a_whole(tmp_path):
    path = str(tmp_path / "new" / "file")
    for content in (b"one", b"another"):
        files.write_bytes(path, content)
        assert files.read_bytes(path) == content
    assert os.listdir(tmp_path / "new") == ["file"]


def test_writers_with_the_same_process_id_do_not_meet(tmp_path, monkeypatch):
    """As workers in containers on several machines have it."""
    path, replace = str(tmp_path / "file"), os.replace

    def replace_after_another(*paths):
        monkeypatch.setattr(os, "replace", replace)
        files.write_bytes(path, b"another")
        replace(*paths)

    monkeypatch.setattr(os, "replace", replace_after_another)
    files.write_bytes(path, b"one")
    assert files.read_bytes(path) == b"one"
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path):
    path = str(tmp_path / "file")
    files.write_bytes(path, b"old")
    with pytest.raises(TypeError):
        files.write_bytes(path, "text, not bytes")
    assert files.read_bytes(path) == b"old"


def test_files_of_other_file_systems_are_reached_through_tensorflow(tmp_path):
    path = f"file://{tmp_path}/new/file"
    assert not files.exists(path)
    files.check_folder(f"file://{tmp_path}/new")
    files.write_bytes(path, b"content")
    assert files.exists(path)
    assert files.read_bytes(path) == b"content"
    assert files.is_folder(f"file://{tmp_path}/new")
    assert (tmp_path / "new" / "file").read_bytes() == b"content"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(ValueError, match="can be written. Received: .*file"):
            files.check_folder(str(path))
