"""A stack file is read as Compose reads it, and what is not supported is named with its line."""

from __future__ import annotations

from textwrap import dedent

import pytest

from agent.protocol.spec import GpuSpec, HealthCheckSpec, PortSpec
from workspaces.stacks.file.errors import StackFileError
from workspaces.stacks.file.order import start_order
from workspaces.stacks.file.reader import read_stack_file
from workspaces.stacks.file.types import (
    Dependency,
    DomainSpec,
    NeedSpec,
    NetworkSpec,
    ServiceSpec,
    StackFile,
    VolumeMount,
    VolumeSpec,
)

WHOLE = """
name: shop
x-logging: &common
  environment: {LOG: info}
services:
  web:
    <<: *common
    image: shop/web:1.10
    command: serve --title "two words"
    ports:
      - "8080:80"
      - 127.0.0.1:22:22
      - {target: 53, published: 5353, protocol: udp}
    expose: [80]
    volumes:
      - data:/data
      - /srv/in:/in:ro
      - {type: volume, source: shared, target: /shared, read_only: true}
    networks: [default, back, edge]
    healthcheck:
      test: curl -f http://localhost/
      interval: 1m30s
      timeout: 500ms
      retries: 5
      start_period: 10s
    deploy:
      resources:
        limits: {cpus: "0.5", memory: 512M}
        reservations:
          devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]
    shm_size: 128mb
    depends_on:
      worker: {condition: service_healthy}
    restart: unless-stopped
    labels: [team=web]
    x-trailer:
      domain: [Shop.example.com, www.example.com]
      port: 80
      tls: true
      update_policy: if_missing
      startup_timeout: 2m
      drain_timeout: 30s
      shared_volumes: true
  worker:
    image: shop/worker
    command: [run, "--all"]
    environment:
      - QUEUE=jobs
      - EMPTY=
    mem_limit: 1gb
    cpus: 1.5
volumes:
  data:
  shared: {external: true, name: fleet-shared}
networks:
  back: {driver: bridge, internal: true}
  edge: {external: true}
x-trailer:
  needs:
    postgres: {database: shop, ready_timeout: 90s, mem_limit: 1g}
    valkey:
"""


def read(text: str) -> StackFile:
    return read_stack_file(dedent(text), "compose.yaml")


def service(lines: str) -> ServiceSpec:
    body = "\n".join(f"    {line}" for line in dedent(lines).strip().splitlines())
    return read(f"services:\n  web:\n    image: a\n{body}\n").services[0]


def refusal(text: str) -> str:
    with pytest.raises(StackFileError) as caught:
        read(text)
    return caught.value.message


def service_refusal(lines: str) -> str:
    """The first line of `lines` is line 4 of the file."""
    with pytest.raises(StackFileError) as caught:
        service(lines)
    return caught.value.message


def test_a_whole_file_is_read_with_every_value_and_default() -> None:
    web = read(WHOLE).services[0]
    assert web == ServiceSpec(
        name="web",
        image="shop/web:1.10",
        command=("serve", "--title", "two words"),
        environment={"LOG": "info"},
        ports=(
            PortSpec(container_port=80, host_port=8080),
            PortSpec(container_port=22, host_port=22, host_ip="127.0.0.1"),
            PortSpec(container_port=53, host_port=5353, protocol="udp"),
        ),
        mounts=(
            VolumeMount(target="/data", volume="data"),
            VolumeMount(target="/in", host_path="/srv/in", read_only=True),
            VolumeMount(target="/shared", volume="shared", read_only=True),
        ),
        networks=("back", "default", "edge"),
        health_check=HealthCheckSpec(
            test=("CMD-SHELL", "curl -f http://localhost/"),
            interval=90.0,
            timeout=0.5,
            retries=5,
            start_period=10.0,
        ),
        cpus=0.5,
        memory_bytes=512 * 1024**2,
        shm_bytes=128 * 1024**2,
        gpus=GpuSpec(count=2),
        depends_on=(Dependency(service="worker", healthy=True),),
        labels={"team": "web"},
        domains=(
            DomainSpec(host_name="shop.example.com", port=80, tls=True),
            DomainSpec(host_name="www.example.com", port=80, tls=True),
        ),
        update_policy="if_missing",
        startup_timeout=120,
        drain_timeout=30,
        shared_volumes=True,
    )


