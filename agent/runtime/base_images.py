"""The images that a build is made from: here before it, without triggers that reach further."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agent.errors import EngineError, NotFound
from agent.protocol.arguments import UNCLEAR
from agent.protocol.bases import dockerfile_bases
from agent.protocol.remote_sources import stage_variables
from agent.protocol.triggers import triggers_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent.engine_requests import BuildRequest
    from agent.protocol.bases import Base
    from agent.runtime.docker_client import Connections

_OF_THE_HOST: Final = re.compile(
    r"linux|\$(?:(?:BUILD|TARGET)PLATFORM|\{(?:BUILD|TARGET)PLATFORM\})"
)
_SPELLINGS: Final = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}


class MissingBase(NotFound):
    """The engine would fetch it by itself in the middle of the build, triggers and all."""

    def __init__(self, ref: str) -> None:
        super().__init__(f"The base image {ref} is not on this host.")
        self.ref = ref


def check_bases(engine: Connections, request: BuildRequest) -> None:
    """One look at each; raises where the build must not begin."""
    bases = dockerfile_bases(request.dockerfile, request.build_args, built_target(request))
    seen: dict[str, Any] = {}
    for base in bases:
        if base.text not in seen:
            seen[base.text] = _inspected(engine, base.text)
        # Some versions of BuildKit make a stage of every image, triggers included.
        if not base.begins and not request.secrets:
            continue
        raw = seen[base.text]
        config = raw.get("Config") or {}
        triggers = config.get("OnBuild") or ()
        problem = triggers_problem(base, triggers, request.secrets)
        problem = problem or _variables_problem(base, config, triggers, request.filled_in)
        problem = problem or platform_problem(
            base, raw, lambda: _host_platform(engine), is_strict=bool(request.secrets)
        )
        if problem:
            raise EngineError(problem)


def built_target(request: BuildRequest) -> str:
    """The stage behind which nothing is built. BuildKit may copy from later ones by number."""
    return "" if request.secrets else request.target


def platform_problem(
    base: Base, raw: Mapping[str, Any], host: Callable[[], str], *, is_strict: bool
) -> str:
    """An engine fetches another image than the one here when it wants it for another machine.
    Without a word about it only BuildKit does that, which `is_strict`."""
    wanted = base.platform
    if not wanted and not is_strict:
        return ""
    if not wanted or _OF_THE_HOST.fullmatch(wanted):
        wanted = host()
    if UNCLEAR.search(wanted):
        return f"It is not clear which platform {wanted} is. Write it plainly, or leave it out."
    here = "/".join(str(raw.get(key) or "") for key in ("Os", "Architecture"))
    if _comparable(wanted) == _comparable(here):
        return ""
    return (
        f"The base image {base.text} is on this host for {here}, and the build wants it for "
        f"{wanted}. Leave --platform out, or have the base image pulled anew (pull_base)."
    )


def _variables_problem(
    base: Base,
    config: Mapping[str, Any],
    triggers: Sequence[str],
    filled_in: Mapping[str, frozenset[str]],
) -> str:
    """An ENV counts more than an ARG of the same name, and it is the image's own."""
    used = filled_in.get(base.text, frozenset())
    set_by_triggers = stage_variables(triggers)
    names = {str(pair).partition("=")[0] for pair in config.get("Env") or ()}
    taken = used if set_by_triggers is None else used & (names | set_by_triggers)
    if not taken:
        return ""
    return (
        f"The base image {base.text} may set {min(taken)} itself, which an ADD of the Dockerfile "
        "uses. Give the argument another name, or write the source plainly."
    )


def _comparable(platform: str) -> list[str]:
    """Without the variant, of which a host has one; a single word is the processor."""
    words = [_SPELLINGS.get(word, word) for word in platform.lower().split("/")]
    return words[:2] if len(words) > 1 else ["linux", *words]


def _inspected(engine: Connections, ref: str) -> Any:
    try:
        return engine.run(lambda api: api.inspect_image(ref))
    except NotFound as problem:
        raise MissingBase(ref) from problem


def _host_platform(engine: Connections) -> str:
    told = engine.run(lambda api: api.version())
    return f"{told.get('Os')}/{told.get('Arch')}"
