"""Addresses: which hosts may be connected to, decided for the address itself and not for its name.

A page is fetched for a model that may have the address from another page, so nothing inside the own network
may be reachable. Three gates, each enough alone:

1. The URL: http or https, a plain host, no credentials, a usual port, no spelling that parsers read differently.
2. The resolver: a name with any address that is not public is refused whole.
3. The socket: right before connecting, the numeric address that the socket goes to is checked again. What was
   resolved earlier, or by whom, makes no difference, so a name that changes its address in between gains nothing.

Addresses that stand for another one (IPv4-mapped, NAT64) are judged as that one, and those that carry another (6to4,
Teredo) by both.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from concertino import SpecError
from yarl import URL

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = (80, 443, 8080, 8443)
"""Ports that may be requested by default; an allowed network may be requested on any."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_CLOSED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",
        "::ffff:0:0:0/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001:2::/48",
        "2001:db8::/32",
        "5f00::/16",
        "fc00::/7",
        "fec0::/10",
    )
)
"""Networks that are closed, whatever this version of Python considers them."""
_PLATFORM = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "168.63.129.16",  # Azure
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # AWS, credentials of containers
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",  # AWS, credentials of pods
        "fd20:ce::254",  # Google
        "fd00:c1::a9fe:a9fe",  # Oracle
    )
)
"""Where clouds give a machine its keys. One of them counts as public, so all are named."""
_NUMERIC_END = re.compile(r"(?:^|\.)(?:0[xX][0-9A-Fa-f]*|[0-9]+)\.?$")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_LOCAL_NAMES = (".localhost", ".local", ".localdomain", ".internal", ".intranet", ".lan", ".home.arpa", ".onion")
_PLATFORM_NAMES = (
    ".metadata",
    ".metadata.google.internal",
    ".metadata.goog",
    ".instance-data",
    ".instance-data.ec2.internal",
    ".metadata.tencentyun.com",
    ".metadata.platformequinix.com",
)
"""Names of the same places, which a resolver of the cloud answers."""


class AddressRefused(OSError):
    """An address must not be connected to; says which and why."""


@dataclass(frozen=True)
class AddressGuard:
    """What may be connected to.

    Attributes:
        allowed: networks that are open although they are not public, such as `127.0.0.0/8`.
        ports: ports that public addresses may be asked on.
    """

    allowed: Sequence[IPNetwork] = ()
    ports: Sequence[int] = field(default=PORTS)

    @classmethod
    def of(cls, allowed: Sequence[str] = (), ports: Sequence[int] = PORTS) -> AddressGuard:
        """A guard of networks as texts.

        Raises:
            SpecError: a text is not an address or network.
        """
        try:
            return cls(tuple(ipaddress.ip_network(text.strip(), strict=False) for text in allowed), tuple(ports))
        except ValueError as error:
            raise SpecError(f"allowed={list(allowed)!r}: {error}; expected networks such as '10.0.0.0/8'") from None

    def check_url(self, text: str) -> URL:
        """A URL that may be requested, as far as can be checked before its name is resolved.

        Raises:
            AddressRefused: says what about it is refused.
        """
        if not text.isprintable() or re.search(r"[\s\\]", text):
            raise AddressRefused("the URL holds blanks, backslashes or control characters; encode them")
        try:
            url = URL(text).with_fragment(None)
            port = url.port
        except (ValueError, TypeError, UnicodeError) as error:
            raise AddressRefused(f"invalid URL: {error}") from None
        if url.scheme not in ("http", "https"):
            raise AddressRefused(f"scheme {url.scheme or '(none)'!r}; expected http:// or https://")
        if url.raw_user is not None or url.raw_password is not None or "@" in url.raw_authority:
            raise AddressRefused("the URL holds a user name or password; leave them out")
        if not url.raw_host:
            raise AddressRefused("the URL has no host")
        literal = self._check_host(url.raw_host)
        if port not in self.ports and not (self.allowed and (literal is None or self._opened(literal))):
            shown = ", ".join(map(str, self.ports))
            raise AddressRefused(f"port {port} is not one of {shown}")
        return url

    def _check_host(self, host: str) -> IPAddress | None:
        """The address that a host is, None for a name."""
        try:
            literal = ipaddress.ip_address(host)
        except ValueError:
            pass
        else:
            self.check_address(host)
            return literal
        bare = host.rstrip(".").lower()
        # The C library takes hosts such as 0x7f.1 and 2130706433 for addresses.
        if _NUMERIC_END.search(bare):
            raise AddressRefused(f"host {host!r} is a number in an unusual spelling; write the address as 192.0.2.1")
        if not _HOST.fullmatch(bare):
            raise AddressRefused(f"host {host!r} is not a host name")
        if f".{bare}".endswith(_PLATFORM_NAMES):
            raise AddressRefused(f"host {host!r} is a name of the cloud's own services")
        # A user who allows a private network may use its names; the addresses behind them are still checked.
        if (bare == "localhost" or f".{bare}".endswith(_LOCAL_NAMES)) and not self.allowed:
            raise AddressRefused(f"host {host!r} is a local name")
        return None

    def check_address(self, text: str) -> None:
        """Check a numeric address.

        Raises:
            AddressRefused: it is not public and not allowed, or no address at all.
        """
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise AddressRefused(f"{text!r} is not a numeric address") from None
        if self._opened(address):
            return
        for meant in _meant(address):
            if why := _closed(meant):
                inside = f", which {address} stands for," if meant != address else ""
                raise AddressRefused(f"{meant}{inside} is {why}; only public addresses are fetched")

    def _opened(self, address: IPAddress) -> bool:
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        meant = mapped or address
        fitting = [net for net in self.allowed if meant.version == net.version and meant in net]
        # A wide network, such as 0.0.0.0/0, is not meant to open these; one of them alone is.
        return any(net.num_addresses == 1 for net in fitting) if meant in _PLATFORM else bool(fitting)

    def make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """The socket of a connection; `info` is an entry of `getaddrinfo`.

        Raises:
            AddressRefused: the address is not to be connected to.
        """
        family, kind, protocol, _, address = info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise AddressRefused(f"address family {family}; expected IPv4 or IPv6")
        self.check_address(str(address[0]))
        if address[1] not in self.ports and not self._opened(ipaddress.ip_address(address[0])):
            raise AddressRefused(f"port {address[1]} of {address[0]} is not one of {', '.join(map(str, self.ports))}")
        return socket.socket(family, kind, protocol)


def _closed(address: IPAddress) -> str:
    """Why an address is not public; empty if it is."""
    for name in ("loopback", "link_local", "multicast", "unspecified", "reserved", "private"):
        if getattr(address, f"is_{name}"):
            return f"a {name.replace('_', '-')} address"
    if address in _PLATFORM:
        return "an address of the cloud's own services"
    if not address.is_global or any(address.version == net.version and address in net for net in _CLOSED):
        return "not a public address"
    return "scoped to one link" if getattr(address, "scope_id", None) else ""


def _meant(address: IPAddress) -> Iterator[IPAddress]:
    """All addresses that one leads to: itself, unless it only stands for another, and what it carries."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield from address.teredo
