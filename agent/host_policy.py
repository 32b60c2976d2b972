"""What this host's operator allows, whatever the server says: a local file, and pure rules."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.diff.view import object_key
from agent.errors import ConfigError
from agent.protocol.bases import dockerfile_problem, reserved_problem
from agent.protocol.binds import bind_problem
from agent.protocol.build_secrets import build_problem
from agent.protocol.naming import RESERVED_LABEL_PREFIXES
from agent.protocol.remote_sources import sources_problem
from agent.steps import IMAGE, NETWORK, PREREQUISITE, VOLUME, WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agent.config import Config
    from agent.protocol.prerequisites import PrerequisiteSpec
    from agent.protocol.spec import MountSpec, PortSpec, WorkspaceSpec
    from agent.protocol.state import (
        DesiredImage,
        DesiredNetwork,
        DesiredVolume,
        HostSettings,
        HostState,
    )

FILE_NAME: Final = "policy.toml"
_RANGE: Final = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_ASK: Final = "Ask the operator of this host."


@dataclass(frozen=True, kw_only=True)
class HostPolicy:
    """Without a file everything is allowed but what would hand out the host itself.

    None in a list's place means: no list, so nothing is compared with it.
    """

    # Devices and settings that give a container the host: nested virtualisation, driver set-up.
    privileged: bool = True
    # Containers of the platform itself: a managed router, NVIDIA's driver and toolkit.
    platform: bool = True
    gpus: bool = True
    macvlan: bool = True
    # A rule in the machine's packet filter that keeps containers from metadata addresses.
    metadata_guard: bool = True
    # Folders below which binds may lie.
    bind_paths: tuple[str, ...] | None = None
    # Ports that may be published, as "8000" or "8000-8999".
    host_ports: tuple[str, ...] | None = None
    # Patterns of the agent's own image that a server may roll out.
    agent_images: tuple[str, ...] | None = None
    # Entries of the server's list of places that builds may fetch from which hold here too.
    build_allow: tuple[str, ...] | None = None
    # Folders of the agent and of the engine, which no container may see.
    kept_paths: tuple[str, ...] = field(default=(), repr=False)

    def refusals(self, state: HostState, *, resolve: Callable[[str], str]) -> dict[str, str]:
        """Object key -> sentence, for each thing of the document that this host refuses.

        `resolve` follows the links of a path on this host.
        """
        found: dict[str, str] = {}
        for network in state.networks:
            _note(found, object_key(NETWORK, network.id), self._network_problems(network))
        for volume in state.volumes:
            _note(found, object_key(VOLUME, volume.id), self._volume_problems(volume, resolve))
        allow = self.settings(state.settings).build_allow
        for image in state.images:
            _note(found, object_key(IMAGE, image.id), _image_problems(image, allow))
        for needed in state.prerequisites:
            key = object_key(PREREQUISITE, needed.kind)
            _note(found, key, self._platform_problems(needed.spec, resolve))
        for workspace in state.workspaces:
            key = object_key(WORKSPACE, workspace.id)
            _note(found, key, self._workspace_problems(workspace.spec, resolve))
        return found

    def settings(self, given: HostSettings) -> HostSettings:
        """The server's settings without what this host refuses."""
        if not self.privileged:
            off = msgspec.structs.replace(given.nvidia, deploy_driver=False, deploy_toolkit=False)
            given = msgspec.structs.replace(given, nvidia=off)
        if not self.allows_agent(given.agent_image):
            given = msgspec.structs.replace(given, agent_image="", agent_order=0)
        if self.build_allow is not None:
            both = tuple(entry for entry in given.build_allow if entry in self.build_allow)
            given = msgspec.structs.replace(given, build_allow=both)
        return given

    def allows_agent(self, image: str) -> bool:
        """Whether the server may choose this image for the agent, or hand it out."""
        return self.agent_images is None or any(
            fnmatchcase(image, pattern) for pattern in self.agent_images
        )

    # --- one object ---------------------------------------------------------------------------

    def _network_problems(self, network: DesiredNetwork) -> Iterator[str]:
        if network.driver == "macvlan" and not self.macvlan:
            yield _refused("networks of driver macvlan")

    def _volume_problems(
        self, volume: DesiredVolume, resolve: Callable[[str], str]
    ) -> Iterator[str]:
        if volume.kind == "bind":
            yield from self._bind_problems(volume.source, resolve)

    def _platform_problems(
        self, spec: PrerequisiteSpec, resolve: Callable[[str], str]
    ) -> Iterator[str]:
        """With nothing closed they may have what they need of the host; that is their work."""
        if not self.platform:
            yield _refused("containers of the platform itself")
        if (spec.privileged or spec.host_pid) and not self.privileged:
            yield _refused("a privileged container")
        if self.bind_paths is not None or not self.privileged:
            for mount in spec.mounts:
                if mount.kind != "volume":
                    yield from self._bind_problems(mount.source, resolve)
        for port in spec.ports:
            yield from self._port_problems(port)

    def _workspace_problems(
        self, spec: WorkspaceSpec, resolve: Callable[[str], str]
    ) -> Iterator[str]:
        if spec.nested_virtualization and not self.privileged:
            yield _refused("nested_virtualization")
        if spec.gpus and not self.gpus:
            yield _refused("gpus")
        for label in spec.labels:
            if label.startswith(RESERVED_LABEL_PREFIXES):
                yield f"The label {label} is reserved: it could claim what is not its own."
        for mount in spec.mounts:
            yield from self._mount_problems(mount, resolve)
        for port in spec.ports:
            yield from self._port_problems(port)

    def _mount_problems(self, mount: MountSpec, resolve: Callable[[str], str]) -> Iterator[str]:
        if mount.kind == "bind":
            yield from self._bind_problems(mount.source, resolve)
        elif mount.kind != "volume":
            yield f"Mounts of kind {mount.kind} are not supported by this agent."
        elif not mount.source.startswith("trailer-") or "/" in mount.source:
            yield f"The volume {mount.source} is none of Trailer's and may not be mounted."

    def _bind_problems(self, source: str, resolve: Callable[[str], str]) -> Iterator[str]:
        """The path as it is written, then as the host would follow it."""
        for path in dict.fromkeys((source, resolve(source))):
            problem = bind_problem(path, also=self.kept_paths)
            if problem:
                yield problem
            elif self.bind_paths is not None and not any(
                PurePosixPath(path).is_relative_to(root) for root in self.bind_paths
            ):
                yield _refused(f"a bind mount of {path}")

    def _port_problems(self, port: PortSpec) -> Iterator[str]:
        if self.host_ports is None:
            return
        if port.host_port is None or not any(
            _in_range(port.host_port, given) for given in self.host_ports
        ):
            name = "a port of the engine's choice" if port.host_port is None else port.host_port
            yield _refused(f"publishing {name}")


