"""No log line shows a secret that its process handled, or what looks like one."""

from __future__ import annotations

import io
import json
import logging
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.logs import MaskedFormatter, hush
from agent.protocol.compare import MASK
from agent.protocol.redaction import LIVE, SHORTEST, LiveSecrets, redacted, redacted_field
from agent.protocol.state import RegistryCredential
from tests.agent.documents import document, image, workspace

TOKEN = "trl_api_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
secret_texts = st.text(min_size=SHORTEST, max_size=60).filter(
    lambda text: bool(text.strip()) and MASK[0] not in text
)


@given(st.lists(secret_texts, min_size=1, max_size=4), st.text(), st.text())
def test_any_text_with_a_live_secret_passes_masked(
    secrets: list[str], before: str, after: str
) -> None:
    live = LiveSecrets()
    live.remember(*secrets)
    for secret in secrets:
        for spelling in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, "")):
            assert spelling not in live.masked(f"{before}{spelling}{after}")


@given(st.lists(secret_texts, max_size=4), st.text(max_size=200))
def test_a_text_without_a_live_secret_passes_as_it_is(secrets: list[str], text: str) -> None:
    live = LiveSecrets()
    live.remember(*(secret for secret in secrets if secret not in text))
    shown = live.masked(text)
    # A spelling, or a line, of a secret may be in the text by chance; nothing else is changed.
    assert shown == text or MASK in shown


@given(st.from_regex(r"\Atrl_[a-z]{2,8}_[\w-]{43}\Z", fullmatch=True), st.text(), st.text())
def test_any_text_with_a_token_passes_masked(token: str, before: str, after: str) -> None:
    secret = token.split("_", 2)[2]
    assert secret not in redacted(f"{before}{token}{after}")


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("Authorization: Token abc-def", "abc-def"),
        ("{'authorization': 'Bearer abc.def.ghi'}", "abc.def.ghi"),
        ('"Authorization": "Basic cm9ib3Q6c2VjcmV0"', "cm9ib3Q6c2VjcmV0"),
        ("Cookie: sessionid=ab12cd34", "ab12cd34"),
        ("X-Gitlab-Token: hush-hush", "hush-hush"),
        ("fatal: could not read https://robot:p@ss:w0rd@git.example.com/x.git", "w0rd"),
        ("redis://:s3cret@redis:6379/0 is away", "s3cret"),
        ("connection to host=db password=s3cret failed", "s3cret"),
        ("DB_PASSWORD='two words' was refused", "two words"),
        ('{"client_secret": "abc", "id": 7}', "abc"),
        ("GET /x/?token=abcdef&page=2", "abcdef"),
        ("GET /login/sso/callback/?code=abcdef&state=ghijkl", "ghijkl"),
        ("Not Found: /login/reset/MQ/c5f-0123456789/", "c5f-0123456789"),
        ("cell gAAAAABl0123456789abcdef0123456789abcdef0123456789==", "0123456789abcdef"),
        ("remote: ghp_0123456789abcdefABCDEF0123", "0123456789abcdef"),
        ("key AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQ", "QQQQQQQQ"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END", "b3BlbnNzaC1r"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
    ],
)
def test_what_looks_like_a_secret_is_masked(line: str, secret: str) -> None:
    assert secret not in redacted(line)
    assert MASK in redacted(line)


@pytest.mark.parametrize(
    "line",
    [
        "sync step failed stack=5d1c0d8e-2b5a-4c8e-9f43-3d1b4a4f0a11",
        "GET /api/v1/workspaces/?page=2&search=web 200",
        "Set TRAILER_SERVER_URL to https://trailer.example.com:8443/ and restart.",
        "pulled registry.example.com:5000/team/app@sha256:" + "ab" * 32,
        "The token is unknown, used or expired. Password: must have eight characters.",
        "mail to ada@example.com was sent",
    ],
)
def test_sentences_stay_readable(line: str) -> None:
    assert redacted(line) == line


def test_fields_are_masked_by_name_and_in_depth() -> None:
    assert redacted_field("password", "x") == MASK
    assert redacted_field("code", 7) == 7
    told = redacted_field("request", {"headers": [f"Token {TOKEN}"], "secret": "a", "n": None})
    assert told == {"headers": [f"Token trl_api_{MASK}"], "secret": MASK, "n": None}


def test_old_secrets_make_room_for_new_ones() -> None:
    live = LiveSecrets(most=2)
    live.remember("first-secret", "second-secret", "third-secret")
    assert live.masked("first-secret second-secret third-secret") == f"first-secret {MASK} {MASK}"


def test_a_line_costs_the_same_however_many_secrets_there_are() -> None:
    """Not a figure but an order: 20,000 comparisons a line would take a hundred times as long."""
    live = LiveSecrets()
    live.remember(*(f"secret-{number}-of-many" for number in range(20_000)))
    line = "reconciled 12 workspaces in 0.3 s, nothing changed " * 4
    begun = time.process_time()
    for _ in range(50):
        live.masked(line)
    assert (time.process_time() - begun) / 50 < 0.002


@pytest.mark.parametrize("part", ["a", "token", "=", "://a", 'password"', "-----BEGIN ", "eyJ"])
def test_a_hostile_line_takes_no_time(part: str) -> None:
    begun = time.process_time()
    redacted(part * (100_000 // len(part)))
    assert time.process_time() - begun < 2


def test_the_agents_log_shows_no_secret_of_its_document_not_even_in_a_trace() -> None:
    password, value = "canary-registry-77", "canary 'quoted' env\nsecond line"
    credential = RegistryCredential(server="r.example.com", username="robot", password=password)
    hush(
        document(
            images=(image(credential=credential),),
            workspaces=(workspace(secret_env={"A": value}),),
        )
    )
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(MaskedFormatter("%(message)s"))
    logger = logging.getLogger("tests.redaction")
    logger.addHandler(handler)
    try:
        raise KeyError(value, password)
    except KeyError:
        logger.exception("could not start with %s", value)
    assert "canary" not in stream.getvalue()
    assert "could not start with •••" in stream.getvalue()
    assert LIVE.masked(password) == MASK
