"""deploy/compose.yaml for real: containers, TLS, three hosts, and every way in by its name."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.deployed.compose_scene import DOMAIN, HERE, NORTH, SOUTH, Deployment
from tests.e2e.live_socket import LiveSocket
from tests.e2e.sockets import SessionSocket
from tests.e2e.stack_scene import Site, client, file_of, web
from tests.ground.images import BUSYBOX, HTTPD, HTTPD_PAGE, RUN_UNTIL_STOPPED
from tests.ground.server import PASSWORD, USERNAME
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.gitserver import GitServer
    from tests.ground.server import RunningTrailer

SERVED = {"proxy", "postgres", "redis", "web", "sockets", "worker", "beat", "agent"}
SAYS = ["sh", "-c", "echo up and running; " + RUN_UNTIL_STOPPED[2]]
BUILT = f"FROM {BUSYBOX}\nRUN echo first-line; sleep 2; echo second-line\n"


@pytest.fixture(scope="module")
def deployment(git_server: GitServer, swept_machine: None) -> Iterator[Deployment]:
    made = Deployment(git_server)
    try:
        with made.started():
            yield made
    finally:
        made.destroy()


def test_everything_runs_and_three_hosts_keep_one_agent_each(deployment: Deployment) -> None:
    every = {HERE, NORTH, SOUTH}
    eventually(
        lambda: deployment.statuses() == dict.fromkeys(every, "online"), 90, deployment.story()
    )
    for name in every:
        deployment.wait_replaced(name)
    deployment.trailer.project.up("--profile", "agent")
    rows = deployment.trailer.project.containers()
    assert {name for name, row in rows.items() if row["State"] == "running"} == SERVED
    assert (rows["prepare"]["State"], rows["prepare"]["ExitCode"]) == ("exited", 0)
    assert deployment.count_processes("web", "gunicorn") == 1 + 2
    eventually(
        lambda: deployment.statuses() == dict.fromkeys(every, "online"), 90, deployment.story()
    )


def test_a_workspace_on_each_host_is_seen_read_and_entered(deployment: Deployment) -> None:
    user, trailer = deployment.user, deployment.trailer
    made = [deployment.workspace(name, f"box-{name}", command=SAYS) for name in deployment.hosts]
    live = LiveSocket(trailer, *(f"workspace:{row['id']}" for row in made))
    with closing(live):
        for row in made:
            seen = user.wait_for(row, "running")
            assert user.get(f"/workspaces/{row['id']}/")["host"] == row["host"]
            eventually(
                lambda row=row: live.latest(f"workspace:{row['id']}").get("status") == "running",  # type: ignore[misc]
                20,
                f"the page of {row['name']} does not follow",
            )
            path, token = f"{row['id']}", trailer.token()
            with SessionSocket(trailer, f"{path}/logs", token) as log:
                log.sees("up and running")
                assert log.hears("container") == seen["container_id"]
            with SessionSocket(trailer, f"{path}/exec", token, cols=80, rows=24) as shell:
                shell.type("echo sum=$((40+2)); exit 7\n")
                shell.sees("sum=42")
                assert shell.hears("exit") == 7
        for row in made:
            user.delete(f"/workspaces/{row['id']}/")
        for name, row in zip(deployment.hosts, made, strict=True):
            eventually(
                lambda name=name, row=row: row["container_name"] not in deployment.names(name),  # type: ignore[misc]
                30,
                f"{row['name']} was deleted and is still there",
            )


def test_an_image_is_built_and_its_log_read_meanwhile(deployment: Deployment) -> None:
    user = deployment.user
    body = {"name": "built", "host": deployment.hosts[NORTH], "kind": "build"}
    image = user.post("/images/", body | {"dockerfile": BUILT}, status=201)

    def early() -> bool:
        lines = user.build_log(image)[0].splitlines()
        assert "second-line" not in lines, "no line before the end"
        return "first-line" in lines

    eventually(early, 30, "the build does not begin", 0.1)
    assert user.wait_for_image(image, "finished")["size_bytes"] > 0
    assert "second-line" in user.build_log(image)[0].splitlines()
    user.delete(f"/images/{image['id']}/")


def test_a_stack_comes_from_git_follows_a_webhook_and_goes(deployment: Deployment) -> None:
    with closing(deployment.engines[SOUTH].client()) as engine:
        site = Site(deployment.trailer, deployment.git, engine)
        repository = deployment.git.repository("shop")
        repository.url = deployment.seen_from_inside(repository.url)
        first = repository.commit(file_of(web=web("one"), client=client()))
        stack = site.stack(repository, host=deployment.hosts[SOUTH])
        site.arrived(stack, "synced", commit=first)
        assert site.said(stack) == "one"
        second = repository.commit(file_of(web=web("two"), client=client()))
        assert site.webhook(stack).status_code == 202
        site.arrived(stack, "synced", commit=second)
        assert site.said(stack) == "two"
        site.remove(stack)


def test_pages_and_workspaces_urls_answer_over_tls(deployment: Deployment) -> None:
    visitor, page = requests.Session(), f"https://{DOMAIN}/login/"
    plain = visitor.get(f"http://{DOMAIN}/", timeout=30, allow_redirects=False)
    assert (plain.status_code, plain.headers["Location"]) == (308, f"https://{DOMAIN}/")
    assert visitor.get(page, timeout=30).ok
    answer = sign_in(visitor, page)
    assert (answer.status_code, answer.url) == (200, f"https://{DOMAIN}/")
    assert all(cookie.secure for cookie in visitor.cookies)
    assert answer.headers["Strict-Transport-Security"]
    urls: list[dict[str, Any]] = [{"subdomain": "site", "port": 80, "domain": DOMAIN}]
    row = deployment.workspace(
        HERE, "site", HTTPD, command=[], urls=[{**urls[0], "auth": "public"}]
    )
    deployment.user.wait_for(row, "running")
    shown = requests.get(f"https://site.{DOMAIN}/", timeout=30)
    assert (shown.status_code, shown.text) == (200, HTTPD_PAGE)
    deployment.user.delete(f"/workspaces/{row['id']}/")


def sign_in(visitor: requests.Session, page: str) -> requests.Response:
    """As a browser does it: with the page's token and where it came from."""
    words = {"username": USERNAME, "password": PASSWORD}
    token = visitor.cookies.get("__Host-csrftoken", path="/")
    return visitor.post(
        page,
        data={**words, "csrfmiddlewaretoken": token},
        headers={"Referer": page, "Accept": "text/html"},
        timeout=30,
    )


def test_the_database_is_backed_up_by_the_command_of_the_manual(deployment: Deployment) -> None:
    said = deployment.trailer.project.run(
        "exec", "-T", "web", "python3", "manage.py", "backup", "/tmp/trailer.tar.gz"
    )
    listed = deployment.trailer.project.run("exec", "-T", "web", "ls", "-l", "/tmp")
    assert "trailer.tar.gz" in listed, said


def test_requests_to_all_web_processes_are_counted_together(deployment: Deployment) -> None:
    counts = [requests_counted(deployment.trailer) for _ in range(12)]
    assert counts == sorted(counts), "a scrape saw one web process alone"
    assert counts[-1] - counts[0] >= len(counts) - 1


def requests_counted(trailer: RunningTrailer) -> float:
    headers = {"Authorization": f"Token {trailer.token()}"}
    text = trailer.session.get(f"{trailer.url}/metrics", headers=headers, timeout=30).text
    lines = [line for line in text.splitlines() if line.startswith("trailer_http_requests_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
