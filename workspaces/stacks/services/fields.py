"""The fields of a stack that a user may write, and the rules they must keep."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final, TypedDict

from trailer.errors import Invalid
from trailer.sealed import seal, seal_mapping, unseal_mapping
from trailer.validation import (
    LIST_LIMIT,
    check_columns,
    check_one_line,
    check_paragraphs,
    check_range,
    check_string,
    check_text,
)
from workspaces.stacks.file.variables import VARIABLE_NAME
from workspaces.stacks.git.address import parse_repository
from workspaces.stacks.git.source import checked_branch
from workspaces.stacks.git.types import GitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workspaces.stacks.models import Stack

CREDENTIAL_PARTS: Final = ("username", "token", "deploy_key", "known_hosts")
MIN_WEBHOOK_SECRET: Final = 32
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_LIMITS: Final = {"poll_interval": (0, 86_400)}


class StackFields(TypedDict, total=False):
    description: str
    repository: str
    branch: str
    path: str
    poll_interval: int
    enabled: bool
    credential: Mapping[str, str] | None
    webhook_secret: str
    variables: Mapping[str, str]
    secret_variables: Mapping[str, str | None]


PLAIN: Final = (
    *("description", "repository", "branch", "path"),
    *("poll_interval", "enabled", "variables"),
)
# Where the files come from.
ORIGIN: Final = frozenset({"repository", "branch", "path", "credential"})
# A change of any of these may mean another deployment.
SOURCE: Final = ORIGIN | {"variables", "secret_variables"}


def check_stack(stack: Stack) -> None:
    """The columns as they would be saved."""
    if not _NAME.fullmatch(stack.name):
        raise Invalid.field(
            "name",
            "A stack's name has 1 to 40 characters: small letters, digits and hyphens, and "
            "begins and ends with a letter or digit.",
        )
    check_text({name: getattr(stack, name) for name in ("description", "repository", "path")})
    check_columns(stack, ("name", "repository", "branch", "path"))
    check_range({"poll_interval": stack.poll_interval}, _LIMITS)
    _as_field("repository", parse_repository, stack.repository)
    _as_field("branch", checked_branch, stack.branch)
    stack.path = _clean_path(stack.path)


def write_fields(stack: Stack, fields: StackFields) -> set[str]:
    """Sets what differs on the row, secrets encrypted; the names of what changed."""
    changed = set()
    values: Mapping[str, Any] = fields
    for name in PLAIN:
        if name in values and values[name] != getattr(stack, name):
            if name == "description":
                check_paragraphs(values[name], field=name, noun="The description")
            elif name == "path":
                check_one_line(values[name].strip(), field=name, noun="The path")
            setattr(stack, name, values[name])
            changed.add(name)
    if "variables" in values:
        _check_variables(values["variables"], "variables")
    if "credential" in values and _set_credential(stack, values["credential"]):
        changed.add("credential")
    if "webhook_secret" in values:
        stack.webhook_secret_token = _webhook_secret(stack, values["webhook_secret"])
        changed.add("webhook_secret")
    if "secret_variables" in values and _set_secrets(stack, values["secret_variables"]):
        changed.add("secret_variables")
    return changed


def _as_field(field: str, check: Callable[[str], object], value: str) -> None:
    """What the git adapter says about a value, said about the field."""
    try:
        check(value)
    except GitError as error:
        raise Invalid.field(field, error.message) from error


def _clean_path(path: str) -> str:
    clean = posixpath.normpath(path.strip().lstrip("/")) if path.strip().strip("/") else ""
    if clean == ".":
        return ""
    if clean.startswith("..") or "\\" in clean or ":" in clean:
        raise Invalid.field("path", "The path is a folder of the repository, like apps/shop.")
    return clean


def _check_variables(values: Mapping[str, Any], field: str) -> None:
    if len(values) > LIST_LIMIT:
        raise Invalid.field(field, f"A stack has at most {LIST_LIMIT} of them.")
    for name, value in values.items():
        if not VARIABLE_NAME.fullmatch(name):
            raise Invalid.field(
                field,
                f"“{name[:128]}” can't be the name of a variable: letters, digits and _, not "
                "beginning with a digit.",
            )
        if value is not None:
            check_string(value, field=f"{field}.{name}")


def _set_secrets(stack: Stack, given: Mapping[str, str | None]) -> bool:
    """Replaces the map; a null keeps what is stored under that name."""
    _check_variables(given, "secret_variables")
    stored = unseal_mapping(stack, "secret_variables_token")
    for name, value in given.items():
        if value is None and name not in stored:
            raise Invalid.field("secret_variables", f"{name} has no stored value yet. Give one.")
    new = {name: stored[name] if value is None else value for name, value in given.items()}
    if new == stored:
        return False
    stack.secret_variables_token = seal_mapping(stack, "secret_variables_token", new)
    return True


def _set_credential(stack: Stack, given: Mapping[str, str] | None) -> bool:
    values = {name: value for name, value in (given or {}).items() if value}
    for name, value in values.items():
        check_string(value, field=f"credential.{name}")
    if values.get("token") and values.get("deploy_key"):
        raise Invalid.field("credential", "Give a token or a deploy key, not both.")
    if values and not (values.get("token") or values.get("deploy_key")):
        raise Invalid.field("credential", "A credential has a token or a deploy key.")
    if values == unseal_mapping(stack, "credential_token"):
        return False
    stack.credential_token = seal_mapping(stack, "credential_token", values)
    return True


def _webhook_secret(stack: Stack, value: str) -> str:
    if not value:
        return ""
    check_string(value, field="webhook_secret", limit=1024)
    if len(value) < MIN_WEBHOOK_SECRET:
        raise Invalid.field(
            "webhook_secret", f"A webhook's secret has at least {MIN_WEBHOOK_SECRET} characters."
        )
    return seal(stack, "webhook_secret_token", value)
