"""Whoever reads the whole database, or a backup of it, gets in nowhere with what stands there."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.conf import settings
from django.test import Client

from hosts.selectors import host_of_agent
from hosts.services.enrolment import agent_token_create, enrolment_create, enrolment_redeem
from tests.factories import make_admin, make_host, make_token
from trailer.accounts.models import Session
from trailer.accounts.second_factor import factor_begin
from trailer.accounts.sessions import SessionStore
from trailer.api.authentication import user_for_key
from trailer.errors import NotAllowed

pytestmark = pytest.mark.django_db


def _cells() -> set[str]:
    """Every text of every table that is long enough to be a credential."""
    found = {
        str(cell)
        for model in apps.get_models()
        for row in model._base_manager.values_list()
        for cell in row
    }
    return {cell for cell in found if 16 <= len(cell) <= 400 and " " not in cell}


def _opens(credential: str) -> list[str]:
    """Where one gets in with it."""
    found = []
    if user_for_key(credential):
        found.append("API")
    if SessionStore(credential).load():
        found.append("pages")
    if host_of_agent(credential):
        found.append("agent")
    try:
        enrolment_redeem(credential)
    except NotAllowed:
        return found
    return [*found, "enrolment"]


def test_no_cell_of_the_database_is_a_credential() -> None:
    admin, host = make_admin("root"), make_host()
    key, agent = make_token(admin, scope="admin"), agent_token_create(host)
    once = enrolment_create(actor=admin, host=host).token
    factor_begin(actor=admin)
    browser = Client()
    browser.force_login(admin)
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
    cells = _cells()
    assert len(cells) > 20
    assert {cell: places for cell in cells if (places := _opens(cell))} == {}
    # The same look finds what was handed out.
    found = [_opens(credential) for credential in (key, cookie, agent, once)]
    assert found == [["API"], ["pages"], ["agent"], ["enrolment"]]


def test_sessions_of_an_older_version_stay_open() -> None:
    store = SessionStore()
    store["colour"] = "blue"
    store.save()
    cookie = str(store.session_key)
    Session.objects.update(session_key=cookie)
    assert SessionStore(cookie).load() == {}
    migration = import_module("trailer.accounts.migrations.0006_session_digests")
    migration._digests(apps, None)
    assert SessionStore(cookie).load() == {"colour": "blue"}


def test_a_session_ends_where_it_was_stored() -> None:
    browser = Client()
    browser.force_login(make_admin("root"))
    [row] = Session.objects.all()
    browser.post("/logout/")
    assert not Session.objects.filter(pk=row.pk).exists()
