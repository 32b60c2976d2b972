"""Golden plans: what is removed, what is only removed by order, and when the brake holds."""

from dataclasses import replace

from agent.observed import Attachment, ObservedVolume
from agent.plan import TombstoneFinding
from agent.protocol.spec import MountSpec
from agent.protocol.state import HostSettings, HostState
from tests.agent.bench import Bench
from tests.agent.documents import document, image, network, tombstone, volume, workspace

DATA = MountSpec(target="/data", source="trailer-data", volume_id="v-data")


def many(count: int) -> HostState:
    return document(workspaces=tuple(workspace(f"w{number}") for number in range(count)))


def test_a_deleted_workspace_is_stopped_and_removed_by_id(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(),)))
    container = bench.runtime.named("trailer-web")
    assert container is not None
    plan = bench.plan(document(tombstones=(tombstone("workspace", "w-web", "trailer-web"),)))
    old = container.short_id
    assert plan.render() == (
        f"1. stop_container 'web' ({old}): workspace was deleted {{cleanup}}\n"
        f"2. remove_container 'web' ({old}): workspace was deleted <- 1 {{cleanup}}"
    )
    assert plan.cleanup == "done"


def test_an_order_for_something_already_gone_is_reported_as_done(bench: Bench) -> None:
    orders = (
        tombstone("workspace", "w-web", "trailer-web"),
        tombstone("network", "n-lan", "trailer-lan"),
        tombstone("volume", "v-data", "trailer-data"),
        tombstone("image", "i-old", "old:1"),
    )
    plan = bench.plan(document(tombstones=orders))
    done = [f for f in plan.findings if isinstance(f, TombstoneFinding) and f.done]
    assert len(done) == 4
    assert plan.nodes == ()


def test_what_vanished_without_an_order_is_removed_while_it_is_little(bench: Bench) -> None:
    bench.settle(many(4))
    plan = bench.plan(many(2))
    assert plan.cleanup == "done"
    assert [n.step.name for n in plan.nodes if n.step.verb == "remove_container"] == ["w2", "w3"]


def test_the_brake_holds_when_most_of_the_host_vanishes_without_orders(bench: Bench) -> None:
    bench.settle(many(6))
    plan = bench.plan(many(1))
    assert plan.nodes == ()
    assert plan.cleanup == "held"
    assert plan.message.startswith("5 of 6 containers vanished")


def test_the_brake_lets_ordered_removals_pass(bench: Bench) -> None:
    bench.settle(many(6))
    orders = tuple(tombstone("workspace", f"w-w{n}", f"trailer-w{n}") for n in range(5))
    plan = bench.plan(document(workspaces=(workspace("w5"),), tombstones=orders))
    assert plan.cleanup == "done"
    assert len([n for n in plan.nodes if n.step.verb == "remove_container"]) == 5


def test_the_brake_opens_when_an_admin_confirms(bench: Bench) -> None:
    bench.settle(many(6))
    assert bench.plan(many(0), brake_released=True).cleanup == "done"


def test_a_state_that_went_back_in_time_removes_nothing(bench: Bench) -> None:
    bench.settle(many(4))
    plan = bench.plan(many(3), hold_removals="The state went back.")
    assert plan.nodes == ()
    assert plan.message == "The state went back. Nothing was removed (1 containers wait)."


def test_a_held_state_keeps_a_network_though_no_container_vanished(bench: Bench) -> None:
    bench.settle(document(networks=(network(),), workspaces=(workspace(),)))
    plan = bench.plan(document(workspaces=(workspace(),)), hold_removals="Restored.")
    assert plan.nodes == ()
    assert plan.cleanup == "held"
    assert plan.message == "Restored. Nothing was removed (1 networks wait)."


def test_a_held_state_in_which_nothing_vanished_holds_nothing(bench: Bench) -> None:
    bench.settle(document(networks=(network(),)))
    plan = bench.plan(document(networks=(network(),)), hold_removals="Restored.")
    assert (plan.cleanup, plan.message) == ("skipped", "")


def test_an_unwanted_network_goes_after_its_last_container(bench: Bench) -> None:
    bench.settle(document(networks=(network(),), workspaces=(workspace(network_ids=("n-lan",)),)))
    plan = bench.plan(document(tombstones=(tombstone("workspace", "w-web", "trailer-web"),)))
    assert [node.step.verb for node in plan.nodes] == [
        "stop_container",
        "remove_container",
        "remove_network",
    ]
    assert plan.nodes[2].after == (2,)


