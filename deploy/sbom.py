"""What a release is made of, as CycloneDX: `python3 deploy/sbom.py server|agent > sbom.json`.

From the pinned requirements and the lock file alone, whose hashes set-up and the images insist on.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = {
    "server": ROOT / "requirements.txt",
    "agent": ROOT / "deploy" / "agent-requirements.txt",
}
# One package with what belongs to it: the marker that limits it, and its hashes.
PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill_of_materials(part: str) -> dict[str, Any]:
    """The server's image also holds the pages' scripts."""
    components = python_components(REQUIREMENTS[part].read_text())
    if part == "server":
        components += npm_components(json.loads((ROOT / "package-lock.json").read_text()))
    code = (ROOT / "agent" / "version.py").read_text()
    _, _, version = code.partition("VERSION: Final = ")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": f"trailer-{part}",
                "version": version.strip().strip('"'),
            }
        },
        "components": components,
    }


def python_components(requirements: str) -> list[dict[str, Any]]:
    """Each package has one hash for every file that its release consists of."""
    return [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
            "hashes": [{"alg": "SHA-256", "content": found} for found in HASH.findall(rest)],
        }
        for name, version, rest in PINNED.findall(requirements)
    ]


def npm_components(lock: dict[str, Any]) -> list[dict[str, Any]]:
    """What is fetched for tests or for another kind of machine is left out."""
    found = []
    for place, package in lock["packages"].items():
        if not place or package.get("dev") or package.get("optional"):
            continue
        name = place.removeprefix("node_modules/")
        algorithm, _, digest = package["integrity"].partition("-")
        content = base64.b64decode(digest).hex()
        found.append(
            {
                "type": "library",
                "name": name,
                "version": package["version"],
                "purl": f"pkg:npm/{name.replace('@', '%40')}@{package['version']}",
                "hashes": [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": content}],
                "licenses": [{"license": {"name": package["license"]}}],
            }
        )
    return found


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in REQUIREMENTS:
        raise SystemExit("usage: python3 deploy/sbom.py server|agent")
    json.dump(bill_of_materials(sys.argv[1]), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
