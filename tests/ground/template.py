"""A migrated database, made once for all test runs of a checkout: servers start with a copy."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parents[2]
APPS = ("trailer", "hosts", "images", "workspaces")
FOLDER = ROOT / "tests/artifacts/migrated"
DATABASE = "trailer.sqlite3"


def copy_migrated_database(data_dir: Path) -> None:
    """Put it where a server looks for its own; its `migrate` then finds nothing to do."""
    data_dir.mkdir(parents=True)
    shutil.copyfile(migrated_database(), data_dir / DATABASE)


@cache
def migrated_database() -> Path:
    """Whoever comes first makes it; the name changes with every migration."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / f"{_fingerprint()}.sqlite3"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            for older in FOLDER.glob("*.sqlite3"):
                older.unlink()
            _migrate(made)
    return made


def _migrate(target: Path) -> None:
    ours = ("TRAILER_", "DJANGO_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY")
    outer = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    with tempfile.TemporaryDirectory(prefix="trailer-test-template-") as folder:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--skip-checks", "-v", "0"],
            cwd=ROOT,
            env={**outer, "TRAILER_DATA_DIR": folder},
            check=True,
            timeout=180,
        )
        shutil.move(Path(folder) / DATABASE, target)


def _fingerprint() -> str:
    digest = hashlib.sha256(django.get_version().encode())
    for app in APPS:
        for path in sorted((ROOT / app).rglob("migrations/*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]
