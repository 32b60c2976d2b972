"""One standalone server per data folder: without Redis a second one would miss half the news."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

from django.core.management.base import CommandError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO


def hold_data_dir(data_dir: Path) -> IO[str]:
    """Keep the returned file open: the lock lives as long as it, even after a crash."""
    data_dir.mkdir(parents=True, exist_ok=True)
    file = (data_dir / "standalone.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise CommandError(
            f"Another Trailer already runs on the data folder {data_dir}. Stop it, choose another "
            "TRAILER_DATA_DIR, or set REDIS_URL and run several web processes."
        ) from error
    return file
