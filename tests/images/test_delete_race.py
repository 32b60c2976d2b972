"""An image that goes while its build still writes; run on both databases."""

from __future__ import annotations

import threading

import pytest
from django.db import IntegrityError, connection, connections, transaction

from images.models import Build, Image
from images.services.images import image_delete
from images.services.logs import build_log_append
from tests.factories import make_admin, make_build, make_image
from tests.ground.wait import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def somebody_waits() -> bool:
    """For a lock of ours. SQLite can't tell, and there nobody gets any further than that."""
    if connection.vendor == "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_the_last_lines_of_a_build_do_not_keep_its_image_from_being_deleted() -> None:
    image, admin = make_image(), make_admin()
    build = make_build(image)
    outcome: list[object] = []

    def delete() -> None:
        try:
            image_delete(actor=admin, image=image)
            outcome.append("deleted")
        except IntegrityError as error:
            outcome.append(error)
        finally:
            connections.close_all()

    deletion = threading.Thread(target=delete)
    with transaction.atomic():
        build_log_append(image.host, build.pk, 0, b"the last line\n")
        deletion.start()
        eventually(somebody_waits, 10, "the deletion does not wait for the lines")
    deletion.join(30)
    assert outcome == ["deleted"]
    assert not Image.objects.exists()
    assert not Build.objects.exists()
