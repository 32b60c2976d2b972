"""Variables reach the services, secrets stay secret, and what is undefined is named."""

from __future__ import annotations

import json
import pickle

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.stacks.file.errors import StackFileError, VariablesError
from workspaces.stacks.file.identity import encrypt_value, new_identity
from workspaces.stacks.file.reader import read_stack_file
from workspaces.stacks.file.resolve import resolve
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.file.types import ServiceSpec, Variables
from workspaces.stacks.file.variables import read_variables
from workspaces.stacks.needs.catalogue import (
    need_kinds,
    need_service,
    need_values,
    new_credentials,
)

VARIABLES = Variables(
    config={"LEVEL": "debug", "HOST": "shop.example.com", "TAG": "1.2"},
    secrets={"KEY": Secret("s3cret"), "SALT": Secret("pepper")},
)
NEEDS: dict[str, dict[str, str | Secret]] = {
    "postgres": {"host": "postgres", "url": Secret("postgresql://app:pw@postgres/app")}
}


def resolved(text: str, variables: Variables = VARIABLES) -> ServiceSpec:
    stack = read_stack_file(f"services:\n  web:\n    {text}\n", "trailer.yml")
    return resolve(stack, variables, NEEDS).services[0]


def refusal(text: str) -> str:
    with pytest.raises(VariablesError) as caught:
        resolved(text)
    return caught.value.message


def test_variables_stand_inside_strings_and_several_in_one_value() -> None:
    web = resolved(
        """image: "shop:${config.TAG}"
    command: [serve, "--host=${config.HOST}:${needs.postgres.host}"]
    environment: {A: "x-${config.LEVEL}-${config.TAG}-y"}
    labels: {level: "${config.LEVEL}"}
    healthcheck: {test: "curl http://${config.HOST}/"}
    x-trailer: {domain: "${config.HOST}", port: 80}"""
    )
    assert web.image == "shop:1.2"
    assert web.command == ("serve", "--host=shop.example.com:postgres")
    assert web.environment == {"A": "x-debug-1.2-y"}
    assert web.labels == {"level": "debug"}
    assert web.health_check is not None
    assert web.health_check.test == ("CMD-SHELL", "curl http://shop.example.com/")
    assert web.domains[0].host_name == "shop.example.com"


def test_a_value_with_a_secret_in_it_becomes_a_secret_as_a_whole() -> None:
    web = resolved(
        'image: a\n    environment: {A: "u:${secret.KEY}@${config.LEVEL}", '
        'B: "${needs.postgres.url}", C: plain}'
    )
    assert web.environment == {"C": "plain"}
    assert web.secret_environment == {
        "A": Secret("u:s3cret@debug"),
        "B": Secret("postgresql://app:pw@postgres/app"),
    }
    assert "s3cret" not in repr(web)
    assert "pw@" not in repr(web)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$${config.LEVEL}", "${config.LEVEL}"),
        ("$$$${x}", "$${x}"),
        ("$$${config.LEVEL}", "$debug"),
        ("costs 5$", "costs 5$"),
        ("$5 and $ ", "$5 and $ "),
        ("a$$b", "a$b"),
    ],
)
def test_dollar_signs_are_escaped_by_doubling(written: str, expected: str) -> None:
    web = resolved(f'image: a\n    environment: {{A: "{written}"}}')
    assert web.environment == {"A": expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('environment: {A: "${config.NONE}"}', "environment.A: undefined config variable: NONE"),
        ('environment: ["A=${secret.NONE}"]', "undefined secret: NONE"),
        ('environment: {A: "${needs.valkey.url}"}', "undefined need: valkey"),
        ('environment: {A: "${needs.postgres.name}"}', "undefined part name of the need postgres"),
        ('environment: {A: "${config.level}"}', "undefined config variable: level"),
        ('environment: {A: "${config.KEY}"}', "KEY is a secret; write ${secret.KEY}"),
        ('environment: {A: "${secret.LEVEL}"}', "LEVEL is not a secret"),
        ('environment: {A: "${HOME}"}', "${HOME} is no variable of Trailer"),
        ('environment: {A: "$HOME"}', "$HOME is no variable of Trailer"),
        ('environment: {A: "${config.LEVEL"}', "${config.LEVEL is no variable"),
        ('command: ["${secret.KEY}"]', "a secret may stand only in environment"),
        ('labels: {a: "${needs.postgres.url}"}', "a secret may stand only in environment"),
    ],
)
def test_what_is_undefined_or_out_of_place_is_named(text: str, expected: str) -> None:
    message = refusal(f"image: a\n    {text}")
    assert expected in message
    assert "trailer.yml, line 4: services.web." in message
    assert "s3cret" not in message


