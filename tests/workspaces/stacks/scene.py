"""A stack, a repository in memory and an agent that does what it is told, or fails to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import F
from django.utils import timezone

from images.choices import BuildStatus
from images.models import Build, Image
from tests.factories import make_host, make_user
from tests.workspaces.scene import observe
from workspaces.models import Workspace
from workspaces.stacks.file.types import Checkout, Commit
from workspaces.stacks.models import Stack, Sync
from workspaces.stacks.services.stacks import stack_create
from workspaces.stacks.sync import repository
from workspaces.stacks.sync.engine import work_once

if TYPE_CHECKING:
    import pytest

    from hosts.models import Host
    from trailer.accounts.models import User

WEB = """\
services:
  web:
    image: app:1
    environment: {{MODE: {mode}}}
"""
SECRET = "canary-51c0de"


@dataclass
class MemoryRepository:
    """What the git adapter would answer; `problem` stands for a repository that can't be read."""

    text: str = WEB.format(mode="one")
    variables_text: str = ""
    commits: int = 1
    problem: Exception | None = None
    # The problem is with the files alone: the branch can be seen.
    only_fetch: bool = False
    asked: int = 0
    fetched: int = 0

    @property
    def commit_id(self) -> str:
        return hashlib.sha1(str(self.commits).encode(), usedforsecurity=False).hexdigest()

    def push(self, text: str | None = None, *, variables_text: str | None = None) -> str:
        """A new commit; without a text one that leaves the stack's files alone."""
        self.commits += 1
        self.text = self.text if text is None else text
        if variables_text is not None:
            self.variables_text = variables_text
        return self.commit_id

    def newest(self) -> Commit:
        self.asked += 1
        if self.problem and not self.only_fetch:
            raise self.problem
        return Commit(id=self.commit_id, branch="main")

    def fetch(self, known_fingerprint: str = "") -> Checkout:
        self.fetched += 1
        if self.problem:
            raise self.problem
        content = f"{self.text}\0{self.variables_text}".encode()
        fingerprint = hashlib.sha256(content).hexdigest()
        return Checkout(
            commit_id=self.commit_id,
            author="Ada",
            message=f"Commit {self.commits}",
            committed_at=timezone.now(),
            file_name="trailer.yml",
            text=self.text,
            variables_text=self.variables_text,
            fingerprint=fingerprint,
            changed=fingerprint != known_fingerprint,
        )


@dataclass
class StackScene:
    owner: User
    host: Host
    repository: MemoryRepository
    # Image references that can't be pulled; services or values of MODE that come up badly.
    missing: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    # Services of which the agent says nothing: they are still coming up.
    slow: set[str] = field(default_factory=set)
    seq: int = 0

    def create(self, **fields: Any) -> Stack:
        values = {"name": "shop", "repository": "https://git.example.com/shop.git", **fields}
        return stack_create(actor=self.owner, host=self.host, **values)

    def repository_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In place of git."""
        monkeypatch.setattr(repository, "source_of", lambda stack: self.repository)

    def work(self, rounds: int = 30) -> None:
        """Jobs and the host's agent take turns until nothing is left to do."""
        for _ in range(rounds):
            # Only what waits: what is due already keeps its place in the queue.
            now = timezone.now()
            Stack.objects.filter(due_at__gt=now).update(due_at=now)
            worked = work_once()
            acted = self.agent()
            if not worked and not acted:
                return

    def agent(self) -> bool:
        """Pulls what is queued and starts what is desired, in one breath."""
        acted = False
        for build in Build.objects.filter(status=BuildStatus.PENDING).select_related("image"):
            acted = True
            failed = build.image.reference in self.missing
            status = BuildStatus.FAILED if failed else BuildStatus.FINISHED
            message = "manifest unknown" if failed else ""
            now = timezone.now()
            Build.objects.filter(pk=build.pk).update(status=status, finished_at=now)
            columns: dict[str, Any] = {"status": status, "message": message}
            if not failed:
                columns["engine_id"] = f"sha256:{build.image.reference}"
            Image.objects.filter(pk=build.image_id).update(**columns)
        for workspace in Workspace.objects.filter(host=self.host).select_related("host"):
            if workspace.service in self.slow:
                continue
            if workspace.observed_revision < workspace.revision:
                acted = True
                self.seq += 1
                modes = {var.value for var in workspace.env_vars.all()}
                bad = bool(self.broken & {workspace.service, *modes})
                observe(
                    workspace,
                    "error" if bad else workspace.desired_state,
                    seq=self.seq,
                    message="The new container was not healthy." if bad else "",
                )
        return acted

    def pass_time(self, seconds: float, *, silent: bool = False) -> None:
        """As if everything so far had happened so much earlier; a host that is not silent sends
        heartbeats all the while."""
        gone = timedelta(seconds=seconds)
        Sync.objects.update(phase_at=F("phase_at") - gone)
        Workspace.objects.update(updated_at=F("updated_at") - gone)
        Stack.objects.update(poll_at=F("poll_at") - gone)
        heard = F("last_heartbeat") - gone if silent else timezone.now()
        type(self.host).objects.update(last_heartbeat=heard)

    def service(self, name: str) -> Workspace:
        return Workspace.objects.get(service=name)


def fresh(stack: Stack) -> Stack:
    return Stack.objects.select_related("deployed").get(pk=stack.pk)


def last_sync(stack: Stack) -> Sync:
    return Sync.objects.filter(stack=stack).order_by("-number")[0]


def make_stack_scene() -> StackScene:
    return StackScene(
        owner=make_user("owner"), host=make_host("local"), repository=MemoryRepository()
    )
