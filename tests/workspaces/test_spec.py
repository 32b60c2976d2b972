"""From rows to the spec that the agent compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol import naming
from agent.protocol.compare import normalise
from tests.factories import make_bind, make_capability, make_image
from tests.workspaces.scene import CANARY
from trailer.access.models import Capability
from workspaces.models import Workspace
from workspaces.selectors import with_parts
from workspaces.services import workspace_update
from workspaces.spec import WORKSPACE_PARTS, workspace_spec

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from tests.workspaces.scene import Scene


def test_the_spec_holds_every_field_in_normal_form(scene: Scene) -> None:
    spec = workspace_spec(scene.create_full())
    assert spec == normalise(spec)
    assert (spec.name, spec.command) == ("box", ("sleep", "infinity"))
    assert (spec.env, spec.secret_env) == ({"MODE": "test"}, {"PASSWORD": CANARY})
    assert (spec.cpus, spec.memory_bytes, spec.shm_bytes) == (1.5, 64 * 1024**2, 1024**2)
    assert [(port.container_port, port.host_port) for port in spec.ports] == [(80, 8080)]
    assert spec.network_ids == (str(scene.network.pk),)
    assert [(url.subdomain, url.domain) for url in spec.urls] == [("box", "example.com")]
    assert spec.health_check is not None
    assert (spec.health_check.test, spec.health_check.retries) == (("CMD", "true"), 3)
    assert spec.labels == {"team": "blue"}
    assert spec.image_engine_id == scene.image.engine_id


def test_a_volume_is_mounted_by_its_engine_name_and_a_bind_by_its_path(scene: Scene) -> None:
    make_capability(scene.host, scene.owner, Capability.BIND)
    bind = make_bind(scene.host, scene.owner, "/srv/models")
    mounts = [
        {"volume": str(scene.volume.pk), "target": "/data"},
        {"volume": str(bind.pk), "target": "/models", "read_only": True},
    ]
    spec = workspace_spec(scene.create(mounts=mounts))
    assert [(m.kind, m.source, m.read_only) for m in spec.mounts] == [
        ("volume", naming.volume_name("data"), False),
        ("bind", "/srv/models", True),
    ]


def test_a_pulled_image_goes_by_its_normal_reference_a_built_one_by_our_tag(scene: Scene) -> None:
    pulled = make_image(scene.host, scene.owner, reference="docker.io/library/busybox")
    built = make_image(scene.host, scene.owner, kind="build")
    workspace = scene.create(image=str(pulled.pk))
    assert workspace_spec(workspace).image_ref == "busybox:latest"
    workspace = workspace_update(
        actor=scene.owner, workspace=workspace, data={"image": str(built.pk)}
    )
    assert workspace_spec(workspace).image_ref == naming.build_ref(str(built.pk))


def test_prefetched_rows_need_no_further_query(
    scene: Scene, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    scene.create_full()
    rows = Workspace.objects.select_related("image").prefetch_related(*WORKSPACE_PARTS)
    (workspace,) = rows
    with django_assert_num_queries(0):
        workspace_spec(workspace)


def test_parts_are_read_in_a_fixed_number_of_queries(
    scene: Scene, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(3):
        scene.create(name=f"box-{n}", mounts=[{"volume": str(scene.volume.pk), "target": "/d"}])
    with django_assert_num_queries(8):
        assert len([workspace_spec(row) for row in with_parts(Workspace.objects.all())]) == 3
