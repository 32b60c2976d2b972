"""Golden plans: whose container it is. Labels alone prove nothing, names alone neither."""

import msgspec
import pytest

from agent.observed import ObservedVolume
from agent.plan import Plan, ResourceFinding, WorkspaceFinding
from agent.protocol import naming
from agent.protocol.prerequisites import DesiredPrerequisite
from agent.protocol.spec import MountSpec
from agent.protocol.state import DesiredVolume
from tests.agent.bench import Bench
from tests.agent.documents import IMAGE_REF, document, network, tombstone, volume, workspace
from tests.agent.fake_server import HOST_ID

DESIRED = document(workspaces=(workspace(),))


def test_a_foreign_holder_of_our_name_is_named_and_left_alone(bench: Bench) -> None:
    holder = bench.runtime.add_container("trailer-web")
    plan = bench.plan(DESIRED)
    assert plan.nodes == ()
    (found,) = [f for f in plan.findings if isinstance(f, WorkspaceFinding)]
    assert found.status == "error"
    assert found.message == (
        f"The name trailer-web is held by container trailer-web ({holder[:12]}), "
        "which Trailer did not make; rename or remove it."
    )


def test_the_other_workspaces_go_on_beside_a_foreign_holder(bench: Bench) -> None:
    bench.runtime.add_container("trailer-web")
    plan = bench.plan(document(workspaces=(workspace(), workspace("shop"))))
    assert {node.step.name for node in plan.nodes} == {"shop"}


def test_copied_labels_with_a_wrong_signature_are_ignored(bench: Bench) -> None:
    labels = {
        naming.LABEL_MANAGED: "true",
        naming.LABEL_HOST: HOST_ID,
        naming.LABEL_WORKSPACE: "w-gone",
        naming.LABEL_SIGNATURE: "0" * 64,
    }
    bench.runtime.add_container("trailer-gone", labels=labels)
    assert bench.plan(document()).render() == "nothing to do"


def test_copied_labels_with_the_right_signature_under_another_name_are_ignored(
    bench: Bench,
) -> None:
    """A container started from a committed workspace inherits even the signature."""
    bench.settle(DESIRED)
    original = bench.runtime.named("trailer-web")
    assert original is not None
    bench.runtime.add_container("clever_turing", labels=original.labels)
    assert bench.plan(DESIRED).render() == "nothing to do"
    plan = bench.plan(document())
    assert [node.step.verb for node in plan.nodes] == ["stop_container", "remove_container"]
    assert all(original.short_id in node.render() for node in plan.nodes)


def test_a_signature_of_another_host_is_no_proof(bench: Bench) -> None:
    labels = {
        naming.LABEL_WORKSPACE: "w-web",
        naming.LABEL_SIGNATURE: naming.signature("other-key", "workspace", "w-web", HOST_ID),
    }
    bench.runtime.add_container("trailer-web", labels=labels)
    (found,) = [f for f in bench.plan(DESIRED).findings if isinstance(f, WorkspaceFinding)]
    assert found.status == "error"


def test_a_foreign_network_with_our_name_is_an_error_not_a_victim(bench: Bench) -> None:
    from_elsewhere = bench.runtime.networks["net-bridge"]
    bench.runtime.networks["net-x"] = type(from_elsewhere)(id="net-x", name="trailer-lan")
    from_document = document(networks=(network(),))
    plan = bench.plan(from_document)
    assert plan.nodes == ()
    assert "held by network net-x" in str(plan.findings)


OTHER_HOST = "22222222-2222-4222-8222-222222222222"
OF_OTHER = {naming.LABEL_MANAGED: "true", naming.LABEL_HOST: OTHER_HOST}
WHOSE = f"which belongs to another Trailer host ({OTHER_HOST})"


def messages(plan: Plan) -> list[str]:
    return [
        one.message for one in plan.findings if isinstance(one, WorkspaceFinding | ResourceFinding)
    ]


def test_a_name_that_another_trailer_host_holds_on_the_same_engine_is_said_to_be_its(
    bench: Bench,
) -> None:
    bridge = bench.runtime.networks["net-bridge"]
    theirs = type(bridge)(id="net-x", name="trailer-lan", labels=OF_OTHER)
    bench.runtime.networks["net-x"] = theirs
    bench.runtime.volumes["trailer-data"] = ObservedVolume(name="trailer-data", labels=OF_OTHER)
    holder = bench.runtime.add_container("trailer-web", labels=OF_OTHER)
    router = bench.runtime.add_container("trailer.router", labels=OF_OTHER)
    plan = bench.plan(
        document(
            networks=(network(),),
            volumes=(volume(),),
            workspaces=(workspace(),),
            prerequisites=(DesiredPrerequisite(kind="router", image=IMAGE_REF),),
        )
    )
    assert plan.nodes == ()
    told, delete = set(messages(plan)), "delete it there, or rename or remove it."
    assert told == {
        f"The name trailer-web is held by container trailer-web ({holder[:12]}), {WHOSE}; "
        + delete,
        f"The name trailer.router is held by container {router[:12]}, {WHOSE}; {delete}",
        f"The name trailer-lan is held by network net-x, {WHOSE}; {delete}",
        f"The name trailer-data is held by a volume, {WHOSE}; choose another name for this one.",
    }


@pytest.mark.parametrize("label", [HOST_ID, "", "Sunday\nevening", "x" * 500, f"{OTHER_HOST} "])
def test_a_label_that_names_no_other_host_makes_nobody_the_owner(bench: Bench, label: str) -> None:
    """Anybody can write labels; a copy of a workspace of this host has this host's."""
    bench.runtime.add_container("trailer-web", labels={naming.LABEL_HOST: label})
    (message,) = messages(bench.plan(DESIRED))
    assert message.endswith("which Trailer did not make; rename or remove it.")


def heir() -> DesiredVolume:
    """Another volume of the name that v-data had."""
    return msgspec.structs.replace(volume(), id="v-heir")


def test_a_volume_inherits_nothing_from_a_deleted_one_of_its_name(bench: Bench) -> None:
    """Deleted while the host was silent, and its name given to another user's volume."""
    bench.settle(document(volumes=(volume(),)))
    mount = MountSpec(target="/data", source="trailer-data", volume_id="v-heir")
    desired = document(
        volumes=(heir(),),
        workspaces=(workspace(mounts=(mount,)),),
        tombstones=(tombstone("volume", "v-data", "trailer-data"),),
    )
    first = bench.cycle(desired)
    assert [node.step.verb for node in first.nodes] == ["remove_volume"]
    (found,) = [f for f in first.findings if isinstance(f, ResourceFinding)]
    assert (found.status, found.engine_id) == ("pending", "")
    assert "v-data" not in found.message
    bench.settle(desired)
    labels = bench.runtime.volumes["trailer-data"].labels
    assert labels[naming.LABEL_VOLUME] == "v-heir"
    assert bench.runtime.named("trailer-web") is not None


def test_a_volume_that_nobody_ordered_to_remove_is_not_handed_on(bench: Bench) -> None:
    bench.settle(document(volumes=(volume(),)))
    plan = bench.plan(document(volumes=(heir(),)))
    assert plan.nodes == ()
    (found,) = [f for f in plan.findings if isinstance(f, ResourceFinding)]
    assert found.status == "error"
    assert "another volume" in found.message
