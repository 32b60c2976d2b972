"""Routes of the audit."""

from rest_framework.routers import SimpleRouter

from trailer.audit.api.views import AuditViewSet

router = SimpleRouter()
router.register("audit", AuditViewSet, "audit")

urlpatterns = router.urls
