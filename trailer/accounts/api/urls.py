"""Routes of sign-in, tokens and users."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from trailer.accounts.api.views import LoginView, TokenViewSet, UserViewSet

router = SimpleRouter()
router.register("tokens", TokenViewSet, "token")
router.register("users", UserViewSet, "user")

urlpatterns = [path("auth/token/", LoginView.as_view(), name="login-token"), *router.urls]
