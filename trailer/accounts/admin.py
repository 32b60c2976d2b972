"""Admin pages of users, groups and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group

from trailer import policy
from trailer.accounts.administration import (
    group_create,
    group_delete,
    group_update,
    user_create,
    user_delete,
    user_update,
)
from trailer.accounts.models import ApiToken, Session, User
from trailer.accounts.services import token_create, token_delete, token_update
from trailer.service_admin import ReadOnlyAdmin, ServiceAdmin, ServiceForm

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest


class UserForm(ServiceForm):
    is_admin = forms.BooleanField(required=False, label="Administrator")
    password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Never shown. Leave it empty to keep the present one.",
    )

    class Meta:
        model = User
        fields = ("username", "email", "is_active", "groups")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["is_admin"].initial = self.instance.is_superuser
        # The column of the same name holds the hash; it is nobody's business.
        self.initial.pop("password", None)

    def _post_clean(self) -> None:
        """The typed password must not land in the column of hashes."""
        password = self.cleaned_data.pop("password", "")
        super()._post_clean()  # type: ignore[misc]
        self.cleaned_data["password"] = password

    def given(self) -> Any:
        names = ("username", "email", "password", "is_admin", "is_active")
        given = {name: self.cleaned_data[name] for name in names}
        return given | {"groups": [group.name for group in self.cleaned_data["groups"]]}


@admin.register(User)
class UserAdmin(ServiceAdmin):
    form = UserForm
    list_display = ("username", "email", "is_superuser", "is_active", "last_login")
    list_filter = ("is_superuser", "is_active", "groups")
    search_fields = ("username", "email")
    ordering = ("username",)
    fields: ClassVar = [
        *("username", "email", "password", "is_admin", "is_active", "groups"),
        *("date_joined", "last_login"),
    ]
    readonly_fields = ("date_joined", "last_login")

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        return user_create(actor=request.user, **form.given())

    def service_update(self, request: HttpRequest, obj: User, form: Any) -> Model:
        return user_update(actor=request.user, user=obj, **form.given())

    def service_delete(self, request: HttpRequest, obj: User) -> None:
        user_delete(actor=request.user, user=obj)


@admin.register(ApiToken)
class ApiTokenAdmin(ServiceAdmin):
    """The signed-in user's own tokens; nobody sees another's."""

    list_display = ("name", "scope", "created_at", "expires_at", "last_used_at")
    list_filter = ("scope",)
    search_fields = ("name",)
    fields: ClassVar = ["name", "scope", "expires_at", "last_used_at", "created_at"]
    readonly_fields = ("last_used_at", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        rows: QuerySet[ApiToken] = super().get_queryset(request)
        return rows.filter(policy.visible("apitoken", request.user))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "scope") if obj else self.readonly_fields

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        token, key = token_create(actor=request.user, **form.cleaned_data)
        messages.warning(request, f"The key of {token.name}, shown only now: {key}")
        return token

    def service_update(self, request: HttpRequest, obj: ApiToken, form: Any) -> Model:
        data = form.cleaned_data
        return token_update(
            actor=request.user, token=obj, name=data["name"], expires_at=data["expires_at"]
        )

    def service_delete(self, request: HttpRequest, obj: ApiToken) -> None:
        token_delete(actor=request.user, token=obj)


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(ServiceAdmin):
    """Only the name: who is in a group is said on the users' pages."""

    list_display = ("name",)
    search_fields = ("name",)
    fields: ClassVar = ["name"]

    def service_create(self, request: HttpRequest, form: Any) -> Model:
        return group_create(actor=request.user, name=form.cleaned_data["name"])

    def service_update(self, request: HttpRequest, obj: Group, form: Any) -> Model:
        return group_update(actor=request.user, group=obj, name=form.cleaned_data["name"])

    def service_delete(self, request: HttpRequest, obj: Group) -> None:
        group_delete(actor=request.user, group=obj)


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """The key and the data are credentials and not shown."""

    list_display = ("user", "address", "created_at", "last_seen_at", "expire_date")
    list_select_related = ("user",)
    search_fields = ("user__username", "address")
    exclude = ("session_key", "session_data")
