"""Runs git: a fixed argument list, an own environment, and an end by time, size and memory."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from workspaces.stacks.git.failures import failure, too_large
from workspaces.stacks.git.folder import work_folder
from workspaces.stacks.git.types import GitError, GitRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workspaces.stacks.git.address import Address
    from workspaces.stacks.git.types import GitCredential, GitLimits

_LOOK_SECONDS: Final = 0.02
_MAX_OUTPUT: Final = 4 * 1024 * 1024
# What prlimit ends with when there is no git.
_NOT_FOUND: Final = 127
# No checkout is ever made, so hooks, filters (LFS), symlinks and submodules have no place to act;
# the settings say so once more.
_FIXED: Final = (
    "protocol.allow=never",
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "core.bigFileThreshold=1m",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "fetch.unpackLimit=1",
    "filter.lfs.required=false",
    "filter.lfs.smudge=",
    # Each thread would reserve address space of its own, which is limited.
    "pack.threads=1",
    "core.packedGitLimit=64m",
    "core.deltaBaseCacheLimit=16m",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.followRedirects=false",
    "http.proxy=",
)
# A folder that may be read was named by the operator, whoever owns it. Only as a file: settings of
# the command do not reach the program that git starts for such a folder.
_OWNERS: Final = Path(__file__).with_name("gitconfig")


@dataclass(frozen=True, kw_only=True)
class Git:
    """git in one folder that is thrown away afterwards, held to one checked address."""

    folder: Path
    address: Address
    credential: GitCredential | None
    limits: GitLimits
    addresses: tuple[str, ...]
    deadline: float

    def __call__(
        self, *arguments: str, input_text: str = "", accept: Sequence[int] = (0,)
    ) -> bytes:
        """What it printed; raises GitError with a sentence that holds no credential."""
        command = [
            *self._limited(),
            "git",
            *(part for setting in _FIXED for part in ("-c", setting)),
        ]
        command += ["-c", f"protocol.{self.address.scheme}.allow=always", *arguments]
        with (
            tempfile.TemporaryFile(dir=self.folder) as output,
            tempfile.TemporaryFile(dir=self.folder) as errors,
            tempfile.TemporaryFile(dir=self.folder) as given,
        ):
            given.write(input_text.encode())
            given.seek(0)
            code = self._run(command, given, output, errors)
            if code == _NOT_FOUND:
                raise _not_installed("git")
            if code not in accept and self._hit_file_limit(code):
                raise too_large(self.address, self.limits)
            if code not in accept:
                said = _start_of(errors, 16 * 1024)
                raise failure(self.address, self.credential, said, self.limits)
            if os.fstat(output.fileno()).st_size > _MAX_OUTPUT:
                raise GitRefused(
                    f"{self.address.url} says too much: its branches or folders need more than "
                    f"{_MAX_OUTPUT // 1024 // 1024} MiB. Use a smaller repository."
                )
            return _start_of(output, _MAX_OUTPUT)

    def _limited(self) -> list[str]:
        """The kernel holds git and its helpers to this. By a program that execs git: a function
        that runs in the child between fork and exec is not safe in a process with threads."""
        limits = self.limits
        return ["prlimit", f"--as={limits.max_memory}", f"--fsize={limits.max_bytes}", "--core=0"]

    def _hit_file_limit(self, code: int) -> bool:
        """Of a helper that was stopped git says nothing; what it had written still lies there."""
        return code == -signal.SIGXFSZ or _size(self.folder) >= self.limits.max_bytes

    def _run(
        self, command: list[str], given: IO[bytes], output: IO[bytes], errors: IO[bytes]
    ) -> int:
        try:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._environment(),
                stdin=given,
                stdout=output,
                stderr=errors,
                # A group of its own: git's helpers end with it.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise _not_installed("prlimit (of util-linux)") from error
        try:
            return self._wait(process, output)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _wait(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> int:
        while True:
            try:
                return process.wait(_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            if time.monotonic() > self.deadline:
                raise GitError(
                    f"{self.address.url} did not answer within "
                    f"{self.limits.timeout_seconds:g} seconds. It is tried again later."
                )
            size = _size(self.folder) + os.fstat(output.fileno()).st_size
            if size > self.limits.max_bytes:
                raise too_large(self.address, self.limits)

    def _environment(self) -> dict[str, str]:
        """Nothing of the server's own: no proxy, no agent, no settings, no home."""
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(_OWNERS),
            "GIT_ALLOW_PROTOCOL": self.address.scheme,
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        # By environment: other users of the machine can read arguments, but not these.
        settings = self._settings()
        environment["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (key, value) in enumerate(settings):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        if self.address.scheme == "ssh":
            environment["GIT_SSH_COMMAND"] = f"ssh -F {shlex.quote(str(self.folder / 'ssh'))}"
            environment["GIT_SSH_VARIANT"] = "ssh"
        return environment

    def _settings(self) -> list[tuple[str, str]]:
        if self.address.scheme not in {"http", "https"}:
            return []
        pinned = ",".join(self.addresses)
        host = self.address.host
        settings = [("http.curloptResolve", f"{host}:{self.address.port}:{pinned}")]
        credential = self.credential
        if credential is not None and credential.token is not None:
            pair = f"{credential.username or 'git'}:{credential.token.reveal()}"
            value = b64encode(pair.encode()).decode()
            settings.append(("http.extraHeader", f"Authorization: Basic {value}"))
        return settings


@contextmanager
def git_for(
    address: Address,
    addresses: tuple[str, ...],
    credential: GitCredential | None,
    limits: GitLimits,
) -> Iterator[Git]:
    with work_folder() as folder:
        if address.scheme == "ssh":
            _write_ssh_settings(folder, address, addresses[0], credential, limits)
        yield Git(
            folder=folder,
            address=address,
            credential=credential,
            limits=limits,
            addresses=addresses,
            deadline=time.monotonic() + limits.timeout_seconds,
        )


def _write_ssh_settings(
    folder: Path,
    address: Address,
    ip: str,
    credential: GitCredential | None,
    limits: GitLimits,
) -> None:
    """ssh asks nobody, forwards nothing, and goes to the checked address only."""
    if credential is None or credential.deploy_key is None:
        raise GitRefused("Reading over ssh needs a deploy key. Store one as the credential.")
    known, check = limits.known_hosts_file, "accept-new"
    if credential.known_hosts:
        pinned = folder / "known_hosts"
        pinned.write_text(credential.known_hosts.rstrip() + "\n")
        known, check = str(pinned), "yes"
    if not known:
        raise GitRefused("Reading over ssh needs the git server's host keys in the credential.")
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_text(credential.deploy_key.reveal().rstrip() + "\n")
    lines = {
        "HostName": ip,
        # As ssh-keyscan writes it.
        "HostKeyAlias": address.host if address.port == 22 else f"[{address.host}]:{address.port}",
        "IdentityFile": f'"{key}"',
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "BatchMode": "yes",
        "PasswordAuthentication": "no",
        "StrictHostKeyChecking": check,
        "UserKnownHostsFile": f'"{known}"',
        "GlobalKnownHostsFile": os.devnull,
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ProxyCommand": "none",
        "ControlMaster": "no",
        "ConnectTimeout": "15",
    }
    text = "".join(f"  {name} {value}\n" for name, value in lines.items())
    (folder / "ssh").write_text(f"Host *\n{text}")


def _not_installed(program: str) -> GitError:
    return GitError(f"{program} is not installed on the server. Install it to use stacks.")


def _start_of(file: IO[bytes], most: int) -> bytes:
    file.seek(0)
    return file.read(most)


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_size
            except FileNotFoundError:
                continue  # git renames its temporary files while it works
    return total
