"""The line that is pasted on a host, run by a real shell: it loads what it names, or nothing."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from hosts.agent_images.store import archive_adopt, problem_note
from tests.factories import api_client
from tests.ground.saved_image import AGENT_NAME, saved_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hosts.agent_images.store import AgentArchive
    from hosts.models import Host
    from trailer.accounts.models import User

# Writes down what it is asked, with the archive that it is to load.
DOCKER = """#!/bin/sh
case "$1" in
  version) if [ -n "$ARCH" ]; then echo "$ARCH"; else exit 1; fi;;
  load) cp "$4" "$TOLD/loaded"; echo "Loaded image";;
  *) for word in "$@"; do echo "$word"; done > "$TOLD/ran";;
esac
"""
TOOLS = ("sh", "uname", "mktemp", "rm", "test", "sha256sum", "cp")


@pytest.fixture(autouse=True)
def data_dir(settings: Any, tmp_path: Path) -> None:
    settings.TRAILER_DATA_DIR = tmp_path / "data"


class Machine:
    """A host with these programs and no others; `arch` is what its engine says, if it answers."""

    def __init__(self, folder: Path, *tools: str, arch: str = "amd64") -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir(parents=True)
        for tool in (*TOOLS, *tools):
            found = shutil.which(tool)
            assert found, tool
            (self.programs / tool).symlink_to(found)
        (self.programs / "docker").write_text(DOCKER)
        (self.programs / "docker").chmod(0o755)
        self.arch = arch

    def paste(self, line: str) -> subprocess.CompletedProcess[str]:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        own = {"PATH": str(self.programs), "ARCH": self.arch, "TOLD": str(self.folder)}
        done = subprocess.run(
            ["sh", "-c", line],
            env={**own, "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert list(temporary.iterdir()) == [], "it leaves files behind"
        return done

    @property
    def ran(self) -> list[str]:
        path = self.folder / "ran"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def loaded(self) -> bytes:
        path = self.folder / "loaded"
        return path.read_bytes() if path.exists() else b""


@contextmanager
def served(settings: Any, body: bytes, status: int = 200) -> Iterator[list[tuple[str, str]]]:
    """The server's address answers with this; what was asked, with which credential."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        settings.TRAILER_PUBLIC_URL = f"http://127.0.0.1:{server.server_address[1]}"
        yield asked
        server.shutdown()


def adopted(**values: Any) -> AgentArchive:
    return archive_adopt(io.BytesIO(saved_image(**values)))


def enrolment(admin: User, host: Host) -> Any:
    answer = api_client(admin).post(f"/api/v1/hosts/{host.pk}/enrolment/")
    assert answer.status_code == 201
    return answer.json()


@pytest.mark.parametrize("client", ["curl", "wget"])
def test_the_line_fetches_checks_loads_and_runs_the_image(
    client: str, settings: Any, host: Host, admin: User, tmp_path: Path
) -> None:
    made = adopted()
    machine = Machine(tmp_path / "host", client)
    with served(settings, made.path.read_bytes()) as asked:
        body = enrolment(admin, host)
        assert "\n" not in body["command"]
        done = machine.paste(f"{body['command']} -e MINE=1")
    assert done.returncode == 0, done.stderr
    assert asked == [(f"/api/agent/v1/images/{made.digest}", f"Bearer {body['token']}")]
    assert machine.loaded == made.path.read_bytes()
    assert machine.ran[:2] == ["run", "-d"]
    assert machine.ran[-4:] == ["--pull=never", "-e", "MINE=1", AGENT_NAME]
    assert f"TRAILER_ENROLMENT_TOKEN={body['token']}" in machine.ran
    assert (body["image"], body["digests"], body["problem"]) == (
        AGENT_NAME,
        {"amd64": made.digest},
        "",
    )


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"another image", "not the image that this line names. Nothing was loaded"),
        (200, b"", "could not be fetched"),
        (401, b"no", "could not be fetched"),
        (302, b"", "could not be fetched"),
        (404, b"gone", "get a new one on the page of the host"),
    ],
)
@pytest.mark.parametrize("client", ["curl", "wget"])
def test_anything_but_the_named_image_is_not_loaded(
    client: str, status: int, body: bytes, said: str, settings: Any, host: Host, admin: User,
    tmp_path: Path,
) -> None:  # fmt: skip
    adopted()
    machine = Machine(tmp_path / "host", client)
    with served(settings, body, status):
        done = machine.paste(enrolment(admin, host)["command"])
    assert done.returncode != 0
    assert said in done.stderr
    assert (machine.loaded, machine.ran) == (b"", [])


