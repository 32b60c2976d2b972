"""Golden plans: what each change of a workspace does to its container (the table of effects)."""

from typing import Any

import pytest

from agent.protocol.spec import GpuSpec, HealthCheckSpec, MountSpec, PortSpec, UrlSpec
from agent.protocol.state import DesiredWorkspace, HostSettings, HostState, RouterSettings
from tests.agent.bench import Bench
from tests.agent.documents import document, image, network, volume, workspace

HEALTH = HealthCheckSpec(test=("CMD", "true"))
DATA = MountSpec(target="/d", source="trailer-data", volume_id="v-data")


def host(*workspaces: DesiredWorkspace, **lists: Any) -> HostState:
    given = {"networks": (network(), network("dmz")), "volumes": (volume(),), **lists}
    return document(workspaces=workspaces, **given)


def deployed(bench: Bench, **fields: Any) -> str:
    """A running workspace `web`; the id of its container."""
    bench.settle(host(workspace(**fields)))
    container = bench.runtime.named("trailer-web")
    assert container is not None
    return container.id


def edited(bench: Bench, **fields: Any) -> str:
    """The plan after an edit, with the container's id replaced by OLD."""
    plan = bench.plan(host(workspace(revision=2, **fields)))
    old = bench.runtime.named("trailer-web")
    text = plan.render()
    return text.replace(old.short_id, "OLD") if old else text


REPLACED = """\
1. create_container 'web' (trailer-web-next): changed: {field}
2. stop_container 'web' (OLD): changed: {field} <- 1
3. start_container 'web' (#1): changed: {field} <- 2
4. wait_healthy 'web' (#1): changed: {field} <- 3
5. remove_container 'web' (OLD): changed: {field} <- 4
6. rename_container 'web' (#1 to trailer-web): changed: {field} [{field}] <- 5
7. remove_container 'web' (#1): the replacement did not come up; the old container stays if 1 fails
8. stop_container 'web' (#1): the replacement did not come up if 2, 3, 4 fails
9. remove_container 'web' (#1): the replacement did not come up <- 8 if 2, 3, 4 fails
10. start_container 'web' (OLD): the replacement did not come up <- 9 if 2, 3, 4 fails"""


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("cpus", {"cpus": 0.5}),
        ("memory_bytes", {"memory_bytes": 64 * 2**20}),
        ("shm_bytes", {"shm_bytes": 2**20}),
        ("env", {"env": {"A": "1"}}),
        ("secret_env", {"secret_env": {"PASSWORD": "x"}}),
        ("ports", {"ports": (PortSpec(container_port=80, host_port=8080),)}),
        (
            "mounts",
            {"mounts": (MountSpec(target="/d", source="trailer-data", volume_id="v-data"),)},
        ),
        ("gpus", {"gpus": GpuSpec(count=1)}),
        ("nested_virtualization", {"nested_virtualization": True}),
        ("command", {"command": ("sleep", "1")}),
        ("health_check", {"health_check": HealthCheckSpec(test=("CMD", "false"))}),
        ("labels", {"labels": {"team": "a"}}),
    ],
)
def test_a_change_that_needs_a_new_container_replaces_it(
    bench: Bench, field: str, change: dict[str, Any]
) -> None:
    deployed(bench)
    # A health check in the new spec alone makes the replace free of downtime: see below.
    if field == "health_check":
        change["ports"] = (PortSpec(container_port=80, host_port=8080),)
        field = "ports, health_check"
    assert edited(bench, **change) == REPLACED.format(field=field)


def test_another_image_reference_replaces_the_container(bench: Bench) -> None:
    deployed(bench)
    bench.runtime.add_image("nginx:2")
    assert "changed: image [image]" in edited(bench, image_ref="nginx:2", image_id="")


