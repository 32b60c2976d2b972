"""What every page shares: signed-in users only, partial answers for htmx, never cached."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.views.generic import TemplateView

if TYPE_CHECKING:
    from django.core.paginator import Page as ListPage
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponseRedirect, QueryDict
    from django.http.response import HttpResponseBase
    from django_htmx.middleware import HtmxDetails

    from trailer.accounts.models import User

    M = TypeVar("M", bound=Model)

ROWS_PER_PAGE = 50


class PageView(LoginRequiredMixin, TemplateView):
    """A page, or one of its parts when htmx asks for that part by name."""

    http_method_names = ["get", "head", "options"]  # noqa: RUF012
    # Name of a part, as in the request's `part`, and the template that draws it alone.
    parts: ClassVar[dict[str, str]] = {}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        # A page shows the state of a moment, to one user: neither a proxy nor the back button
        # may bring an older one up. Parts share the page's address.
        add_never_cache_headers(response)
        patch_vary_headers(response, ["HX-Request"])
        is_list = getattr(request, "htmx", False) and request.GET.get("part") == "rows"
        if is_list and response.status_code == HTTPStatus.OK:
            # The address follows the filters, so that a reload or a link shows the same list.
            query = query_without_part(request.GET)
            response.headers["HX-Replace-Url"] = (
                f"{request.path}?{query}" if query else request.path
            )
        return response

    def handle_no_permission(self) -> HttpResponseRedirect:
        """htmx would follow the redirect and put the sign-in page where the part belongs."""
        answer = super().handle_no_permission()
        htmx = cast("HtmxDetails | None", getattr(self.request, "htmx", None))
        if not htmx:
            return answer
        whole_page = redirect_to_login(htmx.current_url_abs_path or self.request.path)
        answer.status_code = HTTPStatus.UNAUTHORIZED
        del answer.headers["Location"]
        answer.headers["HX-Redirect"] = whole_page.url
        return answer

    @property
    def user(self) -> User:
        return cast("User", self.request.user)

    @property
    def is_part(self) -> bool:
        """Whether only a part of the page is asked for."""
        htmx = cast("HtmxDetails | None", getattr(self.request, "htmx", None))
        wanted = self.request.GET.get("part", "")
        return bool(htmx and not htmx.history_restore_request and wanted in self.parts)

    def get_template_names(self) -> list[str]:
        if self.is_part:
            return [self.parts[self.request.GET["part"]]]
        return super().get_template_names()


def query_without_part(given: QueryDict, *also: str) -> str:
    """The query of the page itself: no part, nothing empty, nothing of `also`."""
    kept = given.copy()
    for name in list(kept):
        if name in ("part", *also) or not kept[name]:
            del kept[name]
    return kept.urlencode()


def list_page(rows: QuerySet[M], request: HttpRequest) -> ListPage[M]:
    """One page of a list; a number that is not one, or too high, gives the nearest page."""
    return Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))
