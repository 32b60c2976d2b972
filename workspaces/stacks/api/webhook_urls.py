"""Where git servers tell that somebody pushed, mounted under /webhooks/."""

from django.urls import path

from workspaces.stacks.api.webhook import StackWebhookView

urlpatterns = [path("stacks/<uuid:pk>/", StackWebhookView.as_view(), name="stack-webhook")]
