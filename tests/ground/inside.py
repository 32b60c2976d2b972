"""What a container holds, read without running anything in it."""

import io
import tarfile

from docker.models.containers import Container


def file_in(container: Container, path: str) -> bytes:
    """The content of a file. Not by `cat`: on a busy machine the engine loses what a command
    prints that ends at once."""
    parts, _ = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
        member = archive.extractfile(archive.getmembers()[0])
        assert member is not None, f"{path} is no file"
        return member.read()
