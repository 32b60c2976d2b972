"""What may be written about hosts, networks and volumes; shapes as in the contract."""

from __future__ import annotations

from rest_framework import serializers

from hosts.choices import NetworkDriver, RouterMode, VolumeKind
from trailer.api.fields import Choice, Flag, Identifier, OptionalText, Text, Whole
from trailer.api.serializers import StrictSerializer
from trailer.validation import LIST_LIMIT


class RouterInput(StrictSerializer):
    mode = Choice(source="router_mode", choices=RouterMode.choices, required=False)
    network = OptionalText(source="router_network", max_length=128)
    entrypoint = OptionalText(source="router_entrypoint", max_length=64)
    certresolver = OptionalText(source="router_certresolver", max_length=64)
    managed = Flag(source="router_managed", required=False)
    image = OptionalText(source="router_image", max_length=255)
    domains = serializers.ListField(
        source="router_domains",
        child=Text(max_length=260),
        required=False,
        max_length=LIST_LIMIT,
        help_text="Domains that URLs on this router may have; an empty list allows any.",
    )


class NvidiaInput(StrictSerializer):
    deploy_driver = Flag(source="nvidia_deploy_driver", required=False)
    deploy_toolkit = Flag(source="nvidia_deploy_toolkit", required=False)
    driver_image = OptionalText(source="nvidia_driver_image", max_length=255)
    toolkit_image = OptionalText(source="nvidia_toolkit_image", max_length=255)


class MetricsInput(StrictSerializer):
    host = Flag(source="metrics_host", required=False)
    gpu = Flag(source="metrics_gpu", required=False)
    workspace = Flag(source="metrics_workspace", required=False)
    retention_days = Whole(source="metrics_retention_days", required=False)


class EnrolmentInput(StrictSerializer):
    server_url = OptionalText(
        max_length=255,
        help_text="The address at which the machine reaches this server: scheme, host and port. "
        "Default: TRAILER_PUBLIC_URL.",
    )


class HostInput(StrictSerializer):
    """Nested objects are flattened into column names, as the services take them."""

    name = Text(max_length=63)
    description = OptionalText()
    enabled = Flag(required=False)
    reconcile_interval = Whole(required=False, help_text="Seconds between cycles, 1 to 3600.")
    heartbeat_interval = Whole(required=False, help_text="Seconds, 1 to 3600.")
    build_timeout = Whole(required=False)
    pull_timeout = Whole(required=False)
    build_idle_timeout = Whole(required=False, help_text="Seconds without output, 1 to 86400.")
    build_context_bytes = Whole(required=False, help_text="64 KiB to 1 GiB.")
    build_parallel = Whole(required=False, help_text="1 to 64.")
    update_interval = Whole(required=False, help_text="Seconds, 10 to 86400.")
    disk_free_min_bytes = Whole(required=False, help_text="0 switches the brake off.")
    router = RouterInput(source="*", required=False)
    nvidia = NvidiaInput(source="*", required=False)
    metrics = MetricsInput(source="*", required=False)
    agent_image = OptionalText(max_length=255)
    maintenance_schedule = OptionalText(max_length=100, help_text="A cron expression.")
    block_metadata = Flag(
        required=False,
        help_text="Keep the machine's containers from a cloud's metadata addresses.",
    )


class NetworkInput(StrictSerializer):
    name = Text(max_length=63)
    host = Identifier()
    driver = Choice(
        choices=NetworkDriver.choices,
        required=False,
        help_text="`macvlan` takes the host capability `addresses`, and so do the next four.",
    )
    internal = Flag(required=False)
    parent_interface = OptionalText(max_length=64, help_text="Of macvlan: the host's interface.")
    subnet = OptionalText(
        max_length=64,
        help_text="Private IPv4 addresses that neither the host nor another network of its "
        "engine uses. Empty: the engine chooses.",
    )
    gateway = OptionalText(max_length=64)
    ip_range = OptionalText(max_length=64)


class VolumeInput(StrictSerializer):
    name = Text(max_length=63)
    host = Identifier()
    kind = Choice(choices=VolumeKind.choices, required=False)
    source = OptionalText(max_length=1024)  # type: ignore[assignment]
