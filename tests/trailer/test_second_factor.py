"""The second factor: set up, asked for on every way in, each code once, a way back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyotp
import pytest
from django.test import Client

from tests.factories import api_client, make_admin, make_user
from trailer.accounts.models import RecoveryCode, SecondFactor
from trailer.accounts.second_factor import code_is_right, factor_begin, factor_confirm
from trailer.audit.models import AuditEntry

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/me/second-factor/"
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


class Phone:
    """Shows the next code that was not used yet."""

    def __init__(self, secret: str) -> None:
        self.totp = pyotp.TOTP(secret)

    def code(self, steps: int = 0) -> str:
        return self.totp.at(int(time.time()) + 30 * steps)


@pytest.fixture
def olga() -> User:
    return make_user("olga", password=PASSWORD, email="olga@example.com")


def turned_on(user: User) -> tuple[Phone, list[str]]:
    phone = Phone(factor_begin(actor=user).secret)
    codes = factor_confirm(actor=user, code=phone.code(-1))
    return phone, codes


def token(**fields: str) -> Any:
    body = {"username": "olga", "password": PASSWORD, **fields}
    return api_client().post("/api/v1/auth/token/", body)


def test_it_is_set_up_with_the_password_and_a_first_code(olga: User) -> None:
    client = api_client(olga)
    assert client.post(URL, {"current_password": "wrong"}).status_code == 400
    begun = client.post(URL, {"current_password": PASSWORD}).json()
    assert begun["uri"].startswith("otpauth://totp/Trailer:olga?secret=")
    assert begun["picture"].startswith("data:image/svg+xml")
    assert client.get(URL).json() == {"enabled": False, "recovery_codes_left": 0}
    assert token().status_code == 200
    wrong = client.post(f"{URL}confirm/", {"code": "000000"})
    assert (wrong.status_code, list(wrong.json()["fields"])) == (400, ["code"])
    done = client.post(f"{URL}confirm/", {"code": Phone(begun["secret"]).code()})
    assert len(set(done.json()["recovery_codes"])) == 10
    assert client.get(URL).json() == {"enabled": True, "recovery_codes_left": 10}
    assert client.post(URL, {"current_password": PASSWORD}).status_code == 409


def test_nothing_of_it_is_stored_in_clear(olga: User) -> None:
    phone, codes = turned_on(olga)
    stored = str(SecondFactor.objects.values_list()) + str(RecoveryCode.objects.values_list())
    assert phone.totp.secret not in stored
    assert not any(code in stored for code in codes)
    assert phone.totp.secret not in str(list(AuditEntry.objects.values_list()))


def test_a_token_takes_the_code_too(olga: User) -> None:
    phone, _ = turned_on(olga)
    asked = token()
    assert (asked.status_code, asked.json()["code"]) == (401, "second_factor_required")
    assert list(asked.json()["fields"]) == ["code"]
    assert token(code="123456").status_code == 401
    assert token(code=phone.code()).status_code == 200


def test_a_wrong_password_does_not_tell_that_there_is_a_second_factor(olga: User) -> None:
    turned_on(olga)
    assert token(password="wrong").json()["code"] == "not_signed_in"


def test_no_code_works_twice(olga: User) -> None:
    phone, _ = turned_on(olga)
    code = phone.code()
    assert code_is_right(olga, code)
    assert not code_is_right(olga, code)
    assert not code_is_right(olga, phone.code(-1))
    assert code_is_right(olga, phone.code(1))
    assert not code_is_right(olga, phone.code(3))


def test_a_recovery_code_works_once(olga: User) -> None:
    _, codes = turned_on(olga)
    assert token(code=codes[0].upper()).status_code == 200
    assert token(code=codes[0]).status_code == 401
    assert RecoveryCode.objects.filter(used_at=None).count() == 9


def test_guesses_of_the_code_are_counted_like_passwords(olga: User) -> None:
    phone, _ = turned_on(olga)
    for _ in range(5):
        assert token(code="000000").status_code == 401
    assert token(code=phone.code()).status_code == 429


def test_the_pages_ask_for_the_code_in_a_second_step(olga: User) -> None:
    phone, _ = turned_on(olga)
    client = Client()
    first = client.post("/login/?next=/images/", {"username": "olga", "password": PASSWORD})
    assert first.headers["Location"] == "/login/code/?next=%2Fimages%2F"
    assert "_auth_user_id" not in client.session
    assert client.get("/").status_code == 302
    wrong = client.post("/login/code/", {"code": "000000"})
    assert "not right" in wrong.content.decode()
    right = client.post("/login/code/?next=/images/", {"code": phone.code()})
    assert right.headers["Location"] == "/images/"
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("onward", ["https://evil.example/", "//evil.example", "javascript:1"])
def test_the_second_step_leads_to_no_other_site(onward: str, olga: User) -> None:
    phone, _ = turned_on(olga)
    client = Client()
    client.post("/login/", {"username": "olga", "password": PASSWORD, "next": onward})
    answer = client.post("/login/code/", {"code": phone.code(), "next": onward})
    assert answer.headers["Location"] == "/"


def test_the_second_step_alone_is_no_way_in(olga: User) -> None:
    phone, _ = turned_on(olga)
    answer = Client().post("/login/code/", {"code": phone.code()})
    assert answer.headers["Location"] == "/login/"


def test_a_password_changed_between_the_steps_ends_the_first(olga: User) -> None:
    phone, _ = turned_on(olga)
    client = Client()
    client.post("/login/", {"username": "olga", "password": PASSWORD})
    olga.set_password("another one altogether")
    olga.save()
    answer = client.post("/login/code/", {"code": phone.code()})
    assert answer.headers["Location"] == "/login/"


def test_the_admins_own_sign_in_is_no_way_around(settings: Any) -> None:
    root = make_admin("root", password=PASSWORD)
    turned_on(root)
    client = Client()
    answer = client.post("/admin/login/", {"username": "root", "password": PASSWORD})
    assert "second factor" in answer.content.decode()
    assert "_auth_user_id" not in client.session


def test_it_is_turned_off_with_the_password_or_by_an_admin(olga: User) -> None:
    turned_on(olga)
    client = api_client(olga)
    assert client.post(f"{URL}remove/", {"current_password": "wrong"}).status_code == 400
    assert client.post(f"{URL}remove/", {"current_password": PASSWORD}).status_code == 204
    assert token().status_code == 200
    turned_on(olga)
    url = f"/api/v1/users/{olga.pk}/second-factor/remove/"
    assert client.post(url, {}).status_code == 403
    assert api_client(make_admin()).post(url, {}).status_code == 204
    assert not SecondFactor.objects.exists()


def test_new_recovery_codes_end_the_old_ones(olga: User) -> None:
    _, old = turned_on(olga)
    answer = api_client(olga).post(f"{URL}recovery-codes/", {"current_password": PASSWORD})
    new = answer.json()["recovery_codes"]
    assert not code_is_right(olga, old[0])
    assert code_is_right(olga, new[0])
    told = AuditEntry.objects.order_by("at").values_list("action", "actor_name")
    assert list(told) == [
        ("user.second_factor_begin", "olga"),
        ("user.second_factor_on", "olga"),
        ("user.recovery_codes", "olga"),
    ]


def test_one_address_gets_twenty_guesses_whoever_it_tries() -> None:
    for number in range(20):
        assert token(username=f"user-{number}").status_code == 401
    answer = token(username="somebody-else")
    assert (answer.status_code, answer.json()["code"]) == (429, "throttled")


def test_the_profile_page_says_whether_it_is_on(olga: User) -> None:
    client = Client()
    client.force_login(olga)
    assert 'data-second-factor="off"' in client.get("/profile/").content.decode()
    turned_on(olga)
    assert "10 recovery codes left" in client.get("/profile/").content.decode()
