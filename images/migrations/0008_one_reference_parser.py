"""Spells references and credentials' servers so that they mean what they meant to engines so far.

Server and agent read references differently: the server took `registry-1.docker.io` for Docker Hub
and made small letters of every server, then told agents the result. With one reader for both,
which follows the engines' grammar, such a text would name another image, and workspaces would be
replaced. So what agents were told becomes the reference: nothing is pulled, and no revision rises.
"""

from datetime import timedelta
from typing import Any

from django.db import migrations
from django.db.models import F

_HUB = "docker.io"
_HUB_NAMES = {_HUB, "index.docker.io"}
_HUB_ALIASES = {*_HUB_NAMES, "registry-1.docker.io"}


def rewrite(apps: Any, schema_editor: Any) -> None:
    del schema_editor
    _credentials(apps.get_model("images", "Registry").objects)
    images = apps.get_model("images", "Image").objects
    rows = images.exclude(reference="").select_related("registry")
    for image in list(rows.only("kind", "reference", "host_id", "registry__server")):
        told, server = as_told(image.reference)
        if image.kind == "pull" and told != image.reference and not _is_plain(image.reference):
            columns: dict[str, Any] = {"reference": told}
            if image.registry is not None and image.registry.server != server:
                # Agents never sent it: it is for another server than what they pulled from.
                columns |= {"registry": None, "is_private": True}
        elif image.kind == "build" and _is_alias(image.reference):
            # Where a build is pushed. Agents were told the text itself, and it had to have the
            # Hub's credential, which they then did not send.
            columns = {"reference": f"{_HUB}/{_split(image.reference)[1]}"}
        else:
            continue
        images.filter(pk=image.pk).update(**columns)
    # Their documents are made again; one with the same content is no news to its agent.
    apps.get_model("hosts", "Host").objects.update(desired_version=F("desired_version") + 1)


def _credentials(registries: Any) -> None:
    """Two for one server both stay, each with its images; where Trailer chooses by server, which
    takes the newest, it goes on choosing the one it chose."""
    for row in list(registries.order_by("-updated_at", "pk")):
        server = row.server.strip().lower()
        server = _HUB if server in _HUB_ALIASES else server
        if server == row.server:
            continue
        others = registries.filter(server=server).order_by("updated_at")
        oldest = others.values_list("updated_at", flat=True).first()
        updated = row.updated_at
        if oldest is not None:
            updated = min(updated, oldest - timedelta(microseconds=1))
        registries.filter(pk=row.pk).update(server=server, updated_at=updated)


def as_told(reference: str) -> tuple[str, str]:
    """What agents were told until now, and the server that engines take that text to name."""
    name, _, digest = reference.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    first, path = _split(f"{head}{slash}{last}")
    server = first.lower()
    if server in _HUB_ALIASES:
        server, path = _HUB, path if "/" in path else f"library/{path}"
    short = f"{server}/{path}"
    if server == _HUB:
        short = path.removeprefix("library/") if path.count("/") == 1 else path
    told = f"{short}@{digest}" if digest else f"{short}:{tag or 'latest'}"
    means = _split(short)[0]
    return told, _HUB if means in _HUB_NAMES else means


def _is_plain(reference: str) -> bool:
    """The new reader makes of it what agents were told."""
    server, path = _split(reference)
    if server in _HUB_NAMES:
        return "/" not in path or _split(path.partition("@")[0])[0] == _HUB
    return server == server.lower() and server not in _HUB_ALIASES


def _is_alias(reference: str) -> bool:
    """The Hub for the server alone."""
    server = _split(reference)[0]
    return server.lower() in _HUB_ALIASES and server not in _HUB_NAMES


def _split(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    is_server = "." in first or ":" in first or first == "localhost" or first != first.lower()
    return (first, rest) if slash and is_server else (_HUB, name)


class Migration(migrations.Migration):
    dependencies = [("images", "0007_snapshot_maker"), ("hosts", "0014_metadata_guard")]

    operations = [migrations.RunPython(rewrite, migrations.RunPython.noop)]
