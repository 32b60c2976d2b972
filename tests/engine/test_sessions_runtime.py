"""Logs and terminals of the Docker adapter on a real engine: what only a real one can show."""

import io
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from agent.errors import EngineError
from agent.runtime.docker import DockerRuntime
from agent.runtime.session_port import ExecRecord, LogRequest
from tests.ground.engine import PrivateEngine
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.proxy import DockerApiProxy
from tests.ground.wait import eventually

BARE = "trailer-test/bare:1"


@pytest.fixture
def runtime(clean_engine: PrivateEngine) -> DockerRuntime:
    return DockerRuntime({"DOCKER_HOST": clean_engine.url})


@pytest.fixture
def locked(engine_client: docker.DockerClient) -> Container:
    """Nothing in it can be written, and nobody is root."""
    return engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, detach=True, read_only=True, user="1000:1000"
    )


@pytest.fixture
def bare(engine_client: docker.DockerClient) -> Iterator[Container]:
    """One program and no shell."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(Path("/bin/busybox"), "sleep")
    repository, _, tag = BARE.rpartition(":")
    engine_client.api.import_image_from_data(buffer.getvalue(), repository=repository, tag=tag)
    yield engine_client.containers.run(BARE, ["/sleep", "9000"], detach=True)
    for container in engine_client.containers.list(ignore_removed=True):
        container.remove(force=True)
    engine_client.images.remove(BARE, force=True)


def commands(container: Container) -> list[str]:
    return [str(row[1]) for row in container.top(ps_args="-o pid,args")["Processes"]]


def ignore(record: ExecRecord) -> None:
    """A test keeps no records."""


@pytest.mark.parametrize("host_pids", [True, False])
def test_every_process_of_a_terminal_ends_and_no_other(
    runtime: DockerRuntime, locked: Container, host_pids: bool
) -> None:
    runtime.host_pids = host_pids
    told: list[ExecRecord] = []
    script = "sleep 301 & (trap '' HUP TERM INT; sleep 302) & echo up; sleep 303"
    terminal = runtime.start_exec(str(locked.id), ("sh", "-c", script), told.append)
    bystander = runtime.start_exec(str(locked.id), ("sleep", "400"), ignore)
    assert terminal.read().startswith(b"up")
    assert next(record.inner_pid for record in told) == 0
    assert told[-1] == terminal.record
    assert terminal.record.inner_pid > 1
    assert bool(terminal.record.host_pid) is host_pids
    eventually(lambda: sum("sleep 30" in c for c in commands(locked)) >= 3, 10, "not all run")
    assert runtime.end_exec(terminal.record)
    left = commands(locked)
    assert not [c for c in left if "sleep 30" in c], left
    assert "sleep 400" in left
    # Ending what is over already is no error and harms nobody.
    assert runtime.end_exec(terminal.record)
    assert "sleep 400" in commands(locked)
    assert runtime.end_exec(bystander.record)
    for each in (terminal, bystander):
        assert each.exit_code() is not None
        each.close()
    locked.reload()
    assert not locked.attrs["ExecIDs"]


def test_an_answer_that_is_lost_does_not_count_as_nobody_left(
    clean_engine: PrivateEngine, proxy: DockerApiProxy, locked: Container
) -> None:
    runtime = DockerRuntime({"DOCKER_HOST": proxy.url})
    runtime.host_pids = False
    deaf = ("sh", "-c", "trap '' HUP; echo up; sleep 300")
    terminal = runtime.start_exec(str(locked.id), deaf, ignore)
    assert terminal.read().startswith(b"up")
    proxy.cut_stream("POST", "/exec/.*/start", after_bytes=0, times=2)
    assert runtime.end_exec(terminal.record)
    assert "sleep 300" not in commands(locked)
    terminal.close()


def test_a_shell_is_chosen_sized_and_answers(runtime: DockerRuntime, locked: Container) -> None:
    terminal = runtime.start_exec(str(locked.id), (), ignore)
    terminal.resize(111, 22)
    seen = b""
    terminal.write(b"stty size; exit 9\n")
    while data := terminal.read():
        seen += data
    assert b"22 111" in seen
    assert terminal.exit_code() == 9
    terminal.close()


def test_an_image_without_a_shell_runs_a_command_and_ends_it_from_the_host(
    runtime: DockerRuntime, bare: Container
) -> None:
    with pytest.raises(EngineError, match="no shell"):
        runtime.start_exec(str(bare.id), (), ignore)
    terminal = runtime.start_exec(str(bare.id), ("/sleep", "500"), ignore)
    assert terminal.record.inner_pid == 0
    eventually(lambda: "/sleep 500" in commands(bare), 5, "it does not run")
    assert runtime.end_exec(terminal.record)
    assert "/sleep 500" not in commands(bare)
    terminal.close()
    wrong = runtime.start_exec(str(bare.id), ("/nothing",), ignore)
    while wrong.read():
        pass
    assert wrong.exit_code() in (126, 127)


def test_a_container_that_is_gone_has_no_processes_left(
    runtime: DockerRuntime, locked: Container
) -> None:
    terminal = runtime.start_exec(str(locked.id), ("sleep", "300"), ignore)
    locked.remove(force=True)
    assert terminal.read() == b""
    assert runtime.end_exec(terminal.record)
    runtime.host_pids = False
    assert runtime.end_exec(terminal.record)


def test_logs_have_both_outputs_a_tail_times_and_a_beginning(
    runtime: DockerRuntime, engine_client: docker.DockerClient
) -> None:
    script = "for n in 1 2 3 4; do echo out $n; echo err $n >&2; sleep 0.05; done"
    container = engine_client.containers.run(BUSYBOX, ["sh", "-c", script], detach=True)
    container.wait()

    def read(**options: object) -> bytes:
        with closing(runtime.container_logs(str(container.id), LogRequest(**options))) as stream:  # type: ignore[arg-type]
            return b"".join(stream)

    assert sorted(read().split(b"\n")[:-1]) == sorted(
        b"%s %d" % (word, n) for word in (b"out", b"err") for n in range(1, 5)
    )
    assert len(read(tail=3).splitlines()) == 3
    stamped = read(timestamps=True).splitlines()
    times = [line.split()[0].decode() for line in stamped]
    assert times == sorted(times)
    later = read(since=times[4])
    assert len(later.splitlines()) == 4
    assert read(since=runtime.container_run(str(container.id)).finished_at) == b""
    # Follows to the end of the container, and no further.
    assert len(read(follow=True).splitlines()) == 8


def test_a_followed_log_is_cut_by_another_thread(
    runtime: DockerRuntime, locked: Container
) -> None:
    stream = runtime.container_logs(str(locked.id), LogRequest(follow=True))
    stream.close()
    assert list(stream) == []
