"""Where clouds give machines their keys: no address, spelling or name of it is fetched."""

from __future__ import annotations

import pytest
from concertino_search.web.addresses import AddressGuard, AddressRefused

ADDRESSES = (
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    # The same, as what another address stands for or carries.
    "::ffff:168.63.129.16",
    "64:ff9b::168.63.129.16",
    "2002:a83f:8110::1",
    "::ffff:0:168.63.129.16",
    "::168.63.129.16",
    "::ffff:100.100.100.200",
)
URLS = (
    "http://168.63.129.16/machine/?comp=goalstate",
    "http://[::ffff:a83f:8110]/",
    "http://169.254.169.254/latest/meta-data/iam/",
    "http://100.100.100.200/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/",
    "http://2822734096/",  # 168.63.129.16 as one number
    "http://0xa83f8110/",
    "http://0250.077.0201.020/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./computeMetadata/v1/",
    "http://metadata/computeMetadata/v1/",
    "http://metadata.goog/",
    "http://instance-data/latest/",
    "http://instance-data.ec2.internal/latest/",
    "http://metadata.tencentyun.com/latest/",
    "http://metadata.platformequinix.com/metadata",
)
WIDE = ("0.0.0.0/0", "::/0", "169.254.0.0/16", "168.63.129.0/24", "fd00::/8")


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_of_a_cloud_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="only public addresses are fetched"):
        AddressGuard().check_address(address)


@pytest.mark.parametrize("url", URLS)
def test_a_url_of_a_cloud_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        AddressGuard().check_url(url)


@pytest.mark.parametrize("address", ADDRESSES[:9])
def test_a_wide_network_that_is_allowed_does_not_open_it(address: str) -> None:
    with pytest.raises(AddressRefused):
        AddressGuard.of(WIDE).check_address(address)


@pytest.mark.parametrize("url", [url for url in URLS if "metadata." in url.lower() or "/instance" in url])
def test_a_private_network_that_is_allowed_does_not_open_its_name(url: str) -> None:
    with pytest.raises(AddressRefused, match="the cloud's own services"):
        AddressGuard.of(("10.0.0.0/8",)).check_url(url)


def test_one_of_them_is_open_to_who_names_it_alone() -> None:
    AddressGuard.of(("168.63.129.16",)).check_address("168.63.129.16")