def test_a_network_that_is_still_used_is_kept_and_says_by_whom(bench: Bench) -> None:
    bench.settle(document(networks=(network(),)))
    lan = next(n for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    place = Attachment(network_id=lan.id, network_name=lan.name)
    bench.runtime.add_container("a-guest", attachments=(place,))
    plan = bench.plan(document(tombstones=(tombstone("network", "n-lan", "trailer-lan"),)))
    assert plan.nodes == ()
    assert "Still used by a-guest." in str(plan.findings)


def test_a_volume_is_never_removed_without_an_order(bench: Bench) -> None:
    bench.settle(document(volumes=(volume(),), workspaces=(workspace(mounts=(DATA,)),)))
    bench.settle(document())
    assert "trailer-data" in bench.runtime.volumes


def test_an_ordered_volume_goes_after_the_containers_that_mount_it(bench: Bench) -> None:
    bench.settle(document(volumes=(volume(),), workspaces=(workspace(mounts=(DATA,)),)))
    orders = (
        tombstone("workspace", "w-web", "trailer-web"),
        tombstone("volume", "v-data", "trailer-data"),
    )
    plan = bench.plan(document(tombstones=orders))
    assert plan.nodes[2].render() == (
        "3. remove_volume 'data' (trailer-data): volume was deleted <- 2 {cleanup}"
    )
    bench.settle(document(tombstones=orders))
    assert bench.runtime.volumes == {}


def test_a_foreign_volume_with_the_ordered_name_is_left(bench: Bench) -> None:
    bench.runtime.volumes["trailer-data"] = ObservedVolume(name="trailer-data")
    plan = bench.plan(document(tombstones=(tombstone("volume", "v-data", "trailer-data"),)))
    assert plan.nodes == ()


def test_an_image_is_removed_only_by_order_and_only_if_trailer_brought_it(bench: Bench) -> None:
    order = document(images=(), tombstones=(tombstone("image", "i-bb", "busybox:1"),))
    assert bench.plan(document(images=())).nodes == ()
    assert bench.plan(order).nodes == ()
    text = bench.plan(order, made_images=frozenset({"i-bb"})).render()
    assert text == "1. remove_image 'busybox:1' (busybox:1): image was deleted {cleanup}"


def test_an_image_still_in_the_document_is_not_removed(bench: Bench) -> None:
    order = document(images=(image(),), tombstones=(tombstone("image", "i-bb", "busybox:1"),))
    assert bench.plan(order, made_images=frozenset({"i-bb"})).nodes == ()


def test_a_new_workspace_waits_for_the_old_holder_of_its_name(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(id="w-old"),)))
    desired = document(
        workspaces=(workspace(id="w-new"),),
        tombstones=(tombstone("workspace", "w-old", "trailer-web"),),
    )
    plan = bench.plan(desired)
    assert [(n.step.verb, n.after, n.cleanup) for n in plan.nodes] == [
        ("stop_container", (), False),
        ("remove_container", (1,), False),
        ("create_container", (2,), False),
        ("start_container", (3,), False),
    ]
    bench.settle(desired)
    assert len(bench.runtime.containers) == 1


def test_a_disabled_host_stops_its_workspaces_and_keeps_them(bench: Bench) -> None:
    desired = document(workspaces=(workspace(),))
    bench.settle(desired)
    container = bench.runtime.named("trailer-web")
    off = document(workspaces=(workspace(),), settings=HostSettings(enabled=False))
    assert bench.cycle(off).nodes[0].step.cause == "host is disabled"
    assert "Host is disabled." in str(bench.plan(off).findings)
    assert bench.cycle(desired).nodes[0].step.cause == "start requested"
    assert bench.runtime.named("trailer-web").id == container.id  # type: ignore[union-attr]


def test_a_brake_that_held_stays_on_although_fewer_are_left(bench: Bench) -> None:
    bench.settle(many(6))
    held = bench.plan(many(1))
    few = bench.plan(many(4), latched=frozenset(held.held_workspaces))
    assert (few.cleanup, few.nodes) == ("held", ())
    assert bench.plan(many(4)).cleanup == "done"


def test_a_network_made_twice_loses_the_copy_that_nobody_uses(bench: Bench) -> None:
    wanted = document(networks=(network(),))
    bench.settle(wanted)
    (first,) = (n for n in bench.runtime.networks.values() if n.name == "trailer-lan")
    double = replace(first, id="f" * 64)
    bench.runtime.networks[double.id] = double
    plan = bench.plan(wanted)
    kept, gone = sorted((first.id, double.id))
    assert plan.render() == (
        f"1. remove_network 'lan' ({gone[:12]}): made twice by an interrupted cycle"
    )
    assert any(getattr(f, "engine_id", "") == kept for f in plan.findings)
