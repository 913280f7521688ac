"""Plain files of numbers: what is read, and the sentence for what is not."""

from pathlib import Path

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.comparison import number_files


def test_comments_blank_lines_and_a_byte_order_mark_are_no_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeff# ns\n1\n\n  2.5e3  # second\n-3\n".encode())
    assert number_files.read(file) == [1.0, 2500.0, -3.0]


@pytest.mark.parametrize("word", ["abc", "1,5", "nan", "inf", "1 2", "0x10"])
def test_a_bad_line_is_named_with_file_and_line(tmp_path: Path, word: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(f"1\n2\n{word}\n4\n")
    with pytest.raises(UsageError) as caught:
        number_files.read(file)
    assert str(caught.value).startswith(f"{file}:3: '{word}' is not a number.")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("content", [b"", b"# nothing\n\n", b"\xff\xfe\x00\x01"])
def test_a_file_without_numbers_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"has no numbers|not a text file"):
        number_files.read(file)
