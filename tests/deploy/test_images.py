"""The Dockerfiles agree with the code that they pack."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from agent.protocol import PROTOCOL_VERSION
from agent.version import VERSION

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.mark.parametrize("name", ["agent", "server"])
def test_an_image_carries_the_version_and_protocol_of_its_code(name: str) -> None:
    text = (DEPLOY / f"{name}.Dockerfile").read_text()
    assert set(re.findall(r"^ARG VERSION=(.+)$", text, re.MULTILINE)) == {VERSION}
    assert set(re.findall(r"^ARG PROTOCOL=(.+)$", text, re.MULTILINE)) == {str(PROTOCOL_VERSION)}


def test_the_server_hands_out_an_agent_that_is_made_like_the_agents_own_image() -> None:
    """Two files, since an image has one Dockerfile; their steps are the same, word for word."""

    def steps(name: str) -> list[str]:
        text = (DEPLOY / name).read_text().replace("\\\n", "")
        after = re.split(r"^FROM .*AGENT_BASE.*$|^FROM \$\{BASE\}$", text, flags=re.MULTILINE)[1]
        stage = re.split(r"^(?:FROM|ARG) ", after, flags=re.MULTILINE)[0]
        return [line for line in stage.splitlines() if line and not line.startswith("#")]

    assert len(steps("agent.Dockerfile")) == 4
    assert steps("server.Dockerfile") == steps("agent.Dockerfile")


def test_no_file_of_ours_names_an_image_that_anybody_could_register() -> None:
    """Without a registry's host a name is one of Docker Hub's; official images have one word."""
    texts = [path.read_text() for path in DEPLOY.glob("*") if path.is_file()]
    texts += [(DEPLOY.parent / name).read_text() for name in ("README.md", ".env.example")]
    # What the earlier default was, is told there.
    docs = set((DEPLOY.parent / "docs").glob("*.md")) - {DEPLOY.parent / "docs" / "upgrade.md"}
    texts += [path.read_text() for path in docs]
    named = {
        name for text in texts for name in re.findall(r"(?<![\w./-])trailer/\w+[\w:.]*", text)
    }
    assert {name for name in named if re.match(r"trailer/(agent|server)\b", name)} == set()


def test_the_user_of_the_servers_image_has_a_name() -> None:
    """Celery warns of a user without one as of root."""
    text = (DEPLOY / "server.Dockerfile").read_text()
    user = re.search(r"^USER (\d+):(\d+)$", text, re.MULTILINE)
    assert user is not None
    assert f"('passwd', 'trailer:x:{user[1]}:{user[2]}:" in text
    assert f"('group', 'trailer:x:{user[2]}:')" in text


def test_the_agents_image_holds_neither_django_nor_anything_without_a_hash() -> None:
    text = (DEPLOY / "agent-requirements.txt").read_text()
    names = re.findall(r"^([\w.-]+)==", text, re.MULTILINE)
    assert {"docker", "msgspec", "psutil", "websockets", "nvidia-ml-py"} <= set(names)
    assert not [name for name in names if "django" in name or name == "celery"]
    assert text.count("--hash=") >= len(names)
    assert all(line.rstrip().endswith("\\") for line in text.splitlines() if "==" in line)


def test_both_requirements_pin_the_same_versions() -> None:
    def pins(path: Path) -> set[tuple[str, str]]:
        return set(re.findall(r"^([\w.-]+)==([^ \\;]+)", path.read_text(), re.MULTILINE))

    agent = pins(DEPLOY / "agent-requirements.txt")
    assert agent <= pins(DEPLOY.parent / "requirements.txt")


def test_the_agents_image_holds_all_that_the_agent_imports() -> None:
    imported = set()
    for path in (DEPLOY.parent / "agent").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    known = packages_distributions()
    pinned = (DEPLOY / "agent-requirements.txt").read_text()
    names = set(re.findall(r"^([\w.-]+)==", pinned, re.MULTILINE))
    for module in imported - set(sys.stdlib_module_names) - {"agent"}:
        makers = {maker.lower() for maker in known.get(module, [module])}
        assert makers & names, f"{module} is not in deploy/agent-requirements.txt"
