"""Clones of workspaces whose image is no pulled one: at home they share it, elsewhere not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import make_host, make_image
from trailer.errors import Invalid
from workspaces.models import Workspace
from workspaces.services import workspace_clone

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene


@pytest.mark.parametrize("kind", ["snapshot", "build"])
def test_on_the_same_host_the_clone_starts_from_the_same_image(scene: Scene, kind: str) -> None:
    image = make_image(scene.host, scene.owner, kind=kind)
    source = scene.create(image=str(image.pk))
    copy = workspace_clone(actor=scene.owner, workspace=source, data={"name": "copy"})
    assert (copy.image, copy.host) == (image, scene.host)


@pytest.mark.parametrize("kind", ["snapshot", "build"])
def test_on_another_host_it_says_that_the_image_is_not_there(scene: Scene, kind: str) -> None:
    other = make_host("other")
    image = make_image(scene.host, scene.owner, "mine", kind=kind)
    source = scene.create(image=str(image.pk))
    data = {"name": "copy", "host": str(other.pk)}
    with pytest.raises(Invalid) as caught:
        workspace_clone(actor=scene.owner, workspace=source, data=data)
    (sentence,) = caught.value.fields["host"]
    assert f"mine is of kind {kind} and exists only on its own host" in sentence
    assert Workspace.objects.count() == 1
