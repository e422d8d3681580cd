"""Whose connection it is: the system knows which user's program opened a connection of this computer."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
PRIVATE = ("darwin", "win32")
"""Systems on which the address that opens a browser is in no command line that other users can read."""

Place = tuple[IPv4Address | IPv6Address, int]


def is_own_connection(client: Any, server: Any) -> bool:
    """Whether a connection was opened by a program of this user, or of root, who forwards for Windows.

    Other users of a computer read in its list of processes by which address a browser is opened. Where the system
    does not say whose a connection is, it is nobody's.

    Parameters
    ----------
    client, server
        The address and port of both ends.
    """
    if sys.platform in PRIVATE:
        return True
    with suppress(OSError, ValueError, TypeError, IndexError):
        ends = _read_place(*client[:2]), _read_place(*server[:2])
        owners = {owner for table in TABLES if Path(table).exists() for owner in _find_owners(Path(table), ends)}
        return bool(owners) and owners <= {os.getuid(), 0}
    return False


def _find_owners(table: Path, ends: tuple[Place, Place]) -> Iterator[int]:
    for line in table.read_text().splitlines()[1:]:
        _, local, remote, _, _, _, _, owner, *_ = line.split()
        if (_decode(local), _decode(remote)) == ends:
            yield int(owner)


def _read_place(host: str, port: int) -> Place:
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address, int(port)


def _decode(place: str) -> Place:
    """Return an address and port from the hexadecimal digits of the system, in words of its byte order.

    >>> _decode("0100007F:1F90")
    (IPv4Address('127.0.0.1'), 8080)
    """
    digits, port = place.split(":")
    words = [int(digits[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(digits), 8)]
    return _read_place(str(ip_address(b"".join(words))), int(port, 16))
