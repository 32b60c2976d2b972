"""The production file: every process is there, nothing has a default secret, names agree."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from tests.ground import front_door, production_set
from tests.ground.process import LOOPBACK
from trailer.standalone.jobs import SPARE_THREADS

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded["services"]  # type: ignore[no-any-return]


def test_every_process_of_the_design_has_a_service(services: dict[str, Any]) -> None:
    assert {"proxy", "postgres", "redis", "web", "sockets", "worker", "beat", "agent"} <= set(
        services
    )
    assert "trailer.wsgi" in services["web"]["command"]
    assert "trailer.pacing" in services["sockets"]["command"]


def test_passwords_have_no_default(services: dict[str, Any]) -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    assert "${POSTGRES_PASSWORD:?" in text
    assert "${REDIS_PASSWORD:?" in text
    example = (DEPLOY / "production.env.example").read_text()
    for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "SECRET_KEY", "TRAILER_ADMIN_PASSWORD"):
        assert re.search(rf"^{name}=$", example, re.MULTILINE)


def test_every_variable_of_the_file_is_in_the_example(services: dict[str, Any]) -> None:
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    used |= {name for name, value in services["web"]["environment"].items() if value is None}
    named = set(re.findall(r"^#?(\w+)=", (DEPLOY / "production.env.example").read_text(), re.M))
    assert used <= named


def test_every_setting_of_the_server_can_be_set_in_production(services: dict[str, Any]) -> None:
    """A container knows no variable that the file does not hand on."""
    code = (DEPLOY.parent / "trailer" / "settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', code))
    packed = set(
        re.findall(r"^ +(?:ENV )?(TRAILER_\w+)=", (DEPLOY / "server.Dockerfile").read_text(), re.M)
    )
    assert "TRAILER_OIDC_ISSUER" in read
    for name in ("prepare", "web", "sockets", "worker", "beat"):
        # The port is the command's matter there.
        assert read <= {*services[name]["environment"], *packed, "TRAILER_BIND"}, name


def test_web_processes_are_counted_together(services: dict[str, Any]) -> None:
    """Each in a memory of its own, a scrape would see one of them, and every time another."""
    folder = services["web"]["environment"]["PROMETHEUS_MULTIPROC_DIR"]
    assert [where.partition(":")[0] for where in services["web"]["tmpfs"]] == [folder]


def test_the_agent_is_one_that_an_overseer_can_replace(services: dict[str, Any]) -> None:
    agent = services["agent"]
    assert agent["container_name"] == "trailer-agent"
    assert agent["labels"] == {"trailer.agent": "true"}
    assert "agent:/var/lib/trailer" in agent["volumes"]


def test_health_checks_ask_under_a_name_that_is_answered(services: dict[str, Any]) -> None:
    for name in ("web", "sockets"):
        asked = re.search(r"http://([\d.]+):8000", " ".join(services[name]["healthcheck"]["test"]))
        allowed = services[name]["environment"]["TRAILER_ALLOWED_HOSTS"].split(",")
        assert asked is not None
        assert asked[1] in allowed


def test_the_database_is_asked_where_it_answers_only_after_its_set_up(
    services: dict[str, Any],
) -> None:
    assert "127.0.0.1" in services["postgres"]["healthcheck"]["test"]


def test_the_servers_image_can_back_up_the_database_of_the_file(services: dict[str, Any]) -> None:
    """An older pg_dump refuses a newer server."""
    client_of = {"bookworm": 15, "trixie": 17}
    dockerfile = (DEPLOY / "server.Dockerfile").read_text()
    base = re.search(r"^ARG BASE=python:[\d.]+-slim-(\w+)$", dockerfile, re.MULTILINE)
    assert base is not None
    assert services["postgres"]["image"] == f"postgres:{client_of[base[1]]}"


def with_defaults(words: list[str]) -> list[str]:
    return [re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in words]


def test_the_tested_processes_are_those_of_the_file(services: dict[str, Any]) -> None:
    """Word for word; only addresses, places and the number of web processes differ."""
    tested = production_set.commands(web=1, sockets=2, data=Path("/nowhere"))
    elsewhere = {
        sys.executable: "python3",
        f"{LOOPBACK}:1": "0.0.0.0:8000",
        LOOPBACK: "0.0.0.0",
        "2": "8000",
        "/nowhere/schedule": "/tmp/schedule",
    }
    for name, here in zip(("web", "sockets", "worker", "beat"), tested, strict=True):
        words = [str(word) for word in here]
        if "-w" in words:
            words[words.index("-w") + 1] = "4"
        words = [elsewhere.get(word, word) for word in words]
        assert with_defaults(services[name]["command"]) == words


def test_the_worker_has_threads_left_when_all_stacks_are_synced(services: dict[str, Any]) -> None:
    worker = with_defaults(services["worker"]["command"])
    threads = int(worker[worker.index("-c") + 1])
    (parallel,) = with_defaults([services["worker"]["environment"]["TRAILER_STACK_PARALLEL"]])
    assert int(parallel) == settings.TRAILER_STACK_PARALLEL
    assert threads >= int(parallel) + SPARE_THREADS


def test_caddy_sends_sockets_and_workspaces_urls_to_the_process_made_for_them() -> None:
    text = front_door.rules(
        port=80, url_domain="localhost", web="web:8000", sockets="sockets:8000"
    )
    assert re.search(r"@sockets path /ws/\*\s+reverse_proxy @sockets sockets:8000", text)
    names = text.partition("http://*.localhost:80 {")[2]
    assert "sockets:8000" in names
    assert "web:8000" not in names


def test_the_deployed_rules_of_caddy_are_valid(tmp_path: Path) -> None:
    names = {"TRAILER_DOMAIN": "trailer.internal", "TRAILER_URL_DOMAIN": "apps.internal"}
    done = subprocess.run(
        [front_door.CADDY, "adapt", "--config", front_door.CADDYFILE, "--adapter", "caddyfile"],
        capture_output=True,
        text=True,
        check=False,
        env={**names, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    routes = json.loads(done.stdout)["apps"]["http"]["servers"]["srv0"]["routes"]
    hosts = {name for route in routes for match in route["match"] for name in match["host"]}
    assert hosts == {"trailer.internal", "*.apps.internal"}


def test_what_a_service_waits_for_can_come(services: dict[str, Any]) -> None:
    for name, service in services.items():
        waits = service.get("depends_on", {})
        for other in waits:
            condition = waits[other]["condition"] if isinstance(waits, dict) else ""
            assert other in services, f"{name} waits for {other}"
            assert condition != "service_healthy" or "healthcheck" in services[other]
            assert condition != "service_completed_successfully" or (
                services[other]["restart"] == "no"
            )