def policy_of(config: Config) -> HostPolicy:
    """The file that the environment names, or the one in the state folder, if there is one."""
    return load_policy(
        config.policy_path or config.state_dir / FILE_NAME,
        required=config.policy_path is not None,
        kept_paths=(str(config.state_dir.resolve()),),
    )


def load_policy(path: Path, *, required: bool, kept_paths: tuple[str, ...]) -> HostPolicy:
    """Raise ConfigError for a file that cannot be followed: no policy is not a looser one."""
    try:
        given = tomllib.loads(path.read_text())
    except FileNotFoundError:
        if required:
            raise ConfigError(f"There is no policy file {path}.") from None
        return HostPolicy(kept_paths=kept_paths)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ConfigError(f"The policy file {path} cannot be read: {problem}") from problem
    kinds = {item.name: item.type for item in fields(HostPolicy) if item.name != "kept_paths"}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in kinds:
            raise ConfigError(
                f"The policy file {path} holds {name}, which is not one of {', '.join(kinds)}."
            )
        values[name] = _checked(path, name, value, is_switch=kinds[name] == "bool")
    return HostPolicy(**values, kept_paths=kept_paths)


def _checked(path: Path, name: str, value: Any, *, is_switch: bool) -> bool | tuple[str, ...]:
    if is_switch:
        if not isinstance(value, bool):
            raise ConfigError(f"{name} in the policy file {path} must be true or false.")
        return value
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{name} in the policy file {path} must be a list of texts.")
    for item in value:
        if name == "bind_paths" and not item.startswith("/"):
            raise ConfigError(f"{item!r} in bind_paths of {path} is not an absolute path.")
        if name == "host_ports" and not _RANGE.fullmatch(item):
            raise ConfigError(f"{item!r} in host_ports of {path} is no port or range of ports.")
    return tuple(value)


def _image_problems(image: DesiredImage, allow: Sequence[str]) -> Iterator[str]:
    """What was built before this rule is there, and may be used."""
    if image.kind == "pull":
        yield reserved_problem(image.ref)
    elif image.kind == "build" and not (image.build and image.build.done):
        yield dockerfile_problem(image.dockerfile, image.build_args)
        yield sources_problem(image.dockerfile, image.build_args, allow)
        yield build_problem(image.dockerfile, image.build_args, image.build_secrets)
        yield reserved_problem(image.reference) if image.push else ""


def _in_range(port: int, given: str) -> bool:
    first, _, last = given.partition("-")
    return int(first) <= port <= int(last or first)


def _refused(what: str) -> str:
    return f"This host's policy does not allow {what}. {_ASK}"


def _note(found: dict[str, str], key: str, problems: Iterator[str]) -> None:
    problem = next(filter(None, problems), "")
    if problem:
        found[key] = problem
