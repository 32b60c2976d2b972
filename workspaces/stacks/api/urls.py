"""Routes of stacks, mounted under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from workspaces.stacks.api.views import StackViewSet, SyncViewSet
from workspaces.stacks.api.webhook import StackWebhookBelowApiView

router = SimpleRouter()
router.register("stacks", StackViewSet, basename="stack")
router.register("syncs", SyncViewSet, basename="sync")

urlpatterns = [
    *router.urls,
    path("webhooks/stacks/<uuid:pk>/", StackWebhookBelowApiView.as_view()),
]
