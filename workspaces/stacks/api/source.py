"""Looking at repositories over REST: test of access, what would change, encrypting a value."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from trailer import policy
from trailer.api.fields import Identifier, OptionalText, Text
from trailer.api.serializers import StrictSerializer
from trailer.api.views import ResourceViewSet
from workspaces.stacks.api.inputs import CredentialInput
from workspaces.stacks.file.identity import encrypt_value
from workspaces.stacks.models import Stack
from workspaces.stacks.services.source import source_check, source_compare


class SourceInput(StrictSerializer):
    repository = Text(max_length=1024)
    branch = OptionalText(max_length=255, allow_blank=False)
    path = OptionalText(max_length=512)
    credential = CredentialInput(required=False, allow_null=True)
    stack = Identifier(
        required=False, help_text="Without a credential, this stack's stored one is used."
    )


class ValueInput(StrictSerializer):
    value = Text(allow_blank=True, trim_whitespace=False)


class SecureOutput(serializers.Serializer[Any]):
    secure = serializers.CharField(help_text="Put it under `secure:` in trailer.vars.yml.")


class CommitOutput(serializers.Serializer[Any]):
    commit = serializers.CharField(source="checkout.commit_id")
    author = serializers.CharField(source="checkout.author")
    commit_message = serializers.CharField(source="checkout.message")
    committed_at = serializers.DateTimeField(source="checkout.committed_at")
    file_name = serializers.CharField(source="checkout.file_name")


class SourceOutput(CommitOutput):
    services = serializers.ListField(child=serializers.CharField())
    needs = serializers.ListField(child=serializers.CharField())
    problem = serializers.CharField(help_text="Why the file could not be deployed, or empty.")


class DiffLineOutput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["added", "removed", "same", "gap"])
    text = serializers.CharField()
    old_number = serializers.IntegerField(allow_null=True)
    new_number = serializers.IntegerField(allow_null=True)


class DiffOutput(serializers.Serializer[Any]):
    available_commit = serializers.SerializerMethodField()
    changes = serializers.ListField(child=serializers.CharField())
    lines = DiffLineOutput(many=True)
    variables_lines = DiffLineOutput(many=True)
    problem = serializers.CharField()

    def get_available_commit(self, found: Any) -> str:
        return found.checkout.commit_id if found.checkout else ""


class SourceMixin(ResourceViewSet[Stack]):
    """What can be asked of a stack's repository, or of one that may become a stack."""

    @extend_schema(request=SourceInput, responses=SourceOutput)
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        """Read a repository's newest commit and its stack file; nothing is saved."""
        data = self.given(SourceInput)
        stack_id = data.pop("stack", None)
        stack = None
        if stack_id is not None:
            self.kwargs["pk"] = stack_id
            stack = self.get_object()
        return Response(SourceOutput(source_check(actor=request.user, stack=stack, **data)).data)

    @extend_schema(responses=DiffOutput, filters=False)
    @action(detail=True, filter_backends=[], pagination_class=None)
    def diff(self, request: Request, pk: str) -> Response:
        """Compare what is deployed with the newest commit; asks the repository."""
        return Response(
            DiffOutput(source_compare(actor=request.user, stack=self.get_object())).data
        )

    @extend_schema(request=ValueInput, responses=SecureOutput)
    @action(detail=True, methods=["post"])
    def encrypt(self, request: Request, pk: str) -> Response:
        """Encrypt a value for this stack's trailer.vars.yml; nothing is saved."""
        stack = self.get_object()
        policy.require(request.user, "stack.view", stack)
        secure = encrypt_value(self.given(ValueInput)["value"], stack.recipient)
        return Response({"secure": secure})
