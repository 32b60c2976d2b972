"""Routes of registries, images and builds."""

from rest_framework.routers import SimpleRouter

from images.api.views import BuildViewSet, HostImagesViewSet, ImageViewSet, RegistryViewSet

router = SimpleRouter()
router.register("registries", RegistryViewSet, "registry")
router.register("images", ImageViewSet, "image")
router.register("builds", BuildViewSet, "build")
router.register("hosts", HostImagesViewSet, "host-images")

urlpatterns = router.urls
