"""Routes of the agent protocol, version 1."""

from django.urls import path

from workspaces.control import images, views

urlpatterns = [
    path("enrol", views.enrol),
    path("session", views.session),
    path("state", views.state),
    path("check", views.check),
    path("report", views.report),
    path("heartbeat", views.heartbeat),
    path("token", views.token),
    path("images", images.listing),
    path("images/<slug:digest>", images.archive),
    path("builds/<uuid:build_id>/log", views.build_log),
]
