"""The upgrade to one reader of image references: what is stored goes on meaning what it meant."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from django.apps import apps

from agent.diff.stored import changes_since, read_stored, spec_labels
from agent.protocol import image_refs
from hosts.models import Host
from images.models import Image, Registry
from images.services.images import image_update
from tests.factories import make_image, make_registry, make_stack
from tests.images.test_refs import SHA
from workspaces.control.compile import host_state
from workspaces.models import Workspace
from workspaces.spec import workspace_spec
from workspaces.stacks.models import StackImage
from workspaces.stacks.sync.places import images_of
from workspaces.stacks.sync.vouching import Vouched

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene

KEY = "key"
_MIGRATION = importlib.import_module("images.migrations.0008_one_reference_parser")

# As stored; what agents were told for it, which is in the labels of their containers; the server
# that engines pull that from.
PULLED = [
    ("registry-1.docker.io/library/busybox", "busybox:latest", "docker.io"),
    ("Registry-1.Docker.IO/team/app:2", "team/app:2", "docker.io"),
    (f"registry-1.docker.io/team/app:2@{SHA}", f"team/app@{SHA}", "docker.io"),
    ("Docker.io/busybox", "busybox:latest", "docker.io"),
    ("INDEX.docker.io/library/busybox:1", "busybox:1", "docker.io"),
    ("LocalReg/app", "localreg/app:latest", "docker.io"),
    ("LocalReg:5000/app", "localreg:5000/app:latest", "localreg:5000"),
    ("GHCR.io/team/app:v1", "ghcr.io/team/app:v1", "ghcr.io"),
    ("[FC00::1]:5000/app", "[fc00::1]:5000/app:latest", "[fc00::1]:5000"),
    ("docker.io/ghcr.io/team/app", "ghcr.io/team/app:latest", "ghcr.io"),
    ("registry-1.docker.io/localhost/app", "localhost/app:latest", "localhost"),
    ("index.docker.io/ghcr.io/app:1", "ghcr.io/app:1", "ghcr.io"),
]
# These mean the same to both, and stay as somebody wrote them.
KEPT = [
    ("busybox", "busybox:latest"),
    ("library/busybox:1", "busybox:1"),
    ("index.docker.io/library/busybox", "busybox:latest"),
    ("docker.io/team/app", "team/app:latest"),
    (f"docker.io/team/app:1@{SHA}", f"team/app@{SHA}"),
    ("team/app.d/part", "team/app.d/part:latest"),
    ("docker.io/library/team/app", "library/team/app:latest"),
    ("ghcr.io/team/app", "ghcr.io/team/app:latest"),
    ("localhost/app", "localhost/app:latest"),
    ("localhost:5000/app:1", "localhost:5000/app:1"),
]


def migrate() -> None:
    _MIGRATION.rewrite(apps, None)


@pytest.mark.parametrize(("stored", "told"), [row[:2] for row in PULLED] + KEPT)
def test_no_container_is_replaced_and_nothing_is_pulled(
    scene: Scene, stored: str, told: str
) -> None:
    image = make_image(scene.host, scene.owner, reference=stored)
    workspace = scene.create(image=str(image.pk))
    before = msgspec.structs.replace(workspace_spec(workspace), image_ref=told, image_engine_id="")
    labels = spec_labels(before, revision=workspace.revision, host_key=KEY)
    migrate()
    after = workspace_spec(Workspace.objects.get(pk=workspace.pk))
    after = msgspec.structs.replace(after, image_engine_id="")
    known = read_stored(labels)
    for revision in (workspace.revision, workspace.revision + 1):
        assert not changes_since(known, after, revision=revision, host_key=KEY, router_mode="none")
    wanted = next(i for i in host_state(scene.host).images if i.id == str(image.pk))
    assert (wanted.ref, wanted.revision) == (told, image.revision)
    assert image.builds.count() == 1


@pytest.mark.parametrize(("stored", "told", "server"), PULLED)
def test_the_new_reader_reads_what_agents_were_told(
    scene: Scene, stored: str, told: str, server: str
) -> None:
    image = make_image(scene.host, scene.owner, reference=stored)
    migrate()
    image.refresh_from_db()
    assert image.reference == image_refs.normal(image.reference) == told
    assert image_refs.server_of(image.reference) == server


@pytest.mark.parametrize(("stored", "told"), KEPT)
def test_what_means_the_same_stays_as_somebody_wrote_it(
    scene: Scene, stored: str, told: str
) -> None:
    image = make_image(scene.host, scene.owner, reference=stored)
    migrate()
    image.refresh_from_db()
    assert (image.reference, image_refs.normal(stored)) == (stored, told)


def test_running_it_twice_changes_no_more(scene: Scene) -> None:
    for stored, _, _ in PULLED:
        make_image(scene.host, scene.owner, reference=stored)
    migrate()
    once = set(Image.objects.values_list("pk", "reference"))
    migrate()
    assert set(Image.objects.values_list("pk", "reference")) == once


def test_a_credential_stays_with_the_images_of_its_server_and_leaves_those_of_others(
    scene: Scene,
) -> None:
    hub = make_registry(scene.owner, server="docker.io")
    local = make_registry(scene.owner, server="localreg")
    of_hub = make_image(
        scene.host, scene.owner, reference="registry-1.docker.io/team/app", registry=hub
    )
    of_host = make_image(scene.host, scene.owner, reference="LocalReg/app", registry=local)
    migrate()
    of_hub.refresh_from_db()
    of_host.refresh_from_db()
    assert (of_hub.registry, of_hub.is_private) == (hub, False)
    # Agents pulled it from the Hub, without this credential; others still may not just have it.
    assert (of_host.registry, of_host.is_private) == (None, True)
    image_update(actor=scene.owner, image=of_hub, name="renamed")
    image_update(actor=scene.owner, image=of_host, reference="LocalReg/app", registry=local)
    wanted = next(i for i in host_state(scene.host).images if i.id == str(of_host.pk))
    assert wanted.credential is not None
    assert image_refs.credential_fits(wanted.ref, wanted.credential.server)


def test_a_build_is_pushed_with_the_hubs_credential_to_the_hub(scene: Scene) -> None:
    hub = make_registry(scene.owner, server="docker.io")
    stored = {
        "registry-1.docker.io/team/app:1": "docker.io/team/app:1",
        "Docker.io/team/app": "docker.io/team/app",
        "registry-1.docker.io/ghcr.io/app": "docker.io/ghcr.io/app",
        # Never sent to the Hub as `localreg/app`: that is another's name there.
        "LocalReg/team/app": "LocalReg/team/app",
        "GHCR.io/team/app:1": "GHCR.io/team/app:1",
        "docker.io/team/app": "docker.io/team/app",
    }
    images = {
        ref: make_image(scene.host, scene.owner, kind="build", reference=ref, push=True)
        for ref in stored
    }
    Image.objects.filter(reference__endswith=".docker.io/team/app:1").update(registry=hub)
    migrate()
    for image in images.values():
        image.refresh_from_db()
    assert {ref: image.reference for ref, image in images.items()} == stored
    assert images["registry-1.docker.io/team/app:1"].registry == hub


def test_two_credentials_that_become_one_servers_both_stay_and_the_chosen_one_stays_chosen(
    scene: Scene,
) -> None:
    first = make_registry(scene.owner, server="docker.io", username="chosen")
    other = make_registry(scene.owner, server="registry-1.docker.io", username="newer")
    third = make_registry(scene.owner, server="INDEX.docker.io", username="newest")
    image = make_image(scene.host, scene.owner, reference="team/app", registry=other)
    Registry.objects.filter(pk=third.pk).update(updated_at=third.updated_at + timedelta(days=1))
    stack = make_stack(scene.host, scene.owner)
    assert Vouched(stack, scene.owner).registry("docker.io") == first
    passwords = set(Registry.objects.values_list("pk", "password_token"))
    migrate()
    assert set(Registry.objects.values_list("server", flat=True)) == {"docker.io"}
    assert set(Registry.objects.values_list("pk", "password_token")) == passwords
    assert Vouched(stack, scene.owner).registry("docker.io") == first
    first.refresh_from_db()
    assert first.username == "chosen"
    image.refresh_from_db()
    assert image.registry == other
    # Without the chosen one it is the newer of the rest.
    first.delete()
    assert Vouched(stack, scene.owner).registry("docker.io") == third


def test_a_credential_in_capital_letters_goes_on_serving_its_host(scene: Scene) -> None:
    registry = make_registry(scene.owner, server="GHCR.io")
    migrate()
    registry.refresh_from_db()
    assert registry.server == "ghcr.io"
    stack = make_stack(scene.host, scene.owner)
    assert Vouched(stack, scene.owner).registry("GHCR.io") == registry


def test_a_stacks_image_keeps_its_row_though_the_file_spells_it_otherwise(scene: Scene) -> None:
    stack = make_stack(scene.host, scene.owner)
    hub = make_registry(scene.owner, server="docker.io")
    make_registry(scene.owner, server="registry-1.docker.io")
    stored = "registry-1.docker.io/team/app:1"
    image = make_image(scene.host, scene.owner, reference=stored)
    StackImage.objects.create(stack=stack, reference=stored, image=image)
    Registry.objects.filter(server="registry-1.docker.io").delete()
    migrate()
    own = make_registry(scene.owner, server="registry-1.docker.io")
    found = images_of(Vouched(stack, scene.owner), {(stored, "if_missing")})
    assert list(found.values()) == [image.pk]
    kept = Image.objects.get(pk=image.pk)
    assert kept.reference == "team/app:1"
    assert kept.registry == hub != own


def test_every_host_gets_a_document_made_from_the_new_spellings(scene: Scene) -> None:
    before = Host.objects.get(pk=scene.host.pk).desired_version
    migrate()
    assert Host.objects.get(pk=scene.host.pk).desired_version == before + 1
