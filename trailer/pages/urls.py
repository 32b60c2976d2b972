"""Addresses of the pages, mounted at the root."""

from django.urls import path
from django.views.generic import TemplateView

from trailer.pages.audit import AuditView
from trailer.pages.dashboard import DashboardView
from trailer.pages.hosts import HostListView, HostView
from trailer.pages.images import ImageCreateView, ImageListView, ImageView
from trailer.pages.networks import NetworkListView, NetworkView
from trailer.pages.password_reset import ResetConfirmView, ResetView
from trailer.pages.profile import ProfileView
from trailer.pages.registries import RegistryListView
from trailer.pages.search import SearchView
from trailer.pages.sign_in import SecondFactorView, SignInView
from trailer.pages.sign_out import SignOutView
from trailer.pages.sso import SsoBeginView, SsoCallbackView
from trailer.pages.stacks import StackCreateView, StackListView, StackView
from trailer.pages.users import UserListView
from trailer.pages.volumes import VolumeListView, VolumeView
from trailer.pages.workspace_list import WorkspaceListView
from trailer.pages.workspaces import WorkspaceCreateView, WorkspaceView

urlpatterns = [
    path("", DashboardView.as_view(), name="dashboard"),
    path("login/", SignInView.as_view(), name="login"),
    path("login/code/", SecondFactorView.as_view(), name="login-code"),
    path("login/sso/", SsoBeginView.as_view(), name="sso"),
    path("login/sso/callback/", SsoCallbackView.as_view(), name="sso-callback"),
    path("login/reset/", ResetView.as_view(), name="reset"),
    path(
        "login/reset/sent/",
        TemplateView.as_view(template_name="reset/sent.html"),
        name="reset-sent",
    ),
    path(
        "login/reset/<uidb64>/<token>/", ResetConfirmView.as_view(), name="password_reset_confirm"
    ),
    path(
        "login/reset/done/",
        TemplateView.as_view(template_name="reset/done.html"),
        name="reset-done",
    ),
    path("logout/", SignOutView.as_view(), name="logout"),
    path("workspaces/", WorkspaceListView.as_view(), name="workspaces"),
    path("workspaces/new/", WorkspaceCreateView.as_view(), name="workspace-new"),
    path("workspaces/<uuid:pk>/", WorkspaceView.as_view(), name="workspace"),
    path("stacks/", StackListView.as_view(), name="stacks"),
    path("stacks/new/", StackCreateView.as_view(), name="stack-new"),
    path("stacks/<uuid:pk>/", StackView.as_view(), name="stack"),
    path("images/", ImageListView.as_view(), name="images"),
    path("images/new/", ImageCreateView.as_view(), name="image-new"),
    path("images/<uuid:pk>/", ImageView.as_view(), name="image"),
    path("hosts/", HostListView.as_view(), name="hosts"),
    path("hosts/<uuid:pk>/", HostView.as_view(), name="host"),
    path("search/", SearchView.as_view(), name="search"),
    path("networks/", NetworkListView.as_view(), name="networks"),
    path("networks/<uuid:pk>/", NetworkView.as_view(), name="network"),
    path("volumes/", VolumeListView.as_view(), name="volumes"),
    path("volumes/<uuid:pk>/", VolumeView.as_view(), name="volume"),
    path("registries/", RegistryListView.as_view(), name="registries"),
    path("users/", UserListView.as_view(), name="users"),
    path("profile/", ProfileView.as_view(), name="profile"),
    path("audit/", AuditView.as_view(), name="audit"),
]
