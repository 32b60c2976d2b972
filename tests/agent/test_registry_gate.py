"""A registry that a member names is asked by the agent first: where it leads, the engine goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.errors import FetchCancelled, FetchError, RegistryRefused
from agent.fetch.cancellation import Cancellation
from agent.fetch.client import HttpFetcher
from agent.fetch.registry import RegistryGate
from agent.protocol.registries import RegistryRule
from tests.agent.fake_fetch import FakeAnswer, FakeFetcher
from tests.agent.http_scene import PUBLIC, Listener, World, listening, redirects, says

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping, Sequence

NOBODY = RegistryRule()
REGISTRY = "https://reg.example"
DIGEST = "sha256:" + "a" * 64
OTHER_DIGEST = "sha256:" + "b" * 64


@pytest.fixture
def trap() -> Iterator[Listener]:
    """Listens on loopback only, and shall never be reached."""
    with listening(says(b"secret")) as found:
        yield found


# --- who is asked ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "rule"),
    [
        ("busybox", NOBODY),
        ("docker.io/library/busybox:1", NOBODY),
        ("index.docker.io/library/busybox:1", NOBODY),
        ("127.0.0.1:5000/app", None),
        ("127.0.0.1:5000/app", RegistryRule(trusted=("127.0.0.1:5000",))),
        ("LocalHost:5000/app", RegistryRule(trusted=("localhost:5000",))),
        ("127.0.0.1:5000/app", RegistryRule(allow=("127.0.0.1",))),
        ("127.0.0.1:5000/app", RegistryRule(allow=("127.0.0.1:5000",))),
        ("reg.example/app", RegistryRule(allow=("reg.example",))),
        ("reg.example/app", RegistryRule(allow=("http://reg.example",))),
        ("reg.example/app", RegistryRule(allow=("reg.example:443",))),
    ],
)
def test_what_an_administrator_chose_is_not_asked(ref: str, rule: RegistryRule | None) -> None:
    fetcher = FakeFetcher()
    RegistryGate(fetcher).reference(ref, rule)
    assert fetcher.requests == []


@pytest.mark.parametrize(
    "rule",
    [
        RegistryRule(trusted=("127.0.0.1:5001",)),
        RegistryRule(trusted=("127.0.0.1",)),
        RegistryRule(allow=("127.0.0.1:5001",)),
        RegistryRule(allow=("10.0.0.0/8", "reg.example")),
    ],
)
def test_another_server_is_not_trusted_with_it(rule: RegistryRule) -> None:
    with pytest.raises(RegistryRefused, match="TRAILER_REGISTRY_ALLOW"):
        RegistryGate(FakeFetcher()).reference("127.0.0.1:5000/app", rule)


def test_an_entry_that_means_nothing_opens_nothing() -> None:
    rule = RegistryRule(allow=("ftp://127.0.0.1",))
    with pytest.raises(RegistryRefused, match=r"an entry that means nothing: ftp://127\.0\.0\.1"):
        RegistryGate(FakeFetcher()).reference("reg.example/app", rule)


# --- what is asked, and in what order -------------------------------------------------------


def test_registry_realm_manifest_and_first_blob_are_asked() -> None:
    index = b'{"manifests": [{"digest": "%s"}]}' % OTHER_DIGEST.encode()
    manifest = b'{"config": {"digest": "%s"}}' % DIGEST.encode()
    realm = 'Bearer realm="https://auth.example/token",service="reg"'
    fetcher = FakeFetcher(
        {
            f"{REGISTRY}/v2/": FakeAnswer(status=401, headers={"www-authenticate": realm}),
            "https://auth.example/token": FakeAnswer(body=b'{"token": "anonymous"}'),
            f"{REGISTRY}/v2/team/app/manifests/1": FakeAnswer(body=index),
            f"{REGISTRY}/v2/team/app/manifests/{OTHER_DIGEST}": FakeAnswer(body=manifest),
            f"{REGISTRY}/v2/team/app/blobs/{DIGEST}": FakeAnswer(),
        }
    )
    RegistryGate(fetcher).reference("reg.example/team/app:1", NOBODY)
    assert [(each.url, each.authorization) for each in fetcher.requests] == [
        (f"{REGISTRY}/v2/", ""),
        ("https://auth.example/token?service=reg&scope=repository%3Ateam%2Fapp%3Apull", ""),
        (f"{REGISTRY}/v2/team/app/manifests/1", "Bearer anonymous"),
        (f"{REGISTRY}/v2/team/app/manifests/{OTHER_DIGEST}", "Bearer anonymous"),
        (f"{REGISTRY}/v2/team/app/blobs/{DIGEST}", "Bearer anonymous"),
    ]


def test_a_comparison_asks_for_the_manifest_and_no_more() -> None:
    manifest = b'{"config": {"digest": "%s"}}' % DIGEST.encode()
    fetcher = FakeFetcher(
        {
            f"{REGISTRY}/v2/": FakeAnswer(),
            f"{REGISTRY}/v2/app/manifests/latest": FakeAnswer(body=manifest),
        }
    )
    RegistryGate(fetcher).reference("reg.example/app", NOBODY, blobs=False)
    assert [each.url for each in fetcher.requests] == [
        f"{REGISTRY}/v2/",
        f"{REGISTRY}/v2/app/manifests/latest",
    ]


def test_a_realm_that_only_the_image_names_is_asked_once() -> None:
    realm = {"www-authenticate": 'Bearer realm="https://auth.example/token"'}
    fetcher = FakeFetcher(
        {
            f"{REGISTRY}/v2/": FakeAnswer(),
            f"{REGISTRY}/v2/app/manifests/latest": FakeAnswer(status=401, headers=realm),
            "https://auth.example/token": FakeAnswer(body=b'{"token": "anonymous"}'),
        }
    )
    RegistryGate(fetcher).reference("reg.example/app", NOBODY)
    assert [(each.url.partition("?")[0], each.authorization) for each in fetcher.requests] == [
        (f"{REGISTRY}/v2/", ""),
        (f"{REGISTRY}/v2/app/manifests/latest", ""),
        ("https://auth.example/token", ""),
        (f"{REGISTRY}/v2/app/manifests/latest", "Bearer anonymous"),
    ]


def test_signing_in_asks_for_no_image() -> None:
    fetcher = FakeFetcher({f"{REGISTRY}/v2/": FakeAnswer()})
    RegistryGate(fetcher).server("reg.example", NOBODY)
    assert [each.url for each in fetcher.requests] == [f"{REGISTRY}/v2/"]


def test_a_registry_that_does_not_answer_is_left_to_the_engine() -> None:
    fetcher = FakeFetcher()
    RegistryGate(fetcher).reference("reg.example:5000/app", NOBODY)
    assert [each.url for each in fetcher.requests] == [
        "https://reg.example:5000/v2/",
        "http://reg.example:5000/v2/",
    ]


def test_a_name_without_an_address_is_not_left_to_the_engine() -> None:
    fetcher = HttpFetcher(resolve=World({}, {}).resolve, own=list)
    with pytest.raises(RegistryRefused) as refused:
        RegistryGate(fetcher).reference("reg.example/app", NOBODY)
    assert str(refused.value) == (
        "The registry reg.example was not asked: the name reg.example can't be resolved on this "
        "host, so nobody can say where it leads. An administrator can list it in "
        "TRAILER_REGISTRY_ALLOW, or store the registry."
    )


def test_a_cancelled_question_is_no_answer() -> None:
    fetcher = FakeFetcher({f"{REGISTRY}/v2/": FakeAnswer()})
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(FetchCancelled):
        RegistryGate(fetcher).reference("reg.example/app", NOBODY, cancellation)


# --- hostile registries against a listener on loopback --------------------------------------

NAMES: Mapping[str, Sequence[str]] = {
    "localhost": ["127.0.0.1", "::1"],
    "private.test": ["127.0.0.1"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "six.test": ["::1"],
    "LocalReg": ["127.0.0.1"],
    "localreg": ["127.0.0.1"],
    "lan.test": ["10.0.0.7"],
    "cloud.test": ["169.254.169.254"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "own.test": ["93.184.216.36"],
    "hostile.test": [PUBLIC],
}
HOSTS = (
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1"),
    *("017700000001", "0.0.0.0", "localhost", "LOCALHOST", "app.localhost", "[::1]", "[::]"),
    *("[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("[fe80::1]", "[fd00::1]", "10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254"),
    *("168.63.129.16", "100.64.0.1", "private.test", "mixed.test", "mapped.test", "six.test"),
    *("LocalReg", "lan.test", "cloud.test", "nat64.test", "own.test", "unknown.test"),
)


def gate(world: World) -> RegistryGate:
    return RegistryGate(world.fetcher(own=["93.184.216.36"]))


@pytest.mark.parametrize("host", HOSTS)
def test_a_registry_inside_is_never_connected_to(host: str, trap: Listener) -> None:
    world = World(NAMES, {("93.184.216.36", trap.port): trap})
    with pytest.raises(RegistryRefused, match=r"REGISTRY_ALLOW|no valid host|no host with"):
        gate(world).server(f"{host}:{trap.port}", NOBODY)
    with pytest.raises(RegistryRefused):
        gate(world).reference(f"{host}:{trap.port}/app:1", NOBODY)
    assert world.connected == []
    assert trap.connections == 0


def test_a_public_address_of_this_host_is_called_so(trap: Listener) -> None:
    world = World(NAMES, {("93.184.216.36", 443): trap})
    with pytest.raises(RegistryRefused) as refused:
        gate(world).server("own.test", NOBODY)
    assert str(refused.value).startswith(
        "The registry own.test leads to 93.184.216.36, which is an address of this very host."
    )
    with pytest.raises(RegistryRefused) as refused:
        gate(world).server("93.184.216.36", NOBODY)
    assert str(refused.value).startswith(
        "The registry 93.184.216.36 is an address of this very host."
    )
    assert trap.connections == 0


def challenges(realm: str) -> str:
    return f"WWW-Authenticate: {realm}"


REALMS = (
    'Bearer realm="http://127.0.0.1:{port}/token"',
    'bearer service="x", realm="http://127.0.0.1:{port}/token",scope="y"',
    "Bearer realm=http://127.0.0.1:{port}/token",
    'Bearer realm="HTTP://LOCALHOST:{port}/token"',
    'Bearer realm="http://2130706433:{port}/token"',
    'Bearer realm="http://[::1]:{port}/token"',
    'Bearer realm="http://private.test:{port}/token"',
    'Bearer realm="http://user:word@127.0.0.1:{port}/token"',
    'Bearer realm="http\\://127.0.0.1:{port}/token"',
    'Basic realm="x", Bearer realm="http://127.0.0.1:{port}/token"',
    'Bearer realm="http://unknown.test/token"',
)


@pytest.mark.parametrize("realm", REALMS)
def test_a_realm_inside_is_never_asked(realm: str, trap: Listener) -> None:
    answer = says(b"", "401 Unauthorized", challenges(realm.format(port=trap.port)))
    with listening(answer) as server:
        world = World(NAMES, {(PUBLIC, 80): server})
        with pytest.raises(RegistryRefused, match=r"^The registry hostile\.test "):
            gate(world).server("hostile.test", NOBODY)
        with pytest.raises(RegistryRefused, match=r"^The registry hostile\.test "):
            gate(world).reference("hostile.test/app", NOBODY)
    assert trap.connections == 0
    assert all(head.startswith("GET /v2/ ") for head in server.heads)


@pytest.mark.parametrize("when", ["/v2/", "/token", "/manifests/", "/blobs/"])
def test_a_redirect_inside_is_followed_at_no_step(when: str, trap: Listener) -> None:
    manifest = b'{"config": {"digest": "%s"}}' % DIGEST.encode()

    def handle(held: socket.socket, head: bytes) -> None:
        path = head.decode().split()[1]
        if when in path and (when != "/v2/" or path == "/v2/"):
            redirects(f"http://localhost:{trap.port}/secret")(held, head)
        elif path == "/v2/" and b"uthorization" not in head:
            realm = 'Bearer realm="http://hostile.test/token"'
            says(b"", "401 Unauthorized", challenges(realm))(held, head)
        elif "/token" in path:
            says(b'{"access_token": "anonymous"}')(held, head)
        else:
            says(manifest)(held, head)

    with listening(handle) as server:
        world = World(NAMES, {(PUBLIC, 80): server})
        with pytest.raises(RegistryRefused) as refused:
            gate(world).reference("hostile.test/app", NOBODY)
    assert "sends those who ask it to localhost (127.0.0.1)" in str(refused.value)
    assert trap.connections == 0


def test_a_name_that_moves_between_two_questions_is_judged_each_time(trap: Listener) -> None:
    answers: Iterator[Sequence[str]] = iter([[PUBLIC], [PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
    with listening(says()) as server:
        world = World({}, {(PUBLIC, 80): server})
        fetcher = HttpFetcher(
            resolve=lambda host, port: next(answers), connect=world.connect, own=list
        )
        with pytest.raises(RegistryRefused, match=r"leads to 127\.0\.0\.1"):
            RegistryGate(fetcher).reference("moving.test/app", NOBODY)
    assert trap.connections == 0
    assert {address for address, _ in world.connected} == {PUBLIC}


def test_a_network_that_is_listed_opens_its_addresses_only(trap: Listener) -> None:
    with listening(redirects(f"http://127.0.0.1:{trap.port}/")) as server:
        world = World({"lan.test": ["10.0.0.7"]}, {("10.0.0.7", 80): server})
        with pytest.raises(RegistryRefused, match=r"to 127\.0\.0\.1, which is not"):
            gate(world).reference("lan.test/app", RegistryRule(allow=("10.0.0.0/8",)))
        assert len(server.heads) == 1
    assert trap.connections == 0


def test_no_more_than_a_few_realms_are_asked() -> None:
    realms = ", ".join(f'Bearer realm="https://auth.example/{n}"' for n in range(9))
    fetcher = FakeFetcher(
        {f"{REGISTRY}/v2/": FakeAnswer(status=401, headers={"www-authenticate": realms})}
    )
    with pytest.raises(RegistryRefused, match="more than 4 places"):
        RegistryGate(fetcher).server("reg.example", NOBODY)
    assert len(fetcher.requests) == 5


def test_slow_questions_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("agent.fetch.registry.clock.monotonic", lambda: now[0])
    fetcher = FakeFetcher({f"{REGISTRY}/v2/": FakeAnswer()})

    def takes_its_time() -> None:
        now[0] += 14.0

    fetcher.on_open = takes_its_time
    RegistryGate(fetcher).reference("reg.example/app", NOBODY)
    assert [each.limits.total for each in fetcher.requests] == [15.0, 15.0, 2.0]


def test_a_realm_that_gives_no_token_is_left_to_the_engine() -> None:
    realm = 'Bearer realm="https://auth.example/token"'
    fetcher = FakeFetcher(
        {
            f"{REGISTRY}/v2/": FakeAnswer(status=401, headers={"www-authenticate": realm}),
            "https://auth.example/token": FetchError("broken"),
        }
    )
    RegistryGate(fetcher).server("reg.example", NOBODY)
    assert len(fetcher.requests) == 2