def test_what_stands_beside_the_services_is_read_too() -> None:
    stack = read(WHOLE)
    assert stack.services[1] == ServiceSpec(
        name="worker",
        image="shop/worker",
        command=("run", "--all"),
        environment={"QUEUE": "jobs", "EMPTY": ""},
        memory_bytes=1024**3,
        cpus=1.5,
    )
    assert stack.needs == (
        NeedSpec(kind="postgres", database="shop", ready_timeout=90, memory_bytes=1024**3),
        NeedSpec(kind="valkey"),
    )
    assert stack.volumes == {
        "data": VolumeSpec(key="data"),
        "shared": VolumeSpec(key="shared", external_name="fleet-shared"),
    }
    assert stack.networks == {
        "back": NetworkSpec(key="back", internal=True),
        "edge": NetworkSpec(key="edge", external_name="edge"),
    }
    assert [[each.name for each in group] for group in start_order(stack.services)] == [
        ["worker"],
        ["web"],
    ]


def test_every_unsupported_key_is_named_with_its_line_in_one_go() -> None:
    message = refusal(
        """\
        services:
          web:
            image: a
            privileged: true
            cap_add: [NET_ADMIN]
            healthcheck: {test: "true", start_interval: 1s}
          db:
            build: .
            image: b
        secrets: {}
        """
    )
    for expected in (
        "compose.yaml, line 4: services.web.privileged: is not supported",
        "line 5: services.web.cap_add: is not supported",
        "line 6: services.web.healthcheck.start_interval: is not supported",
        "line 8: services.db.build: is not supported; build the image elsewhere",
        "line 10: secrets: is not supported",
    ):
        assert expected in message


