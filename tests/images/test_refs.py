"""Image references: the grammar, the normal form, the registry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocol import image_refs
from agent.protocol.image_refs import normal, server_of
from images.refs import normalise_server, parse_reference
from trailer.errors import Invalid

SHA = "sha256:" + "a1" * 32


@pytest.mark.parametrize(
    ("text", "short", "server"),
    [
        ("busybox", "busybox:latest", "docker.io"),
        ("busybox:1.36", "busybox:1.36", "docker.io"),
        ("library/busybox", "busybox:latest", "docker.io"),
        ("docker.io/busybox", "busybox:latest", "docker.io"),
        ("docker.io/library/busybox:latest", "busybox:latest", "docker.io"),
        ("index.docker.io/library/busybox", "busybox:latest", "docker.io"),
        ("team/app", "team/app:latest", "docker.io"),
        ("library/team/app", "library/team/app:latest", "docker.io"),
        ("ghcr.io/team/app:v1", "ghcr.io/team/app:v1", "ghcr.io"),
        ("localhost/app", "localhost/app:latest", "localhost"),
        ("localhost:5000/app:x", "localhost:5000/app:x", "localhost:5000"),
        ("127.0.0.1:5001/a/b/c", "127.0.0.1:5001/a/b/c:latest", "127.0.0.1:5001"),
        ("[::1]:5000/app", "[::1]:5000/app:latest", "[::1]:5000"),
        ("GHCR.io/team/app", "GHCR.io/team/app:latest", "GHCR.io"),
        ("LocalReg/app", "LocalReg/app:latest", "LocalReg"),
        (
            "registry-1.docker.io/library/busybox",
            "registry-1.docker.io/library/busybox:latest",
            "registry-1.docker.io",
        ),
        (f"busybox@{SHA}", f"busybox@{SHA}", "docker.io"),
        (f"ghcr.io/a/b:v1@{SHA}", f"ghcr.io/a/b@{SHA}", "ghcr.io"),
        ("a__b/c-d.e:T_1.x-y", "a__b/c-d.e:T_1.x-y", "docker.io"),
    ],
)
def test_a_reference_has_one_normal_form_and_one_server(
    text: str, short: str, server: str
) -> None:
    assert str(parse_reference(text)) == normal(text) == short
    assert server_of(text) == server
    assert normal(short) == short


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "Busybox", "busy box", "busybox:", "busybox::1", "busybox:1:2", "/busybox"),
        *("busybox/", "a//b", "http://x/y", "https://ghcr.io/a", "busybox:ümlaut", "-a", "a-"),
        *("a..b", "_a", "a@", "a@sha256:1", f"a@{SHA}0", f"a@md5:{'0' * 32}", "a:" + "x" * 129),
        *(
            "x" * 256,
            "ghcr.io:99999/a",
            "ghcr.io:0/a",
            "a\nb",
            "busybox\n",
            "a:1\n",
            "a\0",
            "a1" * 32,
        ),
        *("host.io/", "[::1/app", "user@host/a", "$(id)/x", "a;b", "../a"),
        *(SHA, "sha256:a1a1", "docker.io/sha256:a1a1", f"docker.io/{'a1' * 32}", "a1" * 32 + ":1"),
        *("docker.io/ghcr.io/team/app", "docker.io/localhost/app", "my_reg.example/app"),
    ],
)
def test_what_no_engine_would_take_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_reference(text)
    assert "reference" in caught.value.fields


def test_a_name_that_looks_like_a_server_alone_is_a_hub_image() -> None:
    """Docker's rule: without a slash there is no server."""
    assert server_of("localhost") == "docker.io"


@given(st.text(max_size=60))
def test_any_text_is_either_refused_or_normalises_to_a_fixed_point(text: str) -> None:
    assert normal(normal(text)) == normal(text)
    assert server_of(normal(text)) == server_of(text)
    try:
        reference = parse_reference(text)
    except Invalid:
        return
    assert image_refs.parse(normal(text)).name == reference.name


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("ghcr.io", "ghcr.io"),
        (" Registry.Example.COM:5000 ", "registry.example.com:5000"),
        ("index.docker.io", "docker.io"),
        ("localhost:5000", "localhost:5000"),
        ("LocalReg", "localreg"),
        ("Docker.IO", "docker.io"),
        ("registry-1.docker.io", "registry-1.docker.io"),
    ],
)
def test_a_server_is_normalised(text: str, server: str) -> None:
    assert normalise_server(text) == server


@pytest.mark.parametrize(
    "text", ["", "https://ghcr.io", "ghcr.io/team", "a b", "-a.io", "a.io:", "a.io:70000", "a@b"]
)
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        normalise_server(text)
