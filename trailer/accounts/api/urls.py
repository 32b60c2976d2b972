"""Routes of sign-in, one's own account, users and groups."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from trailer.accounts.api.admin_views import GroupViewSet, UserViewSet
from trailer.accounts.api.second_factor import (
    RecoveryCodesView,
    SecondFactorConfirmView,
    SecondFactorRemoveView,
    SecondFactorView,
    UserSecondFactorRemoveView,
)
from trailer.accounts.api.views import (
    LoginView,
    PasswordView,
    ProfileView,
    SessionViewSet,
    TokenViewSet,
)

router = SimpleRouter()
router.register("tokens", TokenViewSet, "token")
router.register("sessions", SessionViewSet, "session")
router.register("users", UserViewSet, "user")
router.register("groups", GroupViewSet, "group")

urlpatterns = [
    path("auth/token/", LoginView.as_view(), name="login-token"),
    path("me/", ProfileView.as_view(), name="me"),
    path("me/password/", PasswordView.as_view(), name="me-password"),
    path("me/second-factor/", SecondFactorView.as_view(), name="second-factor"),
    path("me/second-factor/confirm/", SecondFactorConfirmView.as_view()),
    path("me/second-factor/remove/", SecondFactorRemoveView.as_view()),
    path("me/second-factor/recovery-codes/", RecoveryCodesView.as_view()),
    path("users/<str:pk>/second-factor/remove/", UserSecondFactorRemoveView.as_view()),
    *router.urls,
]
