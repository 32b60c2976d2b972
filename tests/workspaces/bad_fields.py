"""Every kind of bad value of every writable field, with the name under which it is refused."""

from __future__ import annotations

from typing import Any

UUID_TEXT = "00000000-0000-4000-8000-000000000000"
MANY = 257
_PORT: dict[str, Any] = {"container_port": 80}
_URL: dict[str, Any] = {"subdomain": "a", "domain": "example.com", "port": 80}
_MOUNT: dict[str, Any] = {"volume": UUID_TEXT, "target": "/data"}
_LONG = "x" * (64 * 1024 + 1)


def each(*values: Any) -> tuple[Any, ...]:
    return values


# (field, value, where the sentence is reported)
BAD_FIELDS: list[tuple[str, Any, str]] = [
    *(
        ("name", value, "name")
        for value in each(
            *("", "-a", "A", "a_b", "a b", "a" * 64, "a\n", "ä", "a.b", "trailer/x"),
            *(None, 5, True, [], {}, 1.5, "agent", "agent-next", "agent-overseer"),
        )
    ),
    *(
        ("description", value, "description")
        for value in each(None, 1, [], {}, True, _LONG, "\ud800")
    ),
    ("description", "ü" * (33 * 1024), "description"),
    *(("description", value, "description") for value in each("a\u202eb", "a\x1b[0m", "\u2067")),
    *(("host", value, "host") for value in each("x", 1, None, [], {}, True, "", UUID_TEXT + "0")),
    *(("image", value, "image") for value in each("x", 1, None, [], {}, True, "")),
    *(
        ("desired_state", value, "desired_state")
        for value in each("", "paused", None, True, 1, [], {}, "RUNNING")
    ),
    *(("command", value, "command") for value in each("ls", None, 1, {}, True, ["x"] * MANY)),
    *(("command", [value], "command.0") for value in each(1, None, True, [], {}, "\0", _LONG)),
    *(
        ("env", value, "env")
        for value in each([], None, "A=b", 1, {"": "x"}, {"A=B": "x"}, {"A\0": "x"})
    ),
    *(("env", {name: "x"}, "env") for name in each("A\n", "A\u202e", " A", "\u200bA")),
    *(("labels", {name: "x"}, "labels") for name in each("a\n", "a\u202e", "a ", "a\u200b")),
    *(
        ("mounts", [{"volume": UUID_TEXT, "target": target}], "mounts.0.target")
        for target in each("/data\n", "/da\u202eta", "/data ", "/da\tta", "/\u200b")
    ),
    *(("env", {"A": value}, "env.A") for value in each(1, None, True, [], {}, 1.5, "\0", _LONG)),
    ("env", {f"K{n}": "v" for n in range(MANY)}, "env"),
    ("env", {"K" * 256: "v"}, "env"),
    *(
        ("secret_env", value, "secret_env")
        for value in each([], None, "A=b", 1, {"": "x"}, {"A=B": "x"})
    ),
    *(
        ("secret_env", {"A": value}, "secret_env.A")
        for value in each(1, None, True, [], {}, "\0", _LONG)
    ),
    *(
        ("cpus", value, "cpus")
        for value in each(0, -1, 0.0001, 10_001, 1e308, 10**400, float("inf"), True, "1", [], {})
    ),
    ("cpus", float("nan"), "cpus"),
    *(
        ("memory_bytes", value, "memory_bytes")
        for value in each(0, -1, 6 * 1024**2 - 1, 2**63, 2**64, 1e9, 64e6, "1g", True, [], {})
    ),
    *(
        ("shm_bytes", value, "shm_bytes")
        for value in each(0, -1, 65535, 2**63, 1e6, "64m", True, [], {})
    ),
    *(
        ("gpus", value, "gpus")
        for value in each(1, "all", [], True, {"count": 1, "device_ids": ["a"]})
    ),
    *(("gpus", {"count": value}, "gpus.count") for value in each(-1, 1.5, "1", True, None, 2**63)),
    *(
        ("gpus", {"device_ids": value}, "gpus.device_ids")
        for value in each("a", None, 1, [""], ["a"] * MANY)
    ),
    *(
        ("gpus", {"device_ids": [value]}, "gpus.device_ids.0")
        for value in each(1, None, True, "x" * 129)
    ),
    ("gpus", {"counts": 1}, "gpus.counts"),
    *(
        (field, value, field)
        for field in ("nested_virtualization", "shared_volumes")
        for value in each(None, 0, 1, "true", [], {})
    ),
    *(("ports", value, "ports") for value in each(None, {}, "80", 80, [_PORT] * MANY)),
    *(("ports", [value], "ports.0") for value in each(None, 80, "80:80", [], True)),
    *(
        ("ports", [{"container_port": value}], "ports.0.container_port")
        for value in each(0, -1, 65536, 2**63, 2**70, "80", 80.0, True, None, [])
    ),
    ("ports", [{}], "ports.0.container_port"),
    *(
        ("ports", [{**_PORT, "host_port": value}], "ports.0.host_port")
        for value in each(0, -1, 65536, 2**63, "80", 80.5, True, [])
    ),
    *(
        ("ports", [{**_PORT, "protocol": value}], "ports.0.protocol")
        for value in each("sctp", "TCP", "", None, 6, True)
    ),
    *(
        ("ports", [{**_PORT, "host_ip": value}], "ports.0.host_ip")
        for value in each(
            "localhost", "1.2.3", "::g", "fe80::1%eth0", None, 1, "1.2.3.4/8", "x" * 46
        )
    ),
    ("ports", [{**_PORT, "publish": 1}], "ports.0.publish"),
    ("ports", [_PORT, _PORT], "ports.1"),
    ("ports", [{**_PORT, "host_port": 1}, {**_PORT, "host_port": 1}], "ports.1"),
    ("ports", [{**_PORT, "host_port": 1}, {"container_port": 81, "host_port": 1}], "ports.1"),
    (
        "ports",
        [{**_PORT, "host_port": 1}, {**_PORT, "host_port": 1, "host_ip": "127.0.0.1"}],
        "ports.1",
    ),
    *(("mounts", value, "mounts") for value in each(None, {}, "/data", 1, [_MOUNT] * MANY)),
    *(("mounts", [value], "mounts.0") for value in each(None, "/a:/b", 1, [])),
    *(
        ("mounts", [{**_MOUNT, "target": value}], "mounts.0.target")
        for value in each(
            *("", "data", "./data", "/a/../b", "/..", "/", "//", "/.", None, 1, [], "/a\0"),
            "/" + "x" * 1024,
        )
    ),
    *(
        ("mounts", [{**_MOUNT, "volume": value}], "mounts.0.volume")
        for value in each("x", None, 1, [], {}, True)
    ),
    *(
        ("mounts", [{**_MOUNT, "read_only": value}], "mounts.0.read_only")
        for value in each(None, 0, "ro", [])
    ),
    ("mounts", [{**_MOUNT, "mode": "z"}], "mounts.0.mode"),
    ("mounts", [_MOUNT, {**_MOUNT, "target": "/data/"}], "mounts"),
    *(("networks", value, "networks") for value in each(None, {}, "lan", 1, [UUID_TEXT] * MANY)),
    *(("networks", [value], "networks.0") for value in each("lan", None, 1, [], {}, True)),
    *(("urls", value, "urls") for value in each(None, {}, "x", 1, [_URL] * MANY, [_URL, _URL])),
    *(("urls", [value], "urls.0") for value in each(None, "http://x", 1, [])),
    *(
        ("urls", [{**_URL, "subdomain": value}], "urls.0.subdomain")
        for value in each("", "-a", "a-", "a.b", "a_b", "*", "a" * 64, None, 1, "ä", "a b")
    ),
    *(
        ("urls", [{**_URL, "domain": value}], "urls.0.domain")
        for value in each(
            "", ".", "a..b", "-a.com", "a_b.com", "a b", "http://a", None, 1, "a" * 254
        )
    ),
    (
        "urls",
        [{**_URL, "subdomain": "a" * 63, "domain": ".".join(["b" * 60] * 4)}],
        "urls.0.domain",
    ),
    *(
        ("urls", [{**_URL, "port": value}], "urls.0.port")
        for value in each(0, -1, 65536, 2**63, "80", 80.0, True, None)
    ),
    *(("urls", [{**_URL, "tls": value}], "urls.0.tls") for value in each(None, 1, "yes")),
    *(
        ("urls", [{**_URL, "auth": value}], "urls.0.auth")
        for value in each(None, "", "basic", 1, True)
    ),
    ("urls", [{**_URL, "path": "/"}], "urls.0.path"),
    *(("health_check", value, "health_check") for value in each([], "true", 1, True)),
    ("health_check", {"interval": 5}, "health_check.test"),
    *(
        ("health_check", {"test": value}, "health_check.test")
        for value in each(
            *(None, [], "true", ["true"], ["CMD"], ["CMD-SHELL"], ["CMD-SHELL", "a", "b"]),
            *(["NONE", "x"], ["CMD"] + ["x"] * MANY),
        )
    ),
    ("health_check", {"test": ["CMD", 1]}, "health_check.test.1"),
    *(
        ("health_check", {"test": ["CMD", "true"], key: value}, f"health_check.{key}")
        for key in ("interval", "timeout")
        for value in each(0, -1, 0.0001, 86_401, "5s", True, None, 1e400, 2**63)
    ),
    *(
        ("health_check", {"test": ["CMD", "true"], "retries": value}, "health_check.retries")
        for value in each(0, -1, 1001, 1.5, "3", True, None, 2**63)
    ),
    *(
        (
            "health_check",
            {"test": ["CMD", "x"], "start_period": value},
            "health_check.start_period",
        )
        for value in each(-1, 86_401, "5s", True, None)
    ),
    ("health_check", {"test": ["CMD", "x"], "start_interval": 1}, "health_check.start_interval"),
    *(
        (field, value, field)
        for field in ("startup_timeout", "drain_timeout")
        for value in each(-1, 3601, 1.5, "60", True, None, 2**63, [])
    ),
    *(
        ("idle_stop_minutes", value, "idle_stop_minutes")
        for value in each(0, -1, 100_001, 1.5, "60", True, 2**63, [])
    ),
    *(("schedule", value, "schedule") for value in each([], "0 8 * * *", 1, True)),
    *(
        ("schedule", {"start": value}, "schedule.start")
        for value in each(
            *("* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *"),
            *("* * * 13 *", "* * * * 8", "a * * * *", "*/0 * * * *", "5-1 * * * *", "1, * * * *"),
            *("5/2 * * * *", "-1 * * * *", "*/99 * * * *", "* * * foo *", 1, [], True, "x" * 257),
            "@daily",
        )
    ),
    ("schedule", {"restart": "* * * * *"}, "schedule.restart"),
    *(
        ("labels", value, "labels")
        for value in each(
            *([], None, "a=b", 1, {"": "x"}, {"trailer.managed": "true"}, {"traefik.enable": "1"}),
            *({"Trailer.managed": "x"}, {f"k{n}": "v" for n in range(MANY)}, {"k" * 256: "v"}),
        )
    ),
    *(("labels", {"a": value}, "labels.a") for value in each(1, None, True, [], "\0", _LONG)),
    *(
        (name, 1, name)
        for name in ("id", "owner", "revision", "status", "stack", "privileged", "")
    ),
]
