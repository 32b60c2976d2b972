"""Image references are taken apart in one file: two parsers once disagreed about passwords."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARSER = Path("agent/protocol/image_refs.py")
# Where a name of Docker Hub stands for a reason that is no parsing.
KNOWN = {
    PARSER,
    # What an older version stored.
    Path("images/migrations/0008_one_reference_parser.py"),
    # Debian's package.
    Path("deploy/setup_system.py"),
}
_HUB = re.compile(r"""["'](?:index\.|registry-1\.)?docker\.io""")
_SPLIT = re.compile(r"""\b(?:ref|reference|image)\w*(?:\.ref\w*)?\.r?(?:split|partition)\(""")


def _files() -> list[Path]:
    folders = ("agent", "hosts", "images", "workspaces", "trailer", "deploy")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_no_other_file_knows_docker_hubs_names() -> None:
    found = {path.relative_to(ROOT) for path in _files() if _HUB.search(path.read_text())}
    assert found == KNOWN


def test_no_other_file_takes_a_reference_apart() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in _files()
        if path.relative_to(ROOT) != PARSER and "migrations" not in path.parts
        for line in path.read_text().splitlines()
        if _SPLIT.search(line)
    ]
    # The name that a snapshot's commit gets, made from our own tag.
    assert found == ['agent/protocol/naming.py: return ref.rpartition(":")[0] + ":committed"']
