"""What a revision asks for: its file with every variable in its place, needs written as services.

Made anew from the stored texts by each step, so that no resolved secret is ever stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trailer.sealed import seal_mapping, unseal, unseal_mapping
from workspaces.stacks.file.reader import read_stack_file
from workspaces.stacks.file.resolve import resolve
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.file.types import Variables
from workspaces.stacks.file.variables import read_variables
from workspaces.stacks.models import NeedCredential
from workspaces.stacks.needs.catalogue import (
    need_service,
    need_values,
    need_volume,
    new_credentials,
)
from workspaces.stacks.sync.places import own_volume
from workspaces.stacks.sync.vouching import Vouched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.stacks.file.types import NeedSpec, ServiceSpec, StackFile
    from workspaces.stacks.models import Stack, StackRevision


@dataclass(frozen=True, kw_only=True)
class Desired:
    file: StackFile
    needs: tuple[tuple[NeedSpec, ServiceSpec], ...]

    @property
    def need_services(self) -> tuple[ServiceSpec, ...]:
        return tuple(service for _, service in self.needs)

    @property
    def all_services(self) -> tuple[ServiceSpec, ...]:
        return (*self.need_services, *self.file.services)


def desired_of(stack: Stack, revision: StackRevision) -> Desired:
    """Raises StackFileError with sentences. The volumes and credentials of needs are made here:
    both stay the same from then on. Needs the stack with its host and owner."""
    parsed = read_stack_file(revision.file_text, revision.file_name)
    variables = _variables(stack, revision)
    vouched = Vouched(stack, revision.source_by)
    credentials = {need.kind: _credentials(vouched, need.kind) for need in parsed.needs}
    values = {need.kind: need_values(need, credentials[need.kind]) for need in parsed.needs}
    return Desired(
        file=resolve(parsed, variables, values),
        needs=tuple((need, need_service(need, credentials[need.kind])) for need in parsed.needs),
    )


def _variables(stack: Stack, revision: StackRevision) -> Variables:
    of_file = read_variables(revision.variables_text, Secret(unseal(stack, "identity_token")))
    secrets = unseal_mapping(revision, "secret_variables_token")
    of_page = Variables(
        config=revision.variables,
        secrets={name: Secret(value) for name, value in secrets.items()},
    )
    return of_page.over(of_file)


def _credentials(vouched: Vouched, kind: str) -> Mapping[str, Secret]:
    volume = own_volume(vouched, need_volume(kind))
    stored = NeedCredential.objects.filter(volume=volume).first()
    if stored is None:
        made = {name: secret.reveal() for name, secret in new_credentials(kind).items()}
        stored = NeedCredential(volume=volume)
        stored.token = seal_mapping(stored, "token", made)
        stored.save(force_insert=True)
    values = unseal_mapping(stored, "token")
    return {name: Secret(value) for name, value in values.items()}
