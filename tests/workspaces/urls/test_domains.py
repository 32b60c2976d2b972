"""Which names are relayed, and where a URL is opened."""

from __future__ import annotations

import pytest

from trailer.domains import address_under, default_url_domain, host_name, subdomain_of

OWN = frozenset({"trailer.example.com", "localhost"})


@pytest.mark.parametrize(
    ("public", "domain"),
    [
        ("http://127.0.0.1:8000", "localhost"),
        ("http://[::1]:8000", "localhost"),
        ("http://app.localhost:8000", "app.localhost"),
        ("https://Trailer.Example.com", "trailer.example.com"),
        ("http://10.1.2.3", ""),
    ],
)
def test_the_servers_own_name_is_the_domain(public: str, domain: str) -> None:
    assert default_url_domain(public) == domain


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("box.example.com", "box"),
        ("BOX.example.com:8443", "box"),
        ("box.example.com.", "box"),
        ("a.b.example.com", "a.b"),
        ("example.com", None),
        (".example.com", None),
        ("trailer.example.com:443", None),
        ("localhost", None),
        ("boxexample.com", None),
        ("box.example.com.evil.org", None),
        ("[::1]:80", None),
        ("", None),
    ],
)
def test_a_name_under_the_domain_is_relayed(header: str, found: str | None) -> None:
    assert subdomain_of(header, domain="example.com", own=OWN) == found


def test_without_a_domain_nothing_is_relayed() -> None:
    assert subdomain_of("box.example.com", domain="", own=OWN) is None


def test_addresses_have_the_servers_scheme_and_port() -> None:
    assert address_under("http://127.0.0.1:8000", "a.localhost") == "http://a.localhost:8000/"
    assert address_under("https://t.example.com", "a.example.com") == "https://a.example.com/"
    assert host_name("[::1]:80") == "[::1]"
