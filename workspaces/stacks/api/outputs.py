"""What the API answers about stacks.

The schema is made from these annotations at run time, so they are not postponed here.
"""

from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agent.protocol import naming
from hosts.status import is_fresh, object_message
from trailer import policy
from trailer.sealed import unseal_mapping
from workspaces.models import Workspace
from workspaces.stacks.choices import Phase, StackStatus, SyncOutcome, Trigger
from workspaces.stacks.models import StackRevision, Sync
from workspaces.stacks.selectors import StackView
from workspaces.stacks.status import stack_badge
from workspaces.status import workspace_badge


class MemberOutput(serializers.Serializer[Any]):
    """A service or a need: the workspace that it is."""

    name = serializers.CharField(source="service")
    workspace = serializers.UUIDField(source="pk")
    status = serializers.SerializerMethodField()
    status_label = serializers.SerializerMethodField()
    message = serializers.CharField()
    health = serializers.CharField()
    image = serializers.CharField(source="image.reference")
    container_id = serializers.CharField()
    container_name = serializers.SerializerMethodField()

    def get_status(self, workspace: Workspace) -> str:
        return workspace_badge(workspace).value

    def get_status_label(self, workspace: Workspace) -> str:
        return workspace_badge(workspace).label

    def get_container_name(self, workspace: Workspace) -> str:
        return naming.container_name(workspace.name)


class SyncSummary(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    stack = serializers.UUIDField(source="stack_id")
    number = serializers.IntegerField()
    trigger = serializers.ChoiceField(choices=Trigger.choices)
    phase = serializers.ChoiceField(choices=Phase.choices)
    phase_label = serializers.CharField(source="get_phase_display")
    outcome = serializers.ChoiceField(choices=SyncOutcome.choices, allow_blank=True)
    message = serializers.CharField()
    commit = serializers.CharField()
    author = serializers.CharField()
    commit_message = serializers.CharField()
    revision = serializers.SerializerMethodField()
    diff = serializers.ListField(child=serializers.CharField())
    actor = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    duration_seconds = serializers.SerializerMethodField()

    def get_actor(self, sync: Sync) -> str | None:
        return sync.actor.username if sync.actor else None

    def get_revision(self, sync: Sync) -> int | None:
        return sync.revision.number if sync.revision else None

    def get_duration_seconds(self, sync: Sync) -> float | None:
        if sync.started_at is None or sync.finished_at is None:
            return None
        return round((sync.finished_at - sync.started_at).total_seconds(), 3)


class SyncOutput(SyncSummary):
    log = serializers.CharField()


class StackRevisionOutput(serializers.Serializer[Any]):
    """A revision that may be rolled back to has `deployed_at`."""

    id = serializers.UUIDField()
    number = serializers.IntegerField()
    commit = serializers.CharField()
    author = serializers.CharField()
    message = serializers.CharField()
    file_name = serializers.CharField()
    file_text = serializers.CharField()
    variables = serializers.DictField(child=serializers.CharField())
    committed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    deployed_at = serializers.DateTimeField(allow_null=True)
    deployed = serializers.SerializerMethodField(help_text="Whether this is what runs.")

    def get_deployed(self, revision: StackRevision) -> bool:
        return revision.stack.deployed_id == revision.pk


class CredentialOutput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["token", "deploy_key"])
    username = serializers.CharField()


class StackOutput(serializers.Serializer[Any]):
    """A stack: the writable fields first, then what is only answered."""

    id = serializers.UUIDField(source="stack.pk")
    name = serializers.CharField(source="stack.name")
    description = serializers.CharField(source="stack.description")
    host = serializers.UUIDField(source="stack.host_id")
    repository = serializers.CharField(source="stack.repository")
    branch = serializers.CharField(source="stack.branch")
    path = serializers.CharField(source="stack.path")
    poll_interval = serializers.IntegerField(source="stack.poll_interval")
    credential = serializers.SerializerMethodField(
        help_text="Which kind is stored, never the credential itself."
    )
    enabled = serializers.BooleanField(source="stack.enabled")
    variables = serializers.DictField(source="stack.variables", child=serializers.CharField())
    secret_variables = serializers.SerializerMethodField(
        help_text="Names only; their values are never answered."
    )

    status = serializers.ChoiceField(source="stack.status", choices=StackStatus.choices)
    status_label = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    fresh = serializers.SerializerMethodField()
    allowed_actions = serializers.SerializerMethodField()
    deployed_commit = serializers.CharField(source="stack.deployed_commit")
    available_commit = serializers.CharField(source="stack.available_commit")
    deployed_revision = serializers.SerializerMethodField()
    pinned = serializers.BooleanField(source="stack.pinned")
    checked_at = serializers.DateTimeField(source="stack.checked_at", allow_null=True)
    services = MemberOutput(many=True)
    needs = MemberOutput(many=True)
    last_sync = SyncSummary(allow_null=True)
    webhook_url = serializers.SerializerMethodField()
    webhook_secret_set = serializers.SerializerMethodField()
    recipient = serializers.CharField(
        source="stack.recipient", help_text="The age key that trailer.vars.yml is encrypted for."
    )
    revision = serializers.IntegerField(source="stack.revision")
    owner = serializers.CharField(source="stack.owner.username")
    host_name = serializers.CharField(source="stack.host.name")
    created_at = serializers.DateTimeField(source="stack.created_at")
    updated_at = serializers.DateTimeField(source="stack.updated_at")

    @extend_schema_field(CredentialOutput(allow_null=True))
    def get_credential(self, view: StackView) -> dict[str, Any] | None:
        stored = unseal_mapping(view.stack, "credential_token")
        if not stored:
            return None
        kind = "token" if stored.get("token") else "deploy_key"
        return CredentialOutput({"kind": kind, "username": stored.get("username", "")}).data

    @extend_schema_field(serializers.DictField(child=serializers.CharField(allow_null=True)))
    def get_secret_variables(self, view: StackView) -> dict[str, None]:
        return dict.fromkeys(sorted(unseal_mapping(view.stack, "secret_variables_token")))

    def get_status_label(self, view: StackView) -> str:
        return stack_badge(view.stack).label

    def get_message(self, view: StackView) -> str:
        return object_message(view.stack.host, view.stack.message)

    def get_fresh(self, view: StackView) -> bool:
        return is_fresh(view.stack.host, timezone.now())

    def get_allowed_actions(self, view: StackView) -> list[str]:
        actor = self.context["request"].user
        return policy.allowed_of(actor, view.stack, stack_badge(view.stack).actions)

    def get_deployed_revision(self, view: StackView) -> int | None:
        return view.stack.deployed.number if view.stack.deployed else None

    def get_webhook_url(self, view: StackView) -> str:
        return f"{settings.TRAILER_PUBLIC_URL}/webhooks/stacks/{view.stack.pk}/"

    def get_webhook_secret_set(self, view: StackView) -> bool:
        return bool(view.stack.webhook_secret_token)
