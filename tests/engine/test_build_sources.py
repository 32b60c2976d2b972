"""What builds add from elsewhere, on a real engine: it fetches nothing itself, and makes the same
of what the agent fetched as of what it would have fetched."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import pytest

from agent.engine_requests import BuildRequest
from agent.fetch.registry import RegistryGate
from agent.guard import table
from agent.protocol import naming
from agent.runtime.docker import DockerRuntime
from agent.runtime.docker_requests import DOCKERFILE_NAME
from agent.steps import BuildImage
from agent.work.images import ImageWork
from agent.work.sources import Sources
from tests.agent.fake_fetch import FakeFetcher
from tests.engine.cloud_scene import METADATA, SECRET, Cloud
from tests.ground.hostnet import SHARED_PORTS
from tests.ground.images import BUSYBOX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine

REF = "trailer/i-app:latest"
DATE = "Tue, 15 Nov 1994 12:45:26 GMT"
BUILDERS = pytest.mark.parametrize(
    "secrets", [{}, {"token": "canary-sources"}], ids=["older builder", "BuildKit"]
)


def archive() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        entry = tarfile.TarInfo("inside")
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"text"))
    return made.getvalue()


FILES = {"/a/app.bin": bytes(range(256)) * 3000, "/a/app.tar.gz": archive(), "/a/empty": b""}


class _Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = FILES.get(path, path.encode())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        if path.startswith("/a/app"):
            self.send_header("Last-Modified", DATE)
        if path.endswith("/named/"):
            self.send_header("Content-Disposition", 'attachment; filename="said.txt"')
        self.end_headers()
        self.wfile.write(body)
        self.server.asked.append(self.path)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        pass


class FileServer(ThreadingHTTPServer):
    """One that the engine of a simulated host reaches at the same address as this process."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Files)
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


@contextmanager
def shared_server() -> Iterator[FileServer]:
    for port in range(*SHARED_PORTS):
        try:
            server = FileServer(("0.0.0.0", port))
        except OSError:
            continue
        with server:
            yield server
        return


@pytest.fixture
def files() -> Iterator[FileServer]:
    with shared_server() as server:
        yield server


@pytest.fixture
def runtime(clean_engine: PrivateEngine) -> Iterator[DockerRuntime]:
    made = DockerRuntime({"DOCKER_HOST": clean_engine.url})
    yield made
    for ref in (REF, "hostile:1"):
        made.remove_image(ref)


class Built:
    """A build by the agent, to its end."""

    def __init__(
        self,
        runtime: DockerRuntime,
        scratch: Path,
        *lines: str,
        allow: tuple[str, ...] = (),
        base: str = BUSYBOX,
        **fields: Any,
    ) -> None:
        log: list[str] = []
        dockerfile = "\n".join((f"FROM {base}", *lines, ""))
        step = BuildImage(
            key="image:i-app",
            name="app",
            cause="wanted",
            image_id="i-app",
            build_id="b-app",
            request=BuildRequest(ref=REF, dockerfile=dockerfile, mark="trailer-build-m", **fields),
        )
        work = ImageWork(
            step,
            runtime,
            timeout=60,
            write=log.append,
            on_progress=lambda _: None,
            registries=RegistryGate(FakeFetcher()),
            sources=Sources(scratch=scratch, allow=allow),
        )
        ended = work.run()
        work.tidy(5)
        assert ended is not None
        self.status, self.message, self.log = ended.status, ended.message, "".join(log)


def by_engine(runtime: DockerRuntime, *lines: str, **fields: Any) -> None:
    """Without the agent's part: the engine fetches itself."""
    dockerfile = "\n".join((f"FROM {BUSYBOX}", *lines, ""))
    request = BuildRequest(ref=REF, dockerfile=dockerfile, **fields)
    stream = runtime.build_image(request, None)
    outputs = list(stream)
    stream.close()
    assert [output.error for output in outputs if output.error] == []


def content(client: docker.DockerClient) -> dict[str, tuple[object, ...]]:
    """Every file of the image that its base has not."""
    found: dict[str, tuple[object, ...]] = {}
    container = client.containers.create(REF, ["true"])
    try:
        parts: Any = container.export()
        exported = io.BytesIO(b"".join(parts))
    finally:
        container.remove()
    with tarfile.open(fileobj=exported) as tar:
        for entry in tar:
            # The Dockerfile, which is not the same, lies among the build's files.
            if (
                entry.isfile()
                and entry.name.startswith("t/")
                and DOCKERFILE_NAME not in entry.name
            ):
                file = tar.extractfile(entry)
                assert file is not None
                state = (oct(entry.mode), entry.uid, entry.gid, round(entry.mtime))
                found[entry.name] = (*state, file.read())
    return found