def test_all_undefined_variables_are_named_at_once() -> None:
    message = refusal('image: "${config.ONE}"\n    environment: {A: "${secret.TWO}"}')
    assert "ONE" in message
    assert "TWO" in message


def test_encrypted_values_are_read_with_the_stacks_own_key_only() -> None:
    mine, other = new_identity(), new_identity()
    armored = pyrage.encrypt(
        b"two\nlines", [pyrage.x25519.Recipient.from_str(mine.recipient)], armored=True
    ).decode()
    text = json.dumps(
        {
            "values": {
                "LEVEL": "debug",
                "COUNT": 3,
                "KEY": {"secure": encrypt_value("s3cret", mine.recipient)},
                "LINES": {"secure": armored},
            }
        }
    )
    variables = read_variables(text, mine.private)
    assert variables.config == {"LEVEL": "debug", "COUNT": "3"}
    assert variables.secrets == {"KEY": Secret("s3cret"), "LINES": Secret("two\nlines")}
    with pytest.raises(VariablesError, match="KEY can't be decrypted with this stack's key"):
        read_variables(text, other.private)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("values: {A: {secure: nonsense}}", "value of A can't be decrypted"),
        ("values: {A: {secure: ''}}", "value of A can't be decrypted"),
        ("values: {A: {insecure: x}}", "must be a value, or secure:"),
        ("values: {1A: x}", "a name is letters, digits and _"),
        ("values: {A: [1]}", "must be text"),
        ("other: {}", "trailer.vars.yml, line 1: other: is not supported"),
    ],
)
def test_a_wrong_variables_file_is_refused(text: str, expected: str) -> None:
    with pytest.raises(StackFileError) as caught:
        read_variables(text, new_identity().private)
    assert expected in caught.value.message


@pytest.mark.parametrize("text", ["", "  \n", "values:", "values: {}"])
def test_no_variables_are_fine(text: str) -> None:
    assert read_variables(text, new_identity().private) == Variables()


def test_what_the_page_sets_goes_before_the_file() -> None:
    page = Variables(config={"LEVEL": "info"}, secrets={"KEY": Secret("other")})
    merged = page.over(VARIABLES)
    assert merged.config["LEVEL"] == "info"
    assert merged.config["TAG"] == "1.2"
    assert merged.secrets["KEY"].reveal() == "other"


def test_a_secret_never_shows_itself() -> None:
    secret = Secret("s3cret")
    shown = f"{secret} {secret!r} {[secret]} {secret!s} { ({1: secret}) }"
    assert "s3cret" not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_value_survives_encryption(plain: str) -> None:
    identity = new_identity()
    text = json.dumps({"values": {"A": {"secure": encrypt_value(plain, identity.recipient)}}})
    assert read_variables(text, identity.private).secrets["A"].reveal() == plain


@pytest.mark.parametrize("kind", list(need_kinds()))
def test_every_need_has_a_volume_a_health_check_and_hidden_credentials(kind: str) -> None:
    stack = read_stack_file(
        f"services: {{web: {{image: a}}}}\nx-trailer: {{needs: {{{kind}: }}}}", "trailer.yml"
    )
    credentials = new_credentials(kind)
    service = need_service(stack.needs[0], credentials)
    values = need_values(stack.needs[0], credentials)
    password = credentials["password"].reveal()
    assert len(password) >= 32
    assert service.name == kind
    assert [mount.volume for mount in service.mounts] == [f"needs-{kind}"]
    assert service.health_check is not None
    assert (service.update_policy, service.startup_timeout) == ("if_missing", 45)
    # Failures before the end of that time do not count: the check must not give up first.
    assert service.health_check.start_period == 45
    assert password in [value.reveal() for value in service.secret_environment.values()]
    assert password not in repr((service, values))
    assert {"host", "port", "user", "password", "database", "url"} == set(values)
    url = values["url"]
    assert isinstance(url, Secret)
    assert f"{password}@{values['host']}:{values['port']}/{values['database']}" in url.reveal()
    assert need_service(stack.needs[0], credentials) == service
