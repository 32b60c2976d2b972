"""The need `valkey` starts with its password and no trace of it; Redis stands in for its fork."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.ground import process
from tests.ground.wait import eventually
from workspaces.stacks.file.types import NeedSpec
from workspaces.stacks.needs.catalogue import need_service, new_credentials


def test_the_start_and_the_health_check_work_and_the_password_is_wanted(tmp_path: Path) -> None:
    credentials = new_credentials("valkey")
    service = need_service(NeedSpec(kind="valkey"), credentials)
    assert service.health_check is not None
    password, port = credentials["password"].reveal(), str(process.free_port())
    (tmp_path / "bin").mkdir()
    for name in ("server", "cli"):
        real = shutil.which(f"redis-{name}")
        assert real is not None
        # The port and the folder are those of the container; here they would be in the way.
        line = f'"$@" --port {port} --bind 127.0.0.1' if name == "server" else f'-p {port} "$@"'
        wrapper = tmp_path / "bin" / f"valkey-{name}"
        wrapper.write_text(f"#!/bin/sh\nexec {real} {line}\n")
        wrapper.chmod(0o755)

    def here(text: str) -> str:
        return text.replace("/tmp/valkey.conf", f"{tmp_path}/valkey.conf").replace(
            "--dir /data", f"--dir {tmp_path}"
        )

    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "VALKEY_PASSWORD": password}
    server = process.start([here(word) for word in service.command], tmp_path / "log", env=env)
    try:
        check = ["sh", "-c", service.health_check.test[1]]
        eventually(
            lambda: subprocess.run(check, env=env, check=False).returncode == 0,
            20,
            f"the health check does not pass: {process.tail(tmp_path / 'log')}",
        )
        wrong = {**env, "VALKEY_PASSWORD": "wrong"}
        assert subprocess.run(check, env=wrong, check=False).returncode != 0
        assert password not in Path(f"/proc/{server.pid}/cmdline").read_text()
        assert (tmp_path / "valkey.conf").stat().st_mode & 0o077 == 0
    finally:
        process.stop(server)
