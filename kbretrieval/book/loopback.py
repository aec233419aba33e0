"""Refusing every socket that leaves the machine while a notebook runs (NB-14).

An audit hook sees what Python's sockets do below any library, cannot be taken out again, and leaves Jupyter's own
channels alone. `startup_source()` is the text of a `sitecustomize` module that carries this file along: put on
`PYTHONPATH` it guards the kernel and the Python processes that the kernel starts. Not covered: other programs
(`!curl`), an interpreter started with `-I` or `-E`, and libraries that open sockets in C.

This file imports the standard library only and nothing of this package, because it also runs by itself.
"""

import ipaddress
import sys
from pathlib import Path
from typing import Any

_NAMES = frozenset({"", "localhost", "localhost.localdomain", "ip6-localhost"})
_WITH_ADDRESS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_WITH_NAME = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_INSTALLED: list[bool] = []


class NetworkRefused(PermissionError):
    """A socket or a name look-up would have left the loopback interface; code `network_refused`."""

    code = "network_refused"

    def __str__(self) -> str:
        return f"{self.code}: only loopback is allowed, {self.args[0]} given"


def is_loopback(host: object) -> bool:
    """Return whether a host, as sockets take it, stays on this machine; None and "" mean the machine itself.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "192.0.2.7", "example.org")]
        [True, True, True, False, False]
    """
    if host is None:
        return True
    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)
    if name.lower() in _NAMES:
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_beyond_loopback(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise `NetworkRefused` for an audit event that would reach another machine; other events pass."""
    if event in _WITH_ADDRESS:
        # Local sockets have a path or nothing for an address, internet sockets a tuple that begins with the host.
        address = arguments[1]
        if isinstance(address, tuple) and isinstance(address[0], str | bytes) and not is_loopback(address[0]):
            raise NetworkRefused(address[0])
    elif event in _WITH_NAME and not is_loopback(arguments[0]):
        raise NetworkRefused(arguments[0])


def install() -> None:
    """Guard this process until it ends; a second call changes nothing."""
    if not _INSTALLED:
        sys.addaudithook(refuse_beyond_loopback)
        _INSTALLED.append(True)


def startup_source() -> str:
    """Return the text of a `sitecustomize` module that guards every Python process which finds it on its path."""
    return Path(__file__).read_text(encoding="utf-8") + "\n\ninstall()\n"