def test_another_reference_waits_for_its_content(bench: Bench) -> None:
    """Until it is fetched the server still names the old content: nothing is to be replaced."""
    deployed(bench)
    held = bench.runtime.inspect_image("busybox:1").id
    assert edited(bench, image_ref="nginx:2", image_engine_id=held) == "nothing to do"
    new = bench.runtime.add_image("nginx:2")
    text = edited(bench, image_ref="nginx:2", image_engine_id=new)
    assert text == REPLACED.format(field="image")


def test_a_rebuilt_image_replaces_the_container_although_the_reference_is_the_same(
    bench: Bench,
) -> None:
    deployed(bench)
    new = bench.runtime.add_image("busybox:1", image_id="sha256:new")
    text = edited(bench, image_engine_id=new)
    assert text == REPLACED.format(field="image")


def test_an_image_id_the_engine_does_not_have_changes_nothing(bench: Bench) -> None:
    deployed(bench)
    assert edited(bench, image_engine_id="sha256:elsewhere") == "nothing to do"


def test_redeploy_replaces_the_container_although_nothing_else_moved(bench: Bench) -> None:
    deployed(bench)
    text = edited(bench, generation=1)
    assert "1. create_container 'web' (trailer-web-next): redeploy requested\n" in text
    assert "(#1 to trailer-web): redeploy requested [redeploy]" in text


