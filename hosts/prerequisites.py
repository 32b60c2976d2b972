"""From a host's settings to the platform's own containers there; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.protocol.prerequisites import (
    NVIDIA_DRIVER,
    NVIDIA_TOOLKIT,
    ROUTER,
    ROUTER_NETWORK,
    ROUTES_FOLDER,
    DesiredPrerequisite,
    PrerequisiteMount,
    PrerequisiteSpec,
)
from agent.protocol.spec import PortSpec

if TYPE_CHECKING:
    from agent.protocol.state import HostSettings, NvidiaSettings, RouterSettings

ROUTER_IMAGE: Final = "traefik:v3.7"
_HTTP: Final = 80
_HTTPS: Final = 443
_SECURE: Final = "websecure"
# Where the driver container shows its files to the host, and the toolkit finds them.
_DRIVER_ROOT: Final = PrerequisiteMount(
    target="/run/nvidia", source="/run/nvidia", propagation="shared"
)
_TOOLKIT_ROOT: Final = "/usr/local/nvidia"
_ENGINE_CONFIG: Final = "/etc/docker"
_ENGINE_SOCKET: Final = "/var/run/docker.sock"


def desired_prerequisites(settings: HostSettings) -> tuple[DesiredPrerequisite, ...]:
    """Sorted by kind; what is switched off is not in it, and the agent then removes it."""
    found = [_router(settings.router)] if _wants_router(settings.router) else []
    nvidia = settings.nvidia
    if nvidia.deploy_driver and nvidia.driver_image:
        found.append(_driver(nvidia))
    if nvidia.deploy_toolkit and nvidia.toolkit_image:
        found.append(_toolkit(nvidia))
    return tuple(sorted(found, key=lambda item: item.kind))


def router_warning(*, mode: str, managed: bool) -> str:
    """Why these settings serve no URL, or not as they look; empty when they do."""
    if mode == "traefik-files" and not managed:
        return (
            "No router serves URLs here: mode traefik-files is for the router that Trailer runs "
            "itself. Switch “Trailer runs the router itself” (managed) on, or choose "
            "traefik-labels for a Traefik of your own."
        )
    if mode != "traefik-files" and managed:
        return (
            "Trailer runs a router only in mode traefik-files, so none is running. Choose that "
            "mode, or switch “Trailer runs the router itself” (managed) off."
        )
    return ""


def _wants_router(router: RouterSettings) -> bool:
    return router.managed and router.mode == "traefik-files"


def _router(router: RouterSettings) -> DesiredPrerequisite:
    """Traefik that reads the routes the agent writes, and nothing else: it never sees the engine,
    so that no label of an image can make a route."""
    entrypoint = router.entrypoint or "web"
    ports = {entrypoint: _HTTPS if entrypoint == _SECURE else _HTTP, _SECURE: _HTTPS}
    command = [
        f"--providers.file.directory={ROUTES_FOLDER}",
        "--providers.file.watch=true",
        "--providers.providersThrottleDuration=200ms",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
    ]
    for name, port in sorted(ports.items()):
        # `X_Trailer_User` is `X-Trailer-User` for many programs: no such spelling gets through.
        command += [f"--entrypoints.{name}.address=:{port}"]
        command += [f"--entrypoints.{name}.http.aliasheadersstrategy=delete"]
    if router.certresolver:
        resolver = f"--certificatesresolvers.{router.certresolver}.acme"
        command += [f"{resolver}.storage={ROUTES_FOLDER}/acme.json"]
        command += [f"{resolver}.tlschallenge=true"]
    return DesiredPrerequisite(
        kind=ROUTER,
        image=router.image or ROUTER_IMAGE,
        spec=PrerequisiteSpec(
            command=tuple(command),
            ports=tuple(
                PortSpec(container_port=port, host_port=port)
                for port in sorted(set(ports.values()))
            ),
            mounts=(
                PrerequisiteMount(kind="volume", source="trailer.router", target=ROUTES_FOLDER),
            ),
            network=router.network or ROUTER_NETWORK,
        ),
    )


def _driver(nvidia: NvidiaSettings) -> DesiredPrerequisite:
    """Builds and loads the kernel modules, and keeps them loaded while it runs."""
    return DesiredPrerequisite(
        kind=NVIDIA_DRIVER,
        image=nvidia.driver_image,
        spec=PrerequisiteSpec(
            entrypoint=("nvidia-driver",),
            command=("init",),
            mounts=(
                PrerequisiteMount(target="/lib/firmware", source="/lib/firmware"),
                _DRIVER_ROOT,
                PrerequisiteMount(target="/var/log", source="/var/log"),
            ),
            privileged=True,
            host_pid=True,
        ),
    )


def _toolkit(nvidia: NvidiaSettings) -> DesiredPrerequisite:
    """Installs the runtime `nvidia` into the engine's configuration and has the engine read it.
    It sees the host's processes because it signals the engine."""
    return DesiredPrerequisite(
        kind=NVIDIA_TOOLKIT,
        image=nvidia.toolkit_image,
        spec=PrerequisiteSpec(
            entrypoint=("nvidia-toolkit",),
            command=(_TOOLKIT_ROOT,),
            env={
                "DOCKER_SOCKET": _ENGINE_SOCKET,
                "RUNTIME": "docker",
                "RUNTIME_CONFIG": f"{_ENGINE_CONFIG}/daemon.json",
            },
            mounts=(
                PrerequisiteMount(target=_ENGINE_CONFIG, source=_ENGINE_CONFIG),
                _DRIVER_ROOT,
                PrerequisiteMount(target=_TOOLKIT_ROOT, source=_TOOLKIT_ROOT),
                PrerequisiteMount(target=_ENGINE_SOCKET, source=_ENGINE_SOCKET),
            ),
            privileged=True,
            host_pid=True,
        ),
    )
