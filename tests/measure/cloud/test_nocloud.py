"""The seed of user data is a FAT12 file system that others can read."""

from __future__ import annotations

import struct

import pytest

from nephoscope.measure.cloud import nocloud

SECTOR = 512


def read(image: bytes) -> dict[str, bytes]:
    """Files of a FAT12 image by their long names, by the layout that its boot sector states."""
    size, per_cluster, reserved, tables, entries, _, _, fat = struct.unpack(
        "<HBHBHHBH", image[11:24]
    )
    assert image[510:512] == b"\x55\xaa"
    assert (size, per_cluster) == (SECTOR, 1)
    first_table = image[reserved * size :][: fat * size]
    assert first_table == image[(reserved + fat) * size :][: fat * size]
    folder = (reserved + tables * fat) * size
    data = folder + entries * 32
    found, letters = {}, ""
    for at in range(folder, data, 32):
        entry = image[at : at + 32]
        if entry[11] == 0x0F:
            part = (entry[1:11] + entry[14:26] + entry[28:32]).decode("utf-16-le")
            letters = part.partition("\0")[0].rstrip("\uffff") + letters
        elif entry[0] and not entry[11] & 0x08:
            cluster, length = struct.unpack("<HI", entry[26:32])
            content = b""
            while length and cluster < 0xFF8:
                start = data + (cluster - 2) * size
                content += image[start : start + size]
                pair = struct.unpack("<H", first_table[cluster * 3 // 2 :][:2])[0]
                cluster = pair >> 4 if cluster % 2 else pair & 0xFFF
            found[letters], letters = content[:length], ""
    return found


@pytest.mark.parametrize("lines", [0, 1, 53, 10_000])
def test_what_is_written_is_read(lines: int) -> None:
    script = "#!/bin/sh\n" + "echo 'ü'\n" * lines
    files = read(nocloud.seed(script, "m-1"))
    assert files == {
        "user-data": script.encode(),
        "meta-data": b"instance-id: m-1\nlocal-hostname: m-1\n",
    }


def test_the_image_is_labelled_as_cloud_init_expects_and_always_the_same() -> None:
    image = nocloud.seed("#!/bin/sh\n", "m-1")
    assert len(image) == 1 << 20
    assert image[43:54] == b"CIDATA     "
    assert image == nocloud.seed("#!/bin/sh\n", "m-1")


def test_too_much_user_data_is_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        nocloud.seed("x" * nocloud.LARGEST_BYTES, "m-1")