def test_with_a_health_check_and_no_host_port_the_replace_has_no_downtime(bench: Bench) -> None:
    deployed(bench, health_check=HEALTH, network_ids=("n-lan",))
    lan = next(n.id for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    text = edited(bench, health_check=HEALTH, network_ids=("n-lan",), env={"A": "2"})
    assert text.replace(lan, "LAN") == (
        "1. create_container 'web' (trailer-web-next on LAN): changed: env\n"
        "2. start_container 'web' (#1): changed: env <- 1\n"
        "3. wait_healthy 'web' (#1): changed: env <- 2\n"
        "4. disconnect_network 'web' (#1 from LAN): changed: env <- 3\n"
        "5. connect_network 'web' (#1 to LAN as web): changed: env <- 4\n"
        "6. disconnect_network 'web' (OLD from LAN): changed: env <- 5\n"
        "7. connect_network 'web' (OLD to LAN): changed: env <- 6\n"
        "8. stop_container 'web' (OLD): changed: env <- 7\n"
        "9. remove_container 'web' (OLD): changed: env <- 8\n"
        "10. rename_container 'web' (#1 to trailer-web): changed: env [env] <- 9\n"
        "11. remove_container 'web' (#1): the replacement did not come up; "
        "the old container stays if 1, 2, 3, 4, 5, 6, 7 fails"
    )


def test_a_container_that_may_be_replaced_side_by_side_has_a_hostname_of_its_own(
    bench: Bench,
) -> None:
    """The engine's DNS answers to hostnames: callers must not find a container not ready yet."""
    container_id = deployed(bench, health_check=HEALTH, network_ids=("n-lan",))
    assert bench.runtime.requests[container_id].hostname == "web-r1"
    plain = document(workspaces=(workspace("plain"),))
    bench.settle(plain)
    made = bench.runtime.named("trailer-plain")
    assert made is not None
    assert made.hostname == "plain"


def test_an_old_container_whose_hostname_is_the_alias_leaves_the_network_to_drain(
    bench: Bench,
) -> None:
    deployed(bench, network_ids=("n-lan",))
    lan = next(n.id for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    text = edited(bench, health_check=HEALTH, network_ids=("n-lan",)).replace(lan, "LAN")
    assert (
        "6. disconnect_network 'web' (OLD from LAN): changed: health_check <- 5\n7. stop" in text
    )


def test_a_fixed_host_port_rules_a_replace_without_downtime_out(bench: Bench) -> None:
    ports = (PortSpec(container_port=80, host_port=8080),)
    deployed(bench, health_check=HEALTH, ports=ports)
    text = edited(bench, health_check=HEALTH, ports=ports, env={"A": "2"})
    assert text == REPLACED.format(field="env")


def test_a_network_is_attached_and_detached_in_place(bench: Bench) -> None:
    deployed(bench, network_ids=("n-lan",))
    ids = {n.name: n.id for n in bench.runtime.networks.values()}
    text = edited(bench, network_ids=("n-dmz",))
    text = text.replace(ids["trailer-dmz"], "DMZ").replace(ids["trailer-lan"], "LAN")
    assert text == (
        "1. connect_network 'web' (OLD to DMZ as web): networks changed [networks]\n"
        "2. disconnect_network 'web' (OLD from LAN): networks changed [networks] <- 1"
    )


def test_a_workspace_that_loses_its_last_network_goes_to_the_default_bridge(bench: Bench) -> None:
    deployed(bench, network_ids=("n-lan",))
    lan = next(n.id for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    assert edited(bench).replace(lan, "LAN") == (
        "1. connect_network 'web' (OLD to net-bridge): networks changed\n"
        "2. disconnect_network 'web' (OLD from LAN): networks changed [networks] <- 1"
    )


def test_a_rename_happens_in_place(bench: Bench) -> None:
    container_id = deployed(bench)
    renamed = workspace("shop", id="w-web", revision=2)
    plan = bench.plan(host(renamed))
    assert plan.render().replace(container_id[:12], "OLD") == (
        "1. rename_container 'shop' (OLD to trailer-shop): name changed [name]"
    )


def test_a_stopped_container_is_renamed_too_so_that_its_old_name_is_free(bench: Bench) -> None:
    container_id = deployed(bench)
    bench.settle(host(workspace(desired_state="stopped", revision=2)))
    renamed = workspace("shop", id="w-web", desired_state="stopped", revision=3)
    newcomer = workspace("web", id="w-newcomer")
    assert bench.plan(host(renamed)).render().replace(container_id[:12], "OLD") == (
        "1. rename_container 'shop' (OLD to trailer-shop): name changed [name]"
    )
    bench.settle(host(renamed, newcomer))
    names = {each.name: each.state for each in bench.runtime.containers.values()}
    assert names == {"trailer-shop": "exited", "trailer-web": "running"}


URL = UrlSpec(subdomain="web", domain="example.test", port=80)


def test_a_route_changes_nothing_on_the_container_with_route_files(bench: Bench) -> None:
    deployed(bench)
    assert edited(bench, urls=(URL,)) == "nothing to do"


def test_a_route_replaces_the_container_when_routes_are_labels(bench: Bench) -> None:
    deployed(bench)
    settings = HostSettings(router=RouterSettings(mode="traefik-labels"))
    plan = bench.plan(
        document(workspaces=(workspace(revision=2, urls=(URL,)),), settings=settings)
    )
    assert "changed: urls [urls]" in plan.render()


def test_order_spelling_and_defaults_never_matter(bench: Bench) -> None:
    ports = (PortSpec(container_port=80), PortSpec(container_port=22))
    env = {"A": "1", "B": "2"}
    deployed(bench, ports=ports, env=env, network_ids=("n-lan", "n-dmz"), cpus=1, gpus=None)
    text = edited(
        bench,
        ports=ports[::-1],
        env=dict(reversed(env.items())),
        network_ids=("n-dmz", "n-lan", "n-dmz"),
        cpus=1.0,
        gpus=GpuSpec(),
        shm_bytes=None,
    )
    assert text == "nothing to do"


def test_stop_and_start_keep_the_container(bench: Bench) -> None:
    container_id = deployed(bench)
    stopped = host(workspace(desired_state="stopped", revision=2))
    text = bench.cycle(stopped).render().replace(container_id[:12], "OLD")
    assert text == "1. stop_container 'web' (OLD): stop requested"
    text = edited(bench)
    assert text == "1. start_container 'web' (OLD): start requested"
    assert bench.runtime.named("trailer-web").id == container_id  # type: ignore[union-attr]


def test_a_rename_and_a_stop_at_once_are_one_plan_and_nobody_elses_doing(bench: Bench) -> None:
    container_id = deployed(bench)
    renamed = workspace("shop", id="w-web", desired_state="stopped", revision=3)
    text = bench.cycle(host(renamed)).render().replace(container_id[:12], "OLD")
    assert text.splitlines() == [
        "1. stop_container 'shop' (OLD): stop requested",
        "2. rename_container 'shop' (OLD to trailer-shop): name changed [name] <- 1",
    ]
    assert bench.plan(host(renamed)).render() == "nothing to do"


def test_a_change_of_a_stopped_workspace_waits_until_it_is_started(bench: Bench) -> None:
    deployed(bench)
    bench.settle(host(workspace(desired_state="stopped", revision=2)))
    changed = workspace(desired_state="stopped", revision=3, env={"A": "1"})
    assert bench.plan(host(changed)).render() == "nothing to do"
    started = workspace(revision=4, env={"A": "1"})
    text = bench.plan(host(started)).render()
    assert [line for line in text.splitlines() if "stop_container" in line] == [
        "6. stop_container 'web' (#1): the replacement did not come up if 1, 2, 3 fails"
    ]
    assert "changed: env [env]" in text


def test_a_secret_is_shown_only_as_a_mask(bench: Bench) -> None:
    deployed(bench, secret_env={"PASSWORD": "old-secret"})
    plan = bench.plan(
        document(workspaces=(workspace(revision=2, secret_env={"PASSWORD": "new-secret"}),))
    )
    shown = repr(plan)
    assert "new-secret" not in shown
    assert "old-secret" not in shown
    changes = [change for node in plan.nodes for change in node.step.changes]
    assert [(c.field, c.old, c.new) for c in changes] == [
        ("secret_env", {"PASSWORD": "•••"}, {"PASSWORD": "•••"})
    ]


def test_a_waiting_image_keeps_the_old_container_running(bench: Bench) -> None:
    deployed(bench)
    other = image("next", ref="trailer/next:latest", kind="build", done=False)
    plan = bench.plan(
        host(
            workspace(revision=2, image_ref=other.ref, image_id=other.id),
            images=(image(), other),
        ),
        running_builds={other.id: "b-next"},
    )
    assert plan.nodes == ()
    (status,) = [f for f in plan.findings if getattr(f, "workspace_id", "") == "w-web"]
    assert status.status == "deployment_pending"  # type: ignore[union-attr]
    assert status.message == "Waiting for image next."  # type: ignore[union-attr]


def test_an_engine_that_broke_off_once_is_no_error_of_the_workspace(bench: Bench) -> None:
    deployed(bench)
    changed = host(workspace(revision=2, env={"MODE": "two"}), images=(image(),))
    plan = bench.plan(changed, held={"workspace:w-web": ""})
    assert plan.nodes == ()
    assert [f for f in plan.findings if getattr(f, "workspace_id", "") == "w-web"] == []
    told = bench.plan(changed, held={"workspace:w-web": "No answer."}).findings
    (status,) = [f for f in told if getattr(f, "workspace_id", "") == "w-web"]
    assert (status.status, status.message) == ("error", "No answer.")  # type: ignore[union-attr]


WEB = PortSpec(container_port=80, host_port=8080)
WEB_IPV4 = PortSpec(container_port=80, host_port=8080, host_ip="0.0.0.0")


def test_an_address_that_the_engine_chose_itself_is_no_difference(bench: Bench) -> None:
    bench.runtime.publishes_ipv6 = False
    deployed(bench, ports=(WEB,))
    assert edited(bench, ports=(WEB_IPV4,)) == "nothing to do"


@pytest.mark.parametrize(("before", "after"), [(WEB, WEB_IPV4), (WEB_IPV4, WEB)])
def test_giving_up_or_getting_ipv6_takes_a_new_container(
    bench: Bench, before: PortSpec, after: PortSpec
) -> None:
    deployed(bench, ports=(before,))
    assert edited(bench, ports=(after,)) == REPLACED.format(field="ports")