def sources_left(client: docker.DockerClient) -> list[str]:
    names = (name for image in client.images.list(all=True) for name in image.tags)
    return [name for name in names if naming.is_sources_image(name)]


@BUILDERS
def test_no_build_reads_what_listens_on_its_host_or_its_cloud(
    runtime: DockerRuntime,
    clean_engine: PrivateEngine,
    engine_client: docker.DockerClient,
    secrets: dict[str, str],
    tmp_path: Path,
) -> None:
    with Cloud(clean_engine) as cloud:
        server = cloud.host.run(FileServer, ("127.0.0.1", 0))
        with server:
            host = server.url.removeprefix("http://127.0.0.1")
            # The engine would.
            by_engine(runtime, f"ADD {server.url}/a /t/x", secrets=secrets)
            assert server.asked.pop() == "/a"
            by_engine(runtime, f"ADD http://{METADATA}/ /t/x", secrets=secrets)
            assert SECRET.encode() in [state[-1] for state in content(engine_client).values()]
            runtime.remove_image(REF)
            for url in (
                f"{server.url}/a",
                f"http://localhost{host}/a",
                f"http://2130706433{host}/a",
                f"http://0x7f.1{host}/a",
                f"http://[::ffff:127.0.0.1]{host}/a",
                f"http://h.example@127.0.0.1{host}/a",
                f"http://0.0.0.0{host}/a",
                f"http://{clean_engine.address}{host}/a",
                f"http://{METADATA}/latest/meta-data/",
                "http://2852039166/",
                f"http://[::ffff:{METADATA}]/",
            ):
                built = Built(runtime, tmp_path / "s", f"ADD {url} /t/x", secrets=secrets)
                assert (built.status, url) == ("failed", url)
                assert built.message.startswith("Line 2 of the Dockerfile: ")
                assert SECRET not in built.log
            lines = (f"ARG U={server.url}", "ENV V=${U}/a", 'ADD ["$V", "/t/x"]')
            built = Built(runtime, tmp_path / "s", *lines, secrets=secrets)
            assert built.message.startswith("Line 4 of the Dockerfile: ")
            assert server.asked == []
    assert REF not in [name for image in engine_client.images.list() for name in image.tags]
    assert sources_left(engine_client) == []


@BUILDERS
def test_steps_of_a_build_are_kept_from_the_metadata_address_as_containers_are(
    runtime: DockerRuntime,
    clean_engine: PrivateEngine,
    engine_client: docker.DockerClient,
    secrets: dict[str, str],
    tmp_path: Path,
) -> None:
    def said(number: int) -> bytes:
        fetch = f"RUN mkdir /t; wget -q -O - http://{METADATA}/{number} > /t/said 2>&1; true"
        built = Built(runtime, tmp_path / "s", fetch, secrets=secrets)
        assert built.message == ""
        text = content(engine_client)["t/said"][-1]
        assert isinstance(text, bytes)
        return text

    with Cloud(clean_engine) as cloud:
        assert said(1) == SECRET.encode()
        cloud.host.run(table.put)
        assert b"Connection refused" in said(2)
        cloud.host.run(table.remove)


@BUILDERS
def test_no_base_image_has_the_engine_fetch_for_it(
    runtime: DockerRuntime, files: FileServer, secrets: dict[str, str], tmp_path: Path
) -> None:
    for trigger in (
        f"ADD {files.url}/a /t/x",
        f"ADD http://{METADATA}/ /t/x",
        f'ADD --chown=1:1 ["{files.url}/a", "/t/x"]',
        "ADD $U /t/x",
    ):
        text = f"FROM {BUSYBOX}\nENV U={files.url}/a\nONBUILD {trigger}\n"
        assert list(runtime.build_image(BuildRequest(ref="hostile:1", dockerfile=text), None))
        built = Built(
            runtime,
            tmp_path / "s",
            base="hostile:1",
            secrets=secrets,
            allow=("127.0.0.0/8", "169.254.0.0/16"),
        )
        assert built.status == "failed"
        assert built.message.startswith("The base image hostile:1 has the trigger “ADD ")
        assert "Only an ADD of the Dockerfile itself" in built.message
    # A variable of its own does not turn a file into an address.
    lines = ("ARG U=here.txt", "ADD $U /t/x")
    text = f"FROM {BUSYBOX}\nENV U={files.url}/a\n"
    assert list(runtime.build_image(BuildRequest(ref="hostile:1", dockerfile=text), None))
    built = Built(
        runtime,
        tmp_path / "s",
        *lines,
        base="hostile:1",
        secrets=secrets,
        files=(("here.txt", "x"),),
    )
    assert "may set U itself, which an ADD of the Dockerfile uses" in built.message
    assert files.asked == []


