"""For servers on this machine: checks of `Host` and `Origin`, and the message for an address that is taken."""

import errno
import ipaddress
import os
import re
import socket
from collections.abc import Collection, Sequence

__all__ = ["cannot_listen", "is_loopback", "names_of", "refusal"]

_HOST = re.compile(r"(?:\[([^][]+)]|([^][:/?#@\\\s]+))(?::[0-9]*)?")


def refusal(hosts: Sequence[str], origins: Sequence[str], names: Collection[str] = ()) -> str | None:
    """The reason to refuse a request, or None.

    A web page elsewhere can give its own name this machine's address (DNS rebinding); its requests then carry that
    name. Names are therefore checked, ports are not: a forwarded port differs from ours.

    `hosts` and `origins` are all values of the headers `Host` and `Origin`; `names` this machine's in lower case,
    besides those of loopback. If there are any, every numeric address is accepted, too.
    """
    name = _name_of(hosts[0]) if len(hosts) == 1 else None
    if name is None or not (name in names or is_loopback(name) or (names and _address(name))):
        return "the header Host does not name this server"
    # Only browsers send an Origin; those of other pages differ from the address of this one.
    if any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
        return "the request comes from another web page"
    return None


def is_loopback(name: str) -> bool:
    """Whether `name` is `localhost`, or an address that only this machine reaches."""
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def names_of(host: str) -> frozenset[str]:
    """The names for `refusal` of a server that listens on `host`: none on loopback, else those of this machine."""
    own = () if is_loopback(host) else (host, socket.gethostname(), socket.getfqdn())
    return frozenset(name.lower() for name in own)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _name_of(host: str) -> str | None:
    """The name in `NAME[:PORT]`, in lower case; None if it is not of that form."""
    found = _HOST.fullmatch(host)  # `urlsplit` takes "[::1].evil" for "::1"
    return found and (found[1] or found[2]).lower()


def cannot_listen(host: str, port: int, error: OSError) -> str:
    """The message for an address that a server cannot have."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    fix = "; port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
    return f"cannot listen on {host}:{port}: {reason}{fix}"
