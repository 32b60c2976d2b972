"""Routes of workspaces, mounted under /api/v1/."""

from rest_framework.routers import SimpleRouter

from workspaces.api.views import WorkspaceViewSet

router = SimpleRouter()
router.register("workspaces", WorkspaceViewSet, basename="workspace")

urlpatterns = router.urls
