"""What no line of the product may hold: the classes of holes that its peers had, as rules.

Bandit runs in `make check`, and so do these: they are the ones that are ours alone.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("agent", "trailer", "hosts", "images", "workspaces")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
# Calls that nothing of ours may make, and why.
FORBIDDEN_CALLS = {
    "os.system": "a shell",
    "os.popen": "a shell",
    "subprocess.getoutput": "a shell",
    "subprocess.getstatusoutput": "a shell",
    "asyncio.create_subprocess_shell": "a shell",
    "eval": "runs data",
    "exec": "runs data",
    "pickle.loads": "runs data",
    "pickle.load": "runs data",
    "marshal.loads": "runs data",
    "yaml.load": "makes objects; use safe_load",
    "mark_safe": "skips escaping; use format_html",
    "tempfile.mktemp": "a race",
}
# Where it is needed, and why it is safe there.
ALLOWED_CALLS = {("trailer/pages/tags.py", "mark_safe"): "our own icons, read from files"}

# Where requests come in: the API, pages, agents' routes, sockets.
_EDGES = re.compile(r"/api/|/pages/|/control/|consumers\.py$|/views\.py$|/live\.py$")
_OF_A_CLASS = len("    queryset = ")
_UNSCOPED = re.compile(
    r"(Workspace|Image|Build|Network|Volume|Registry|Stack|StackRevision|Sync)"
    r"\.objects\.(?!visible_to\b|create\b|none\b)\w+$"
)
# Reads past `visible_to` there, and why no row of a stranger comes out.
UNSCOPED_READS = {
    ("trailer/pages/networks.py", "Workspace.objects.filter"): "counted; shown if visible",
    ("trailer/pages/prometheus.py", "Build.objects.order_by"): "counted, for administrators",
    ("trailer/pages/prometheus.py", "Workspace.objects.order_by"): "counted, for administrators",
    ("trailer/pages/unused.py", "Image.objects.filter"): "ids that others' images share",
    ("trailer/pages/workspace_form.py", "Image.objects.filter"): "by `_seen`",
    ("trailer/pages/workspace_form.py", "Network.objects.filter"): "by `_seen`",
    ("trailer/pages/workspace_form.py", "Volume.objects.filter"): "by `_seen`",
    ("trailer/pages/workspaces.py", "Stack.objects.filter"): "the name of a visible one's stack",
    ("images/consumers.py", "Build.objects.values_list"): "of a build that was visible just now",
    ("workspaces/control/compile.py", "Build.objects.order_by"): "of the host that asks",
}


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return ""


@dataclass(frozen=True)
class Nodes:
    """The parts of a file that rules speak of."""

    calls: list[tuple[ast.Call, str]]
    compares: list[ast.Compare]


@cache
def _files() -> dict[str, Nodes]:
    """Read by the first rule that asks, not by every process that merely collects tests."""
    found = {}
    for path in FILES:
        nodes = Nodes([], [])
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                nodes.calls.append((node, _name(node.func)))
            elif isinstance(node, ast.Compare):
                nodes.compares.append(node)
        found[path.relative_to(ROOT).as_posix()] = nodes
    return found


def _calls() -> Iterator[tuple[str, ast.Call, str]]:
    for path, nodes in _files().items():
        for call, name in nodes.calls:
            yield path, call, name


def _found(bad: Callable[[str, ast.Call, str], bool]) -> list[str]:
    return [
        f"{path}:{call.lineno} {name}" for path, call, name in _calls() if bad(path, call, name)
    ]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def test_no_call_runs_a_shell_or_data() -> None:
    def bad(path: str, call: ast.Call, name: str) -> bool:
        return name in FORBIDDEN_CALLS and (path, name) not in ALLOWED_CALLS

    assert _found(bad) == []
    assert _found(lambda _, call, __: _is_true(_keyword(call, "shell"))) == []


def test_a_process_is_started_from_a_list_of_words() -> None:
    """A text would be split or handed to a shell; a list is what it says."""

    def bad(path: str, call: ast.Call, name: str) -> bool:
        if not name.startswith("subprocess.") or not call.args:
            return False
        return isinstance(call.args[0], ast.Constant | ast.JoinedStr | ast.BinOp)

    assert _found(bad) == []


def test_every_request_has_an_end_and_checks_its_certificate() -> None:
    verbs = {f"requests.{verb}" for verb in ("get", "post", "put", "patch", "delete", "request")}

    def bad(path: str, call: ast.Call, name: str) -> bool:
        verify = _keyword(call, "verify")
        unchecked = isinstance(verify, ast.Constant) and verify.value is False
        return unchecked or (name in verbs and _keyword(call, "timeout") is None)

    assert _found(bad) == []


def test_secrets_are_encrypted_in_one_place() -> None:
    """Past `trailer.sealed` a secret would not be bound to its row and column."""
    words = {"encrypt", "decrypt", "encrypt_mapping", "decrypt_mapping", "Fernet", "MultiFernet"}

    def bad(path: str, call: ast.Call, name: str) -> bool:
        if path in ("trailer/secrets.py", "trailer/sealed.py"):
            return False
        if (path, name) == ("trailer/keys.py", "Fernet"):
            # Only asks whether a key is one.
            return False
        return name in words or (name.startswith("secrets.") and name[8:] in words)

    assert _found(bad) == []


def test_no_query_is_written_by_hand() -> None:
    """Only health check, samples and backups speak SQL, with no word of a request in it."""
    allowed = {
        *("trailer/health.py", "trailer/backup/database.py"),
        *("hosts/metrics/rollup.py", "workspaces/metrics.py"),
    }
    words = ("raw", "extra", "RawSQL", "cursor", "execute")

    def bad(path: str, call: ast.Call, name: str) -> bool:
        last = name.rpartition(".")[2]
        if path.startswith("agent/") or path in allowed or last not in words:
            return False
        # An executor of steps is none of a database.
        return last != "execute" or any(isinstance(arg, ast.JoinedStr) for arg in call.args)

    assert _found(bad) == []


def test_views_read_objects_by_what_their_caller_may_see() -> None:
    """A look-up by an id of the request, past `visible_to`, is how tenants get mixed."""
    views = [path for path in _files() if _EDGES.search(path)]
    assert len(views) >= 70
    wrong = [
        f"{path}:{call.lineno} {name}"
        for path in views
        for call, name in _files()[path].calls
        # A class's own `queryset` is filtered by ResourceViewSet; everything else is deeper in.
        if call.col_offset > _OF_A_CLASS and _UNSCOPED.match(name)
        if (path, name) not in UNSCOPED_READS
    ]
    assert wrong == []


def test_an_exception_that_nothing_needs_any_more_is_removed() -> None:
    used = {(path, name) for path, _, name in _calls()}
    assert set(UNSCOPED_READS) - used == set()


def test_secrets_are_compared_in_constant_time() -> None:
    secret = re.compile(r"(signature|token|secret|password)$")

    def compared(node: ast.Compare) -> bool:
        sides = [node.left, *node.comparators]
        names = [_name(side).rpartition(".")[2] for side in sides]
        plain = all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        constant = any(isinstance(side, ast.Constant) for side in sides)
        return plain and not constant and sum(bool(secret.search(name)) for name in names) >= 2

    wrong = [
        f"{path}:{node.lineno}"
        for path, nodes in _files().items()
        for node in nodes.compares
        if compared(node)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "mark", ["|safe", "autoescape off", "<script>", "javascript:", "onclick="]
)
def test_no_template_skips_escaping_or_runs_inline(mark: str) -> None:
    assert [str(path) for path in TEMPLATES if mark in path.read_text()] == []


@pytest.mark.parametrize(
    "mark", ["innerHTML", "outerHTML =", "insertAdjacentHTML", "eval(", "document.write"]
)
def test_no_script_makes_markup_of_text(mark: str) -> None:
    wrong = [path.name for path in SCRIPTS if mark in path.read_text()]
    assert wrong == []


def test_the_rules_looked_at_something() -> None:
    assert len(FILES) > 300
    assert len(TEMPLATES) > 50
    assert len(SCRIPTS) > 40
