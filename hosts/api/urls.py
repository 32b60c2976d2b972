"""Routes of hosts, networks and volumes."""

from rest_framework.routers import SimpleRouter

from hosts.api.rollouts import RolloutViewSet
from hosts.api.views import HostViewSet, NetworkViewSet, VolumeViewSet

router = SimpleRouter()
router.register("hosts", HostViewSet, "host")
router.register("networks", NetworkViewSet, "network")
router.register("agent-rollouts", RolloutViewSet, "agent-rollout")
router.register("volumes", VolumeViewSet, "volume")

urlpatterns = router.urls
