"""Users and groups, for administrators."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q

from trailer import policy
from trailer.accounts.models import User
from trailer.pages.page import PageView, list_page, query_without_part


class AdminPageView(PageView):
    """A page whose data only administrators may see; the rule says which."""

    rule: ClassVar[str]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if not policy.allows(self.user, self.rule):
            raise PermissionDenied
        return super().get_context_data(**kwargs)


class UserListView(AdminPageView):
    rule = "user.view"
    template_name = "users/list.html"
    parts: ClassVar = {
        "rows": "users/_rows.html",
        "groups": "users/_groups.html",
        "choice": "users/_group_choice.html",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        search = self.request.GET.get("search", "").strip()
        found = Q(username__icontains=search) | Q(email__icontains=search)
        # With a look-up through the groups alone, a user of two groups would be there twice.
        found |= Q(pk__in=User.objects.filter(groups__name__icontains=search).values("pk"))
        rows = User.objects.filter(found) if search else User.objects.all()
        page = list_page(rows.prefetch_related("groups").order_by("username"), self.request)
        groups = Group.objects.prefetch_related("user_set").annotate(
            grant_count=Count("grants", distinct=True)
        )
        return super().get_context_data(
            page=page,
            users=page.object_list,
            groups=groups.order_by("name"),
            search=search,
            query=query_without_part(self.request.GET, "page"),
            **kwargs,
        )
