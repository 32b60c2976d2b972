"""What may pass between a visitor and an app: a table of header fields in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocol.identity import CLAIMS
from workspaces.urls.headers import from_app, platform_cookies, to_app, visit_token

COOKIES = platform_cookies("sessionid", "csrftoken")


def sent(*headers: tuple[str, str], user: str = "") -> dict[str, list[str]]:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    found: dict[str, list[str]] = {}
    for name, value in to_app(raw, cookies=COOKIES, client="10.0.0.7", scheme="https", user=user):
        found.setdefault(name.decode().lower(), []).append(value.decode())
    return found


def answered(*headers: tuple[str, str], is_public: bool = False) -> list[tuple[str, str]]:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    kept = from_app(raw, cookies=COOKIES, host="box.example.com", is_public=is_public)
    return [(name.decode(), value.decode()) for name, value in kept]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "x-trailer-user",
            "X-TRAILER-USER",
            "x_trailer_user",
            "X.Trailer.User",
            "x-trailer_user",
        ),
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x_forwarded_for"),
        *("x-forwarded-user", "x-forwarded-email", "x-forwarded-preferred-username", "forwarded"),
        *("remote-user", "remote_user", "x-remote-user", "x-auth-user", "x-auth-request-user"),
        *("x-webauth-user", "x-authenticated-user", "x-goog-authenticated-user-email"),
        *CLAIMS,
        *("x-real-ip", "true-client-ip", "cf-connecting-ip", "x-original-url", "x-rewrite-url"),
    ],
)
def test_a_claim_of_the_client_about_itself_is_dropped(name: str) -> None:
    fields = sent(("host", "box.example.com"), (name, "mallory"), user="ada")
    assert all("mallory" not in value for values in fields.values() for value in values)
    assert fields["x-trailer-user"] == ["ada"]
    assert fields["x-forwarded-for"] == ["10.0.0.7"]


@pytest.mark.parametrize("name", ["x-custom", "accept", "user-agent", "range", "x-requested-with"])
def test_what_is_the_apps_business_passes(name: str) -> None:
    assert sent(("host", "h"), (name, "1"))[name] == ["1"]


def test_platform_cookies_are_taken_out_and_others_stay() -> None:
    ours = (
        "sessionid=x; CSRFTOKEN=y; trailer_url=z; __Host-trailer_url=z; __host-trailer_url_state=s"
    )
    fields = sent(("host", "h"), ("cookie", f"a=1; {ours}; b=2; bare"))
    assert fields["cookie"] == ["a=1; b=2; bare"]
    assert "cookie" not in sent(("host", "h"), ("cookie", "sessionid=x"))


@pytest.mark.parametrize("name", ["Cookie", "COOKIE", "cookie2", "Set-Cookie"])
@pytest.mark.parametrize(
    "cookie", ["sessionid=secret", "a=1;SessionID = secret;", ";; csrftoken=secret"]
)
def test_no_spelling_of_the_field_carries_a_platform_cookie(name: str, cookie: str) -> None:
    fields = sent(("host", "h"), (name, cookie), (name, cookie))
    assert not [v for values in fields.values() for v in values if "secret" in v]


def test_two_hundred_fields_hide_no_claim() -> None:
    many = [(f"x-{number}", "1") for number in range(200)]
    fields = sent(("host", "h"), *many, ("X-Trailer-User", "mallory"), *many, user="ada")
    assert fields["x-trailer-user"] == ["ada"]
    assert len(fields["x-7"]) == 2


def test_naming_our_own_fields_options_takes_none_of_them_away() -> None:
    fields = sent(
        ("host", "h"),
        ("connection", "x-trailer-user, x-forwarded-for, cookie, authorization"),
        ("cookie", "sessionid=secret; a=1"),
        user="ada",
    )
    assert (fields["x-trailer-user"], fields["x-forwarded-for"]) == (["ada"], ["10.0.0.7"])
    assert fields["cookie"] == ["a=1"]


def test_a_token_of_the_platform_is_taken_out_and_an_apps_own_stays() -> None:
    assert "authorization" not in sent(("host", "h"), ("authorization", "Token trl_api_x"))
    assert "authorization" not in sent(("host", "h"), ("authorization", "bearer  trl_agent_x"))
    assert sent(("host", "h"), ("authorization", "Bearer own"))["authorization"] == ["Bearer own"]


def test_fields_of_one_connection_stay_on_it() -> None:
    fields = sent(
        ("host", "h"),
        ("connection", "keep-alive, X-Once"),
        ("x-once", "1"),
        ("te", "trailers"),
        ("transfer-encoding", "chunked"),
        ("content-length", "7"),
        ("upgrade", "h2c"),
        ("expect", "100-continue"),
    )
    assert set(fields) == {"host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"}


def test_a_client_cannot_take_the_host_away_by_naming_it_an_option() -> None:
    assert sent(("host", "h"), ("connection", "host"))["host"] == ["h"]


@pytest.mark.parametrize(
    ("cookie", "kept"),
    [
        ("own=1; Path=/; HttpOnly", "own=1; Path=/; HttpOnly"),
        ("own=1; Domain=box.example.com; Path=/", "own=1; Path=/"),
        ("own=1; domain=.BOX.example.com", "own=1"),
        ("up=1; Domain=example.com", None),
        ("up=1; Domain=.example.com", None),
        ("up=1; DOMAIN = com", None),
        ("sessionid=1", None),
        ("SessionId=1", None),
        ("csrftoken=1; Path=/", None),
        ("trailer_url=1", None),
        ("__Host-trailer_url=1; Secure; Path=/", None),
        ("=sessionid=1", None),
        (" = trailer_url=1", None),
        ("trailer_url", None),
        ("own=1; Domain=box.example.com; Domain=example.com", None),
    ],
)
def test_a_cookie_of_an_app_is_for_its_own_name_only(cookie: str, kept: str | None) -> None:
    found = [value for _, value in answered(("Set-Cookie", cookie))]
    assert found == ([kept] if kept is not None else [])


@pytest.mark.parametrize(
    "name",
    [
        *("Strict-Transport-Security", "Clear-Site-Data", "Service-Worker-Allowed", "Alt-Svc"),
        *("X-Accel-Redirect", "X-Sendfile", "X-Trailer-Relay", "Set-Cookie2"),
    ],
)
def test_an_app_does_not_speak_for_the_domain(name: str) -> None:
    assert answered((name, "x"), ("X-Own", "1")) == [("X-Own", "1")]


def test_pages_of_other_apps_may_read_public_ones_only() -> None:
    field = ("Access-Control-Allow-Origin", "*")
    assert answered(field) == []
    assert answered(field, is_public=True) == [field]


def test_a_name_with_line_breaks_makes_no_header() -> None:
    assert sent(("host", "h"), user="a\r\nx-evil: 1")["x-trailer-user"] == ["ax-evil: 1"]


@given(st.binary(max_size=200))
def test_any_cookie_header_is_read(raw: bytes) -> None:
    assert isinstance(visit_token([(b"cookie", raw)], secure=False), str)
    to_app([(b"cookie", raw)], cookies=COOKIES, client="", scheme="http")


@pytest.mark.parametrize(
    ("cookies", "secure", "token"),
    [
        ("trailer_url=a", False, "a"),
        ("x=1; trailer_url=a; y=2", False, "a"),
        ("trailer_url=a; trailer_url=a", False, "a"),
        # A neighbour can set one for the domain that both are under.
        ("trailer_url=a; trailer_url=b", False, ""),
        ("trailer_url=a; __Host-trailer_url=b", True, "b"),
        ("trailer_url=a", True, ""),
        ("__Host-trailer_url=b", False, ""),
        ("trailer_url_state=a", False, ""),
    ],
)
def test_only_the_one_cookie_that_no_neighbour_could_set_is_a_visit(
    cookies: str, secure: bool, token: str
) -> None:
    assert visit_token([(b"cookie", cookies.encode())], secure=secure) == token
    parts = [(b"cookie", part.encode()) for part in cookies.split("; ")]
    assert visit_token(parts, secure=secure) == token