@pytest.mark.parametrize(
    "key",
    [
        "annotations", "attach", "blkio_config", "build", "cap_add", "cap_drop", "cgroup",
        "cgroup_parent", "configs", "container_name", "cpu_count", "cpu_percent", "cpu_quota",
        "cpu_shares", "cpuset", "credential_spec", "develop", "device_cgroup_rules", "devices",
        "dns", "dns_search", "domainname", "entrypoint", "env_file", "extends", "external_links",
        "extra_hosts", "group_add", "hostname", "init", "ipc", "isolation", "links", "logging",
        "mac_address", "mem_reservation", "mem_swappiness", "memswap_limit", "network_mode",
        "oom_kill_disable", "oom_score_adj", "pid", "pids_limit", "platform", "post_start",
        "pre_stop", "privileged", "profiles", "provider", "pull_policy", "read_only", "runtime",
        "scale", "secrets", "security_opt", "stdin_open", "stop_grace_period", "stop_signal",
        "storage_opt", "sysctls", "tmpfs", "tty", "ulimits", "user", "userns_mode", "uts",
        "volumes_from", "working_dir",
    ],
)  # fmt: skip
def test_keys_of_compose_outside_the_subset_are_refused(key: str) -> None:
    assert f"line 4: services.web.{key}: is not supported" in service_refusal(f"{key}: x")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("restart: always", "line 4: services.web.restart: must be one of unless-stopped"),
        ("ports: [0]", "ports are between 1 and 65535"),
        ('ports: ["99999:80"]', "ports are between 1 and 65535"),
        ('ports: ["8000-8001:80"]', "both ranges must be of the same length"),
        ('ports: ["1.2.3.999:80:80"]', "the address must be an IP address"),
        ('ports: ["80/sctp"]', "must be a port"),
        ('ports: ["127.0.0.1:80"]', "must be a port"),
        ('ports: ["80:80", "80:80"]', "services.web.ports.1: is listed twice"),
        ("ports: [{published: 80}]", "services.web.ports.0: needs target"),
        ('ports: ["${config.PORT}:80"]', "variables may not stand here"),
        ("volumes: [/data]", "needs a source"),
        ("volumes: [./x:/x]", "paths beside the file are not there on the host"),
        ("volumes: [data:/a:z]", "must be source:target or source:target:ro"),
        ("volumes: [data:x]", "must be an absolute path"),
        ("volumes: [data:/]", "may not be the root folder"),
        ("volumes: [/a/../b:/c]", "must be an absolute path without '..'"),
        ("volumes: [data:/x, data:/x]", "/x is mounted twice"),
        ("volumes: [{type: tmpfs, source: a, target: /x}]", "must be one of volume, bind"),
        ("volumes: [{type: bind, source: a, target: /x}]", "a bind has an absolute path"),
        ("volumes: [data:/x]", "there is no volume data; add it to the top-level volumes"),
        ("networks: [front]", "there is no network front"),
        ("networks: []", "names no network"),
        ("networks: {default: {aliases: [x]}}", "aliases: is not supported"),
        ("networks: {default: {ipv4_address: 8.8.8.8}}", "ipv4_address: is not supported"),
        ("networks: {default: {ipv6_address: '::1'}}", "ipv6_address: is not supported"),
        ("networks: {default: {link_local_ips: [x]}}", "link_local_ips: is not supported"),
        ("depends_on: [db]", "services.web.depends_on: there is no service db"),
        ("depends_on: {db: {condition: service_completed_successfully}}", "must be one of"),
        ("depends_on: [web]", "depends_on goes in a circle: web -> web"),
        ("environment: [A]", "A has no value; write A=value"),
        ("environment: {A: }", "services.web.environment.A: has no value"),
        ("environment: [A=1, A=2]", "A is listed twice"),
        ("environment: {A: [1]}", "services.web.environment.A: must be text"),
        ("labels: {trailer.host: x}", "a label may not be empty or begin with trailer."),
        ("mem_limit: 1m", "must be at least 6291456 bytes"),
        ("mem_limit: lots", "must be a size, for example 512m"),
        ("cpus: 0", "must be a number between 0.01 and"),
        (
            "cpus: 1\ndeploy: {resources: {limits: {cpus: 2}}}",
            "is set by deploy.resources.limits.cpus too",
        ),
        ("healthcheck: {interval: 1s}", "needs test"),
        ("healthcheck: {test: [curl, x]}", "must be a command line, or a list"),
        ("healthcheck: {test: x, interval: 30}", "must be a duration with its unit"),
        ("healthcheck: {test: x, retries: 0}", "must be between 1 and 1000"),
        ("command: 'a \"b'", "has a quote that is not closed"),
        ("x-trailer: {domain: a.example.com}", "needs port beside it"),
        ("x-trailer: {port: 80}", "says nothing without domain"),
        ("x-trailer: {update_policy: daily}", "must be one of always, if_missing"),
        ("x-trailer: {replicas: 2}", "services.web.x-trailer.replicas: is not supported"),
        ("x-trailer: {startup_timeout: 2h}", "may be at most 3600 seconds"),
        ("deploy: {replicas: 2}", "services.web.deploy.replicas: is not supported"),
        ("image: b", "line 4: services.web.image is written twice"),
        ("restart: !env X", "the tag !env is not supported"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(lines: str, expected: str) -> None:
    assert expected in service_refusal(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "compose.yaml is empty"),
        ("services: [", "line 1: this is not valid YAML"),
        ("a: \x00", "is not valid YAML"),
        ("version: '3'", "has no services"),
        ("services: {}", "names no service"),
        ("services: {Web: {image: a}}", "a name is a-z"),
        ("services: {web-next: {image: a}}", "may not end in -next"),
        ("services: {web: {command: x}}", "line 1: services.web: needs image"),
        ("services: {web: {image: 'a b'}}", "must name an image"),
        ("services: {web: }", "services.web: must be a map"),
        ("- a", "must be a map of keys and values"),
        ("services: {web: {image: a}}\nx-trailer: {needs: {mysql: }}", "needs.mysql: is not"),
        (
            "services: {postgres: {image: a}}\nx-trailer: {needs: {postgres: }}",
            "services.postgres: is the name of a need already",
        ),
        (
            "services: {web: {image: a}}\nx-trailer: {needs: {postgres: {database: a-b}}}",
            "must be a name of a-z, 0-9 and _",
        ),
        (
            "services: {web: {image: a}}\nx-trailer: {needs: {valkey: {database: a}}}",
            "needs.valkey.database: is not supported",
        ),
        ("services: {web: {image: a}}\nvolumes: {d: {name: x}}", "only an external one may"),
        ("services: {web: {image: a}}\nnetworks: {d: {driver: overlay}}", "one of bridge"),
        ("services: {web: {image: a}}\nnetworks: {d: {driver: macvlan}}", "one of bridge"),
        (
            "services: {web: {image: a}}\nnetworks: {d: {ipam: {config: [{subnet: 8.8.8.0/24}]}}}",
            "networks.d.ipam: is not supported",
        ),
        (
            "services: {web: {image: a}}\nnetworks: {d: {driver_opts: {parent: eth0}}}",
            "networks.d.driver_opts: is not supported",
        ),
        ("a: &a [*a]\nservices: *a", "must be a map"),
    ],
)
def test_a_wrong_file_is_refused_with_one_sentence(text: str, expected: str) -> None:
    assert expected in refusal(text)


