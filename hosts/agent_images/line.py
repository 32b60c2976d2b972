"""The line that is pasted on a host: it makes a machine one of this server's hosts.

What it runs gets the engine's socket and is root there, so it never runs what a name happens to
mean. Without TRAILER_AGENT_IMAGE it loads the image from this server and compares it with a digest
that is in the line before the engine sees any of it; otherwise it names the image by its digest.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hosts.agent_images.store import AgentArchive

# As `uname -m` says it, beside the engine's own word.
_SPELLINGS: Final = {
    "386": "386|i386|i686",
    "amd64": "amd64|x86_64",
    "arm": "arm|armv6l|armv7l",
    "arm64": "arm64|aarch64",
}
# `$1` is the word for what is missing. A failed step ends the script, and nothing was run.
_SCRIPT: Final = """\
set -eu; fail() {{ echo "Trailer: $1" >&2; exit 1; }}; \
command -v docker >/dev/null || fail "This machine has no docker command."; \
command -v sha256sum >/dev/null || fail "This machine has no sha256sum command."; \
arch=$(docker version -f "{{{{.Server.Arch}}}}" 2>/dev/null) || arch=$(uname -m); \
case "$arch" in {cases} \
*) fail "The server has no agent image for $arch. Set TRAILER_AGENT_IMAGE there.";; esac; \
dir=$(mktemp -d); trap "rm -rf \\"$dir\\"" EXIT; url={url}/$digest; \
auth="Authorization: Bearer {token}"; echo "Trailer: fetching the agent for $arch"; \
if command -v curl >/dev/null; \
then curl -fsSL --retry 3 -H "$auth" -o "$dir/agent" "$url" || rm -f "$dir/agent"; \
elif command -v wget >/dev/null; \
then wget -q --header "$auth" -O "$dir/agent" "$url" || rm -f "$dir/agent"; \
else fail "This machine has neither curl nor wget."; fi; \
test -s "$dir/agent" || fail "The agent could not be fetched from $url. This line holds for 15 \
minutes and works once: get a new one on the page of the host."; \
echo "$digest  $dir/agent" | sha256sum -c >/dev/null 2>&1 || fail "What came from $url is not the \
image that this line names. Nothing was loaded."; \
docker load -q -i "$dir/agent"; {run}"""


def image_line(token: str, image: str, *, server_url: str, is_local: bool) -> str:
    """`is_local`: an image that the host has already; its engine asks nobody for it."""
    never = ["--pull=never"] if is_local else []
    return shlex.join([*_run_words(token, server_url), *never, image])


def archive_line(token: str, archives: Sequence[AgentArchive], *, server_url: str) -> str:
    """For a host that gets the image from this server. Words after the line are options of its
    `docker run`."""
    cases = " ".join(
        f"{_SPELLINGS.get(each.architecture, each.architecture)}) digest={each.digest};;"
        for each in archives
    )
    # The same name for all: only the archive differs.
    words = shlex.join([*_run_words(token, server_url), "--pull=never"])
    run = f'{words} "$@" {archives[0].image}'
    script = _SCRIPT.format(
        cases=cases,
        url=shlex.quote(f"{server_url}/api/agent/v1/images"),
        token=token,
        run=run,
    )
    return shlex.join(["sh", "-c", script, "trailer"])


def _run_words(token: str, server_url: str) -> list[str]:
    return [
        *("docker", "run", "-d", "--name", "trailer-agent", "--restart", "unless-stopped"),
        # The host's own network: its interfaces are the parents of macvlan networks, workspaces
        # of every network are in reach, and the server is found as the host finds it.
        *("--network", "host"),
        # With the containers' own files in sight, metrics cost no engine call.
        *("--pid", "host", "--cgroupns", "host", "-v", "/sys/fs/cgroup:/sys/fs/cgroup:ro"),
        *("-v", "/var/run/docker.sock:/var/run/docker.sock"),
        *("-v", "trailer-agent:/var/lib/trailer"),
        *("--label", "trailer.agent=true"),
        *("-e", f"TRAILER_SERVER_URL={server_url}"),
        *("-e", f"TRAILER_ENROLMENT_TOKEN={token}"),
    ]
