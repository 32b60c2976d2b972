"""Routes of workspaces, mounted under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from workspaces.api.image_plan import ImageBuildPlanView
from workspaces.api.quotas import GroupQuotaView, OwnQuotaView, UserQuotaView
from workspaces.api.views import WorkspaceViewSet

router = SimpleRouter()
router.register("workspaces", WorkspaceViewSet, basename="workspace")

urlpatterns = [
    *router.urls,
    path("images/<uuid:pk>/build/plan/", ImageBuildPlanView.as_view(), name="image-build-plan"),
    path("me/quota/", OwnQuotaView.as_view(), name="own-quota"),
    path("users/<str:pk>/quota/", UserQuotaView.as_view(), name="user-quota"),
    path("groups/<str:pk>/quota/", GroupQuotaView.as_view(), name="group-quota"),
]