def test_services_that_wait_for_each_other_are_refused_with_the_circle() -> None:
    message = refusal(
        """\
        services:
          a: {image: i, depends_on: [b]}
          b: {image: i, depends_on: [c]}
          c: {image: i, depends_on: [a]}
        """
    )
    assert "depends_on goes in a circle" in message


def test_aliases_that_stand_for_a_huge_file_are_refused() -> None:
    lines = ["x-0: &a0 {k: v}"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    merges = ", ".join(["*m0"] * 200)
    lines += ["x-m0: &m0 {a: 1, b: 2}", f"x-m1: &m1 {{<<: [{merges}]}}"]
    big = ", ".join(["*m1"] * 200)
    text = "\n".join(lines)
    assert "too many" in refusal(f"{text}\nservices: {{web: {{<<: [{big}], image: a}}}}")


@pytest.mark.parametrize(
    ("written", "expected"),
    [("1m30s", 90.0), ("500ms", 0.5), ("1h", 3600.0), ("1.5s", 1.5), ("0s", 0.0), ("1d", 86400.0)],
)
def test_durations_are_read_as_compose_reads_them(written: str, expected: float) -> None:
    check = service(f"healthcheck: {{test: x, start_period: {written}}}").health_check
    assert check is not None
    assert check.start_period == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("64m", 1024**2 * 64), ("1G", 1024**3), ("1.5gb", 1024**3 * 3 // 2), ("67108864", 67108864),
     ("65536k", 65536 * 1024), ("1GiB", 1024**3), ("99999999b", 99999999)],
)  # fmt: skip
def test_sizes_are_read_as_compose_reads_them(written: str, expected: int) -> None:
    assert service(f"mem_limit: {written}").memory_bytes == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("80", [(None, 80, "")]),
        ('"8000-8001:80-81"', [(8000, 80, ""), (8001, 81, "")]),
        ('"[::1]:8080:80"', [(8080, 80, "::1")]),
        ('"127.0.0.1::80"', [(None, 80, "127.0.0.1")]),
    ],
)
def test_ports_are_read_in_every_short_form(
    written: str, expected: list[tuple[int | None, int, str]]
) -> None:
    ports = service(f"ports: [{written}]").ports
    assert [(port.host_port, port.container_port, port.host_ip) for port in ports] == expected


def test_the_only_port_serves_the_domain() -> None:
    served = service("expose: [3000]\nx-trailer: {domain: a.example.com}")
    assert served.domains == (DomainSpec(host_name="a.example.com", port=3000),)


def test_a_health_check_of_the_image_can_be_switched_off() -> None:
    check = service("healthcheck: {disable: true}").health_check
    assert check == HealthCheckSpec(test=("NONE",))
