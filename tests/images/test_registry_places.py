"""Registries inside are refused to members by name; agents learn what administrators chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.registries import RegistryRule
from hosts.models import Host
from images.models import Image
from tests.factories import (
    api_client,
    make_admin,
    make_grant,
    make_host,
    make_image,
    make_registry,
    make_stack,
)
from trailer.access.models import Role
from trailer.errors import Invalid
from workspaces.control.compile import host_state
from workspaces.stacks.sync import places
from workspaces.stacks.sync.vouching import Vouched

if TYPE_CHECKING:
    from django.test import Client

    from agent.protocol.state import DesiredImage
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
IMAGES = "/api/v1/images/"
REGISTRIES = "/api/v1/registries/"
INSIDE = "127.0.0.1:5000"
HOSTILE = (
    *(INSIDE, "localhost:5000", "LOCALHOST:5000", "a.localhost:5000", "127.0.0.1", "127.1:5000"),
    *("2130706433:5000", "0x7f000001:5000", "0177.0.0.1:5000", "017700000001:80", "0.0.0.0:5000"),
    *("[::1]:5000", "[::]:5000", "[::ffff:7f00:1]:5000", "[0:0:0:0:0:ffff:7f00:1]:5000"),
    *("[64:ff9b::7f00:1]:5000", "[2002:7f00:1::]:5000", "[fe80::1]:5000", "[fd00::1]:5000"),
    *("169.254.169.254", "169.254.169.254:80", "168.63.129.16:80", "10.1.2.3:5000"),
    *("192.168.1.1:5000", "172.16.0.1:5000", "100.64.0.1:5000", "224.0.0.1:5000"),
)
TAKEN = ("registry.example.com", "registry.example.com:5000", "93.184.216.34:5000", "docker.io")


def bodies(server: str) -> list[tuple[str, dict[str, Any]]]:
    ref = f"{server}/team/app:1"
    build = {"kind": "build", "dockerfile": "FROM busybox"}
    return [
        ("reference", {"kind": "pull", "reference": ref}),
        ("reference", {**build, "reference": ref, "push": True}),
        ("dockerfile", {**build, "dockerfile": f"FROM {ref}"}),
        ("dockerfile", {**build, "dockerfile": f"FROM busybox\nCOPY --from={ref} / /x"}),
        ("dockerfile", {**build, "dockerfile": "ARG B\nFROM $B", "build_args": {"B": ref}}),
    ]


def post(client: Client, host: Host, body: dict[str, Any]) -> Any:
    return client.post(IMAGES, {"name": "mine", "host": str(host.pk), **body})


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("server", HOSTILE)
def test_a_member_names_no_registry_inside(
    server: str, number: int, host: Host, owner: User
) -> None:
    field, body = bodies(server)[number]
    answer = post(api_client(owner), host, body)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])
    assert not Image.objects.exists()


def test_the_sentence_names_registry_and_setting(host: Host, owner: User) -> None:
    answer = post(api_client(owner), host, bodies(INSIDE)[0][1])
    assert answer.json()["fields"]["reference"][0] == (
        f"The registry {INSIDE} is not an address of the internet. "
        "An administrator can list it in TRAILER_REGISTRY_ALLOW, or store the registry."
    )


@pytest.mark.parametrize("server", TAKEN)
def test_registries_of_the_internet_are_taken(server: str, host: Host, owner: User) -> None:
    for number, (_, body) in enumerate(bodies(server)):
        answer = post(api_client(owner), host, {**body, "name": f"mine-{number}"})
        assert answer.status_code == 201, answer.json()


@pytest.mark.parametrize("server", HOSTILE)
def test_a_member_stores_no_registry_inside(server: str, owner: User) -> None:
    client = api_client(owner)
    answer = client.post(REGISTRIES, {"server": server})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["server"])
    registry = make_registry(owner)
    answer = client.patch(f"{REGISTRIES}{registry.pk}/", {"server": server})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["server"])


def test_an_edit_is_judged_and_one_of_something_else_is_not(host: Host, owner: User) -> None:
    client = api_client(owner)
    mine = make_image(host, owner, reference=f"{INSIDE}/app:1")
    stored = make_registry(owner, server=INSIDE)
    assert client.patch(f"{IMAGES}{mine.pk}/", {"name": "other"}).status_code == 200
    assert client.patch(f"{REGISTRIES}{stored.pk}/", {"password": "new"}).status_code == 200
    answer = client.patch(f"{IMAGES}{mine.pk}/", {"reference": f"{INSIDE}/app:2"})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["reference"])


def test_an_administrator_names_any_and_says_so_to_the_agent(host: Host, admin: User) -> None:
    client = api_client(admin)
    assert client.post(REGISTRIES, {"server": INSIDE}).status_code == 201
    assert post(client, host, bodies(INSIDE)[0][1]).status_code == 201
    state = host_state(host)
    assert state.trusted_registries == (INSIDE,)
    assert [image.trusted_source for image in state.images] == [True]


def test_what_an_administrator_stored_is_open_to_members(
    host: Host, owner: User, admin: User
) -> None:
    make_registry(admin, server=INSIDE)
    for number, (_, body) in enumerate(bodies(INSIDE)):
        answer = post(api_client(owner), host, {**body, "name": f"mine-{number}"})
        assert answer.status_code == 201, answer.json()
    assert api_client(owner).post(REGISTRIES, {"server": INSIDE}).status_code == 201
    other = post(api_client(owner), host, {**bodies("127.0.0.1:5001")[0][1], "name": "other"})
    assert other.status_code == 400


@pytest.mark.parametrize("entry", ["127.0.0.0/8", "127.0.0.1", INSIDE, f"http://{INSIDE}"])
def test_what_is_listed_is_open_to_members(
    entry: str, host: Host, owner: User, settings: Any
) -> None:
    settings.TRAILER_REGISTRY_ALLOW = [entry]
    assert post(api_client(owner), host, bodies(INSIDE)[0][1]).status_code == 201
    state = host_state(host)
    assert state.settings.registry_allow == (entry,)
    assert [image.trusted_source for image in state.images] == [False]


def test_an_entry_that_means_nothing_is_named(host: Host, owner: User, settings: Any) -> None:
    settings.TRAILER_REGISTRY_ALLOW = ["ftp://x"]
    answer = post(api_client(owner), host, bodies("registry.example.com")[0][1])
    assert answer.status_code == 400
    assert (
        "TRAILER_REGISTRY_ALLOW has an entry that means nothing: ftp://x"
        in answer.json()["message"]
    )


def desired(host: Host, image: Image) -> DesiredImage:
    return next(item for item in host_state(host).images if item.id == str(image.pk))


def test_trust_follows_who_said_what_it_is_made_from(
    host: Host, owner: User, stranger: User, admin: User
) -> None:
    theirs = make_image(host, owner, reference=f"{INSIDE}/app:1")
    assert not desired(host, theirs).trusted_source
    answer = api_client(admin).patch(f"{IMAGES}{theirs.pk}/", {"reference": f"{INSIDE}/app:2"})
    assert answer.status_code == 200
    assert desired(host, theirs).trusted_source
    # Its owner may rename it, but answers for it once he changes what it is made from.
    client = api_client(owner)
    assert client.patch(f"{IMAGES}{theirs.pk}/", {"name": "other"}).status_code == 200
    assert desired(host, theirs).trusted_source
    answer = client.patch(f"{IMAGES}{theirs.pk}/", {"reference": f"{INSIDE}/app:3"})
    assert answer.status_code == 400
    # An editor of an administrator's image is no administrator.
    ours = make_image(host, admin, reference="registry.example.com/app:1")
    make_grant(ours, stranger, Role.EDITOR)
    body = {"reference": "registry.example.com/app:2"}
    assert api_client(stranger).patch(f"{IMAGES}{ours.pk}/", body).status_code == 200
    assert not desired(host, ours).trusted_source


def test_what_an_administrator_handed_over_goes_on(host: Host, owner: User, admin: User) -> None:
    image = make_image(host, admin, reference=f"{INSIDE}/app:1")
    answer = api_client(admin).post(f"{IMAGES}{image.pk}/transfer/", {"owner": owner.username})
    assert answer.status_code < 300
    assert desired(host, image).trusted_source


def test_a_stack_is_judged_by_who_chose_its_files(host: Host, owner: User, admin: User) -> None:
    wanted = {(f"{INSIDE}/app:1", "if_missing")}
    with pytest.raises(Invalid, match="TRAILER_REGISTRY_ALLOW"):
        places.images_of(Vouched(make_stack(host, owner), owner), wanted)
    with pytest.raises(Invalid, match="TRAILER_REGISTRY_ALLOW"):
        places.images_of(Vouched(make_stack(host, admin), owner), wanted)
    (found,) = places.images_of(Vouched(make_stack(host, admin), admin), wanted).values()
    assert desired(host, Image.objects.get(pk=found)).trusted_source


def test_every_host_learns_which_servers_administrators_stored(
    host: Host, admin: User, owner: User
) -> None:
    other = make_host()

    def versions() -> list[int]:
        rows = Host.objects.filter(pk__in=[host.pk, other.pk]).order_by("pk")
        return list(rows.values_list("desired_version", flat=True))

    def moved(call: Any) -> bool:
        before = versions()
        assert call().status_code < 300
        after = versions()
        assert (after[0] > before[0]) == (after[1] > before[1])
        return after > before

    client = api_client(admin)
    assert moved(lambda: client.post(REGISTRIES, {"server": INSIDE}))
    stored = client.get(REGISTRIES).json()["results"][0]["id"]
    assert moved(lambda: client.patch(f"{REGISTRIES}{stored}/", {"server": "localhost:5000"}))
    assert not moved(lambda: client.patch(f"{REGISTRIES}{stored}/", {"password": "x"}))
    assert host_state(other).trusted_registries == ("localhost:5000",)
    assert moved(lambda: client.delete(f"{REGISTRIES}{stored}/"))
    assert host_state(other).trusted_registries == ()
    # A member's is nobody else's business.
    assert not moved(
        lambda: api_client(owner).post(REGISTRIES, {"server": "registry.example.com"})
    )


def test_who_is_no_administrator_any_more_opens_nothing(host: Host) -> None:
    former = make_admin()
    make_registry(former, server=INSIDE)
    image = make_image(host, former, reference=f"{INSIDE}/app:1")
    former.is_superuser = False
    former.save()
    assert host_state(host).trusted_registries == ()
    assert not desired(host, image).trusted_source


def test_the_rule_of_the_server_is_the_agents() -> None:
    for server in HOSTILE:
        assert RegistryRule().problem(server.lower()), server
    for server in TAKEN:
        assert not RegistryRule().problem(server), server
