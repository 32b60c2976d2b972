"""Pages of images: list, form, and one image with its builds and log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Count
from django.shortcuts import get_object_or_404

from images.choices import BuildStatus, ImageKind, UpdatePolicy
from images.models import Image, Registry
from images.selectors import builds_of, check_refusal, update_available
from images.services.secrets import agent_problem, secret_names
from trailer import policy
from trailer.pages.access import access_context, may_share
from trailer.pages.host_choice import hosts_to_choose
from trailer.pages.page import PageView, list_page, query_without_part
from workspaces.models import Workspace

if TYPE_CHECKING:
    from django.db.models import QuerySet

_BUILDS_SHOWN = 50
_USERS_SHOWN = 50


class ImageListView(PageView):
    template_name = "images/list.html"
    parts: ClassVar = {"rows": "images/_rows.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        mine = Image.objects.visible_to(self.user)
        own = mine.with_role(self.user).select_related("host")
        rows = own.annotate(used_by=Count("workspaces"))
        search = self.request.GET.get("search", "").strip()
        if search:
            rows = rows.filter(name__icontains=search) | rows.filter(reference__icontains=search)
        status = self.request.GET.get("status", "")
        if status:
            rows = rows.filter(status=status)
        page = list_page(rows.order_by("name"), self.request)
        return super().get_context_data(
            page=page,
            images=page.object_list,
            any_at_all=bool(page.object_list) or mine.exists(),
            statuses=BuildStatus.choices,
            search=search,
            status=status,
            query=query_without_part(self.request.GET, "page"),
            **kwargs,
        )


class ImageCreateView(PageView):
    template_name = "images/new.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kind = self.request.GET.get("kind", "")
        return super().get_context_data(
            kind=kind if kind in (ImageKind.PULL, ImageKind.BUILD) else ImageKind.PULL,
            hosts=hosts_to_choose(self.user, "host.images"),
            registries=Registry.objects.visible_to(self.user),
            policies=UpdatePolicy.choices,
            chosen_host=self.request.GET.get("host", ""),
            **kwargs,
        )


class ImageView(PageView):
    template_name = "images/detail.html"
    parts: ClassVar = {
        "builds": "images/_builds.html",
        "facts": "images/_facts.html",
        "notices": "images/_notices.html",
        "access": "access/_grants.html",
        "users": "access/_users.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        rows = Image.objects.visible_to(self.user).with_role(self.user)
        rows = rows.select_related("host", "registry", "owner")
        image = get_object_or_404(rows, pk=kwargs["pk"])
        may_source = policy.allows(self.user, "image.source", image)
        builds = list(
            builds_of(actor=self.user, image=image)[:_BUILDS_SHOWN] if may_source else ()
        )
        newest = next(iter(builds), None)
        wanted = self.request.GET.get("build", "")
        chosen = next((row for row in builds if str(row.pk) == wanted), None)
        workspaces = Workspace.objects.visible_to(self.user)
        return super().get_context_data(
            image=image,
            may_source=may_source,
            verb=_verb(image),
            builds=builds,
            newest=newest,
            shown_build=chosen or newest,
            workspaces=workspaces.filter(image=image).order_by("name")[:_USERS_SHOWN],
            update_available=update_available(image),
            agent_problem=agent_problem(image.host, secret_names(image)) if may_source else "",
            is_watched=not check_refusal(image),
            policies=UpdatePolicy.choices,
            registries=Registry.objects.visible_to(self.user),
            **(access_context(self.user, image) if may_share(self.user, image) else {}),
            **_lineage(image, workspaces, Image.objects.visible_to(self.user)),
            **kwargs,
        )


def _verb(image: Image) -> str:
    """What one run of this image's making is called."""
    return "snapshot" if image.kind == ImageKind.SNAPSHOT else image.kind


def _lineage(
    image: Image, workspaces: QuerySet[Workspace], images: QuerySet[Image]
) -> dict[str, Any]:
    """Where a snapshot comes from, as far as that is still there and the user may see it; and
    which snapshots come from workspaces of this image."""
    workspace, source = image.source_workspace, image.source_image
    return {
        "source_workspace": workspaces.filter(pk=workspace).first() if workspace else None,
        "source_image": images.filter(pk=source).first() if source else None,
        "snapshots": images.filter(source_image=image.pk).order_by("-created_at")[:_USERS_SHOWN],
    }
