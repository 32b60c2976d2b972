"""`python -m agent.runtime.docker_agent_image <base> <version> <root>` makes the agent's image.

It is built on the engine from deploy/agent.Dockerfile in `root`, and written to standard output as
`docker save` would. Where that is not possible it ends with 1 and a sentence on standard error.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from agent.errors import AgentError, StepFailed
from agent.protocol import PROTOCOL_VERSION
from agent.protocol.naming import agent_image_name
from agent.runtime.docker_client import Connections
from agent.runtime.docker_output import build_output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PATIENCE = 600
_DOCKERFILE = "deploy/agent.Dockerfile"


def main(arguments: Sequence[str]) -> int:
    base, version, root = arguments
    environment = {k: v for k, v in os.environ.items() if k.startswith("DOCKER_")}
    try:
        _build_and_save(environment, base, version, Path(root), sys.stdout.buffer)
    except (AgentError, OSError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


def _build_and_save(
    environment: Mapping[str, str], base: str, version: str, root: Path, target: IO[bytes]
) -> None:
    engine = Connections(dict(environment))
    client: Any = engine.own_client(_PATIENCE)
    name = agent_image_name(version)
    arguments = {"BASE": base, "VERSION": version, "PROTOCOL": str(PROTOCOL_VERSION)}
    try:
        said = engine.run(
            lambda _: list(
                build_output(
                    client.build(
                        fileobj=_context(root),
                        custom_context=True,
                        dockerfile=_DOCKERFILE,
                        tag=name,
                        buildargs=arguments,
                        rm=True,
                        forcerm=True,
                        decode=True,
                    )
                )
            ),
        )
        problem = next((line.error for line in said if line.error), "")
        if problem:
            raise StepFailed(f"The agent's image could not be built from {base}: {problem}")
        engine.run(lambda _: target.writelines(client.get_image(name)))
    finally:
        client.close()


def _context(root: Path) -> IO[bytes]:
    """What the Dockerfile copies; the rest of the folder is not the engine's affair."""
    paths = [root / _DOCKERFILE, root / "deploy" / "agent-requirements.txt"]
    paths += sorted((root / "agent").rglob("*.py"))
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        for path in paths:
            entry = tarfile.TarInfo(str(path.relative_to(root)))
            content = path.read_bytes()
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    body.seek(0)
    return body


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