def test_each_architecture_gets_its_own_image_and_another_none(
    settings: Any, host: Host, admin: User, tmp_path: Path
) -> None:
    arm, amd = adopted(architecture="arm64"), adopted()
    for number, (arch, archive) in enumerate(
        (("arm64", arm), ("aarch64", arm), ("amd64", amd), ("x86_64", amd))
    ):
        machine = Machine(tmp_path / str(number), "curl", arch=arch)
        with served(settings, archive.path.read_bytes()) as asked:
            assert machine.paste(enrolment(admin, host)["command"]).returncode == 0
        assert asked[0][0].endswith(archive.digest)
    machine = Machine(tmp_path / "other", "curl", arch="s390x")
    with served(settings, b"") as asked:
        done = machine.paste(enrolment(admin, host)["command"])
    assert "no agent image for s390x. Set TRAILER_AGENT_IMAGE" in done.stderr
    assert (asked, machine.ran) == ([], [])


def test_where_the_engine_does_not_say_its_architecture_the_machine_does(
    settings: Any, host: Host, admin: User, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "host", "curl", arch="")
    spelled = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    made = adopted(architecture=spelled)
    with served(settings, made.path.read_bytes()):
        assert machine.paste(enrolment(admin, host)["command"]).returncode == 0
    assert machine.loaded == made.path.read_bytes()


@pytest.mark.parametrize(
    ("missing", "said"), [("sha256sum", "no sha256sum"), ("docker", "no docker"), ("curl", "wget")]
)
def test_a_program_that_is_missing_is_named_before_anything_is_fetched(
    missing: str, said: str, settings: Any, host: Host, admin: User, tmp_path: Path
) -> None:
    made = adopted()
    machine = Machine(tmp_path / "host", "curl")
    (machine.programs / missing).unlink()
    with served(settings, made.path.read_bytes()) as asked:
        done = machine.paste(enrolment(admin, host)["command"])
    assert said in done.stderr
    assert (asked, machine.loaded, machine.ran) == ([], b"", [])


def test_without_any_image_the_line_runs_only_what_was_built_on_the_host(
    host: Host, admin: User, tmp_path: Path
) -> None:
    problem_note("python:3.12-slim could not be pulled.")
    body = enrolment(admin, host)
    assert "python:3.12-slim could not be pulled." in body["problem"]
    assert "TRAILER_AGENT_IMAGE" in body["problem"]
    machine = Machine(tmp_path / "host")
    assert machine.paste(body["command"]).returncode == 0
    assert machine.ran[-2:] == ["--pull=never", AGENT_NAME]


@pytest.mark.parametrize("url", ["https://it's.example.org", "https://example.org/$(touch x)"])
def test_no_character_of_the_servers_address_is_a_command(
    url: str, settings: Any, host: Host, admin: User, tmp_path: Path
) -> None:
    adopted()
    settings.TRAILER_PUBLIC_URL = url
    machine = Machine(tmp_path / "host")
    curl = machine.programs / "curl"
    curl.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done > "$TOLD/fetched"\n')
    curl.chmod(0o755)
    machine.paste(enrolment(admin, host)["command"])
    assert (machine.folder / "fetched").read_text().splitlines()[-1].startswith(f"{url}/api/")
    assert not Path("x").exists()
