"""Disk image from which a machine reads its user data when no service hands it over.

It is what cloud-init calls a NoCloud seed: a file system labelled CIDATA with `user-data` and
`meta-data`. FAT12 is written here because it takes no program and a hundred lines.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

_SECTOR, _ROOT_ENTRIES, _FAT_SECTORS, _SECTORS = 512, 64, 6, 2048
_ROOT_SECTORS = _ROOT_ENTRIES * 32 // _SECTOR
_DATA = 1 + 2 * _FAT_SECTORS + _ROOT_SECTORS
"""First sector of the files; before it are the boot sector, two tables and the folder."""
LARGEST_BYTES = (_SECTORS - _DATA - 8) * _SECTOR
"""Most that the files may have together."""
_END = 0xFFF
_ENTRY = struct.Struct("<11sB10sHHHI")
_DATE = 0x21
"""1 January 1980: the same files give the same image."""


def seed(user_data: str, name: str) -> bytes:
    """Returns the image (1 MiB) for a machine of that name. ValueError: too long."""
    meta = f"instance-id: {name}\nlocal-hostname: {name}\n"
    return _image({"user-data": user_data.encode(), "meta-data": meta.encode()})


def _image(files: Mapping[str, bytes]) -> bytes:
    if sum(map(len, files.values())) > LARGEST_BYTES:
        raise ValueError(f"user data of more than {LARGEST_BYTES} bytes")
    table = [0xFF8, _END]
    entries = [_ENTRY.pack(b"CIDATA     ", 0x08, b"", 0, _DATE, 0, 0)]
    contents = b""
    for number, (name, content) in enumerate(files.items()):
        clusters = -(-len(content) // _SECTOR)
        first = len(table) if clusters else 0
        table += [*range(first + 1, first + clusters), _END] if clusters else []
        entries += _entries(name, number, first, len(content))
        contents += content.ljust(clusters * _SECTOR, b"\0")
    fat = _packed(table).ljust(_FAT_SECTORS * _SECTOR, b"\0")
    folder = b"".join(entries).ljust(_ROOT_SECTORS * _SECTOR, b"\0")
    image = _boot_sector() + 2 * fat + folder + contents
    return image.ljust(_SECTORS * _SECTOR, b"\0")


def _boot_sector() -> bytes:
    sector = struct.pack(
        "<3s8sHBHBHHBHHHIIBBBI11s8s",
        *(b"\xeb\x3c\x90", b"MSDOS5.0", _SECTOR, 1, 1, 2, _ROOT_ENTRIES, _SECTORS, 0xF8),
        *(_FAT_SECTORS, 32, 2, 0, 0, 0x80, 0, 0x29, 0x4E455048, b"CIDATA     ", b"FAT12   "),
    )
    return sector.ljust(_SECTOR - 2, b"\0") + b"\x55\xaa"


def _packed(table: list[int]) -> bytes:
    """Twelve bits each, two in three bytes."""
    pairs = zip(table[::2], [*table[1::2], 0], strict=False)
    return b"".join((low | high << 12).to_bytes(3, "little") for low, high in pairs)


def _entries(name: str, number: int, first: int, size: int) -> Iterator[bytes]:
    """The entries of a file: its long name, last part first, then a short one that nobody reads."""
    short = f"FILE~{number}".ljust(11).encode()
    checksum = 0
    for byte in short:
        checksum = ((checksum & 1) << 7 | checksum >> 1) + byte & 0xFF
    letters = (name + "\0").encode("utf-16-le")
    parts = [letters[at : at + 26].ljust(26, b"\xff") for at in range(0, len(letters), 26)]
    for order, part in reversed(list(enumerate(parts, 1))):
        last = 0x40 if order == len(parts) else 0
        yield struct.pack(
            "<B10sBBB12sH4s",
            *(order | last, part[:10], 0x0F, 0, checksum, part[10:22], 0, part[22:]),
        )
    yield _ENTRY.pack(short, 0x20, b"", 0, _DATE, first, size)
