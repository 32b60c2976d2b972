"""Addresses of the pages, mounted at the root."""

from django.contrib.auth import views as auth
from django.urls import path

from trailer.accounts.forms import LoginForm
from trailer.pages.audit import AuditView
from trailer.pages.dashboard import DashboardView
from trailer.pages.hosts import HostListView, HostView
from trailer.pages.images import ImageCreateView, ImageListView, ImageView
from trailer.pages.networks import NetworkListView
from trailer.pages.profile import ProfileView
from trailer.pages.registries import RegistryListView
from trailer.pages.search import SearchView
from trailer.pages.sign_out import SignOutView
from trailer.pages.users import UserListView
from trailer.pages.volumes import VolumeListView
from trailer.pages.workspace_list import WorkspaceListView
from trailer.pages.workspaces import WorkspaceCreateView, WorkspaceView

login = auth.LoginView.as_view(
    template_name="login.html", redirect_authenticated_user=True, authentication_form=LoginForm
)

urlpatterns = [
    path("", DashboardView.as_view(), name="dashboard"),
    path("login/", login, name="login"),
    path("logout/", SignOutView.as_view(), name="logout"),
    path("workspaces/", WorkspaceListView.as_view(), name="workspaces"),
    path("workspaces/new/", WorkspaceCreateView.as_view(), name="workspace-new"),
    path("workspaces/<uuid:pk>/", WorkspaceView.as_view(), name="workspace"),
    path("images/", ImageListView.as_view(), name="images"),
    path("images/new/", ImageCreateView.as_view(), name="image-new"),
    path("images/<uuid:pk>/", ImageView.as_view(), name="image"),
    path("hosts/", HostListView.as_view(), name="hosts"),
    path("hosts/<uuid:pk>/", HostView.as_view(), name="host"),
    path("search/", SearchView.as_view(), name="search"),
    path("networks/", NetworkListView.as_view(), name="networks"),
    path("volumes/", VolumeListView.as_view(), name="volumes"),
    path("registries/", RegistryListView.as_view(), name="registries"),
    path("users/", UserListView.as_view(), name="users"),
    path("profile/", ProfileView.as_view(), name="profile"),
    path("audit/", AuditView.as_view(), name="audit"),
]
