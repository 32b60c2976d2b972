"""What goes with an image that is handed over, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from images.models import Image
from images.services.images import image_build, image_update
from images.services.transfer import image_transfer
from tests.factories import make_group, make_image, make_registry, make_user
from tests.images.test_foreign_images import PRIVATE, desired, is_forced
from trailer.access.models import Quota
from trailer.audit.models import AuditEntry
from trailer.errors import Invalid, NotAllowed
from workspaces.control.compile import document_for

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
GIB = 1024**3


def fresh(image: Image) -> Image:
    return Image.objects.get(pk=image.pk)


def test_a_credential_stays_with_its_owner(host: Host, owner: User, stranger: User) -> None:
    registry = make_registry(owner)
    image = make_image(host, owner, reference=PRIVATE, registry=registry)
    etag = document_for(host.pk, "").etag
    assert desired(host, image).credential is not None
    image_transfer(actor=owner, image=image, owner="stan")
    assert (fresh(image).registry, fresh(image).revision) == (None, 2)
    assert desired(host, image).credential is None
    assert document_for(host.pk, etag).body is not None
    changes = AuditEntry.objects.get(action="image.transfer").changes
    assert [change["field"] for change in changes] == ["owner", "registry"]
    # Nor does the new owner get it back by naming it.
    with pytest.raises(NotAllowed):
        image_update(actor=stranger, image=fresh(image), registry=registry)
    # Nothing was pulled for that, and what is on the host stays.
    assert image.builds.count() == 1
    assert fresh(image).engine_id == image.engine_id


def test_a_credential_that_the_new_owner_may_use_stays(
    host: Host, owner: User, stranger: User, admin: User
) -> None:
    theirs = make_registry(stranger)
    image = make_image(host, owner, reference=PRIVATE, registry=theirs)
    image_transfer(actor=owner, image=image, owner="stan")
    assert (fresh(image).registry, fresh(image).revision) == (theirs, 1)


def test_what_was_fetched_with_it_is_still_not_for_everybody(
    host: Host, owner: User, stranger: User
) -> None:
    image = make_image(host, owner, reference=PRIVATE, registry=make_registry(owner))
    curious = make_image(host, make_user(), reference=PRIVATE, status="pending")
    image_transfer(actor=owner, image=image, owner="stan")
    assert is_forced(host, curious)


def test_nor_when_its_owner_takes_the_credential_away(host: Host, owner: User) -> None:
    image = make_image(host, owner, reference=PRIVATE, registry=make_registry(owner))
    curious = make_image(host, make_user(), reference=PRIVATE, status="pending")
    image_update(actor=owner, image=image, registry=None)
    assert is_forced(host, curious)
    image_update(actor=owner, image=fresh(image), reference="busybox:1")
    assert not is_forced(host, curious)


@pytest.mark.parametrize("kind", ["pull", "build"])
def test_an_image_is_no_letter_box_for_what_the_new_owner_may_read(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    """Its former owner stays on it, and would have what only the new one may have."""
    make_image(host, owner, reference=PRIVATE, registry=make_registry(owner))
    sources: dict[str, Any] = {
        "pull": {"reference": PRIVATE},
        "build": {"dockerfile": f"FROM {PRIVATE}"},
    }
    trap = make_image(host, stranger, kind=kind, status="pending", **sources[kind])
    image_transfer(actor=stranger, image=trap, owner="olga")

    def asks() -> bool:
        return is_forced(host, trap) if kind == "pull" else desired(host, trap).pull_base

    assert asks()
    # Who says anew what it is made from answers for that.
    again: dict[str, Any] = {
        "pull": {"reference": f"{PRIVATE}2"},
        "build": {"dockerfile": f"FROM {PRIVATE}\n"},
    }
    image_update(actor=owner, image=fresh(trap), **again[kind])
    assert not asks()
    image_update(actor=stranger, image=fresh(trap), **sources[kind])
    assert asks()


def test_a_disk_quota_must_have_room_for_all_of_it(
    host: Host, owner: User, stranger: User
) -> None:
    Quota.objects.create(user=stranger, disk_bytes=2 * GIB)
    make_image(host, stranger, size_bytes=GIB)
    small, large = (make_image(host, owner, size_bytes=size) for size in (GIB, GIB + 1))
    with pytest.raises(Invalid) as caught:
        image_transfer(actor=owner, image=large, owner="stan")
    assert caught.value.code == "quota_exceeded"
    assert caught.value.message.startswith("The quota of stan allows 2 GiB")
    image_transfer(actor=owner, image=small, owner="stan")
    unmade = make_image(host, owner, status="pending")
    with pytest.raises(Invalid):
        image_transfer(actor=owner, image=unmade, owner="stan")


def test_within_a_group_nothing_is_counted_twice(host: Host, owner: User, stranger: User) -> None:
    group = make_group(owner, stranger, name="lab")
    Quota.objects.create(group=group, disk_bytes=GIB)
    image = make_image(host, owner, size_bytes=GIB)
    image_transfer(actor=owner, image=image, owner="stan")
    assert fresh(image).owner == stranger


def test_the_new_owner_builds_it_again(host: Host, owner: User, stranger: User) -> None:
    image = make_image(host, owner)
    image_transfer(actor=owner, image=image, owner="stan")
    assert image_build(actor=stranger, image=fresh(image)).status == "pending"