# What both builders take.
LINES = [
    ["ADD {url}/a/app.bin /t/file"],
    ["ADD {url}/a/app.bin /t/d/"],
    ["ADD {url}/a/app.bin?x=1 /t/d/"],
    ["RUN mkdir -p /t/there", "ADD {url}/a/app.bin /t/there"],
    ["WORKDIR /t", "ADD {url}/a/app.bin ."],
    ["WORKDIR /t", "ADD {url}/a/app.bin e/f/"],
    ["ADD {url}/a/app.tar.gz /t/"],
    ["ADD {url}/a/empty /t/"],
    ["ADD --chown=5:6 {url}/a/app.bin /t/"],
    ["ADD {url}/a/app.bin {url}/b/other {url}/b/third /t/"],
    ['ADD ["{url}/a/app.bin", "/t/x y"]'],
    ["ADD {url}/b/c%20d%2A%5Be%5D /t/"],
    ["ADD {url}/b/%E2%82%AC /t/"],
    ["ADD {url}/b/x;y=1 /t/"],
    ["ARG P=a", "ENV D=/t/u", "ADD {url}/$P/app.bin $D/"],
    ["ADD {url}/b/one /t/same", "ADD {url}/b/two /t/same"],
    ["ADD {url}/b/one /t/", "COPY . /t/all/"],
    ["ENV V=here", "ADD $V.tar.gz /t/v/", "ADD {url}/b/one /t/"],
    ["ADD {url} /t/root"],
]
OF_THE_OLDER = [["ADD {url}/b/named/ /t/"], ["ADD {url}/b/slash/ /t/x"]]
OF_BUILDKIT = [
    ["ADD {url}/b/slash/ /t/"],
]


@BUILDERS
def test_what_the_agent_fetched_ends_as_if_the_engine_had(
    runtime: DockerRuntime,
    engine_client: docker.DockerClient,
    files: FileServer,
    secrets: dict[str, str],
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {
        "secrets": secrets,
        "files": (("here.txt", "here\n"), ("here.tar.gz", "no archive\n")),
    }
    for lines in [*LINES, *(OF_BUILDKIT if secrets else OF_THE_OLDER)]:
        wanted = [line.replace("{url}", files.url) for line in lines]
        by_engine(runtime, *wanted, **given)
        expected = content(engine_client)
        files.asked.clear()
        built = Built(runtime, tmp_path / "s", *wanted, allow=("127.0.0.1",), **given)
        assert (built.message, lines) == ("", lines)
        assert content(engine_client) == expected
        assert expected, lines
        assert len(files.asked) == sum(line.count("{url}") for line in lines)
    assert sources_left(engine_client) == []
    assert list((tmp_path / "s").iterdir()) == []


def test_what_buildkit_has_beside_that_counts(
    runtime: DockerRuntime, engine_client: docker.DockerClient, files: FileServer, tmp_path: Path
) -> None:
    """The mode also where the engine's own BuildKit forgets it for what it fetched."""
    digest = hashlib.sha256(FILES["/a/app.bin"]).hexdigest()
    line = f"ADD --chmod=751 --checksum=sha256:{digest} {files.url}/a/app.bin /t/"
    given: dict[str, Any] = {"allow": ("127.0.0.1",), "secrets": {"token": "canary-sources"}}
    built = Built(runtime, tmp_path / "s", line, **given)
    assert built.message == ""
    ((name, state),) = content(engine_client).items()
    assert (name, state[0], state[-1]) == ("t/app.bin", "0o100751", FILES["/a/app.bin"])
    built = Built(runtime, tmp_path / "s", line.replace(digest, "0" * 64), **given)
    assert f"Its checksum is sha256:{digest}, not sha256:0000" in built.message


@BUILDERS
def test_what_did_not_change_comes_from_the_engines_cache(
    runtime: DockerRuntime, files: FileServer, secrets: dict[str, str], tmp_path: Path
) -> None:
    lines = (f"ADD {files.url}/a/app.bin /t/", "RUN date +%s%N > /t/when; cat /t/when")
    ids = set()
    for _ in range(2):
        built = Built(runtime, tmp_path / "s", *lines, allow=("127.0.0.1",), secrets=secrets)
        assert built.message == ""
        ids.add(runtime.inspect_image(REF).id)
    assert len(ids) == 1
