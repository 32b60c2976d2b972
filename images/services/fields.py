"""The fields of an image that a user may write, and the rules they must keep."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final, TypedDict

from django.conf import settings

from agent.protocol import image_refs
from agent.protocol.bases import dockerfile_problem, reserved_problem
from agent.protocol.remote_sources import sources_problem
from images.choices import ImageKind
from images.refs import parse_reference
from trailer.errors import Invalid
from trailer.validation import (
    LIST_LIMIT,
    TEXT_LIMIT,
    check_columns,
    check_one_line,
    check_string,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from images.models import Image, Registry

DOCKERFILE_LIMIT: Final = 1024 * 1024
PATH_LIMIT: Final = 255


class FileFields(TypedDict):
    path: str
    content: str


class ImageFields(TypedDict, total=False):
    name: str
    dockerfile: str
    files: Sequence[FileFields]
    build_args: dict[str, str]
    target: str
    pull_base: bool
    reference: str
    registry: Registry | None
    update_policy: str
    push: bool
    enabled: bool
    # Rows of their own: the whole map, a null keeps the stored value of that name.
    build_secrets: Mapping[str, str | None]


IMAGE_COLUMNS: Final = tuple(
    name for name in ImageFields.__annotations__ if name != "build_secrets"
)
# A change of any of these makes another image.
SOURCE_COLUMNS: Final = frozenset(
    {"dockerfile", "files", "build_args", "target", "pull_base", "reference", "registry"}
)
# What is packed and sent to the engine for a build.
CONTEXT_COLUMNS: Final = frozenset({"dockerfile", "files"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/@+-]{0,127}")
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_TARGET = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)?")
_BUILD_ONLY: Final = ("dockerfile", "files", "build_args", "target", "pull_base")


def check_image(image: Image) -> None:
    """The whole image as it would be saved; what its kind can't have is refused by name."""
    check_columns(image, ("kind", "name", "target", "reference", "update_policy"))
    if not _NAME.fullmatch(image.name) or image.name != image.name.strip():
        raise Invalid.field(
            "name",
            "An image's name has 1 to 128 letters, digits, spaces or . _ : / @ + -, "
            "and begins with a letter or digit.",
        )
    if image.kind == ImageKind.PULL:
        _check_pull(image)
    elif image.kind == ImageKind.BUILD:
        _check_build(image)
    elif image.push:
        raise Invalid.field("push", "A snapshot can't be pushed.")
    if image.registry is not None:
        _check_registry(image, image.registry)


def check_context(image: Image) -> None:
    """Needs a checked image with its host; a host that shrank must not block unrelated edits."""
    texts = [image.dockerfile, *(text for file in image.files for text in file.values())]
    size = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    limit = image.host.build_context_bytes
    if size > limit:
        raise Invalid.field(
            "files",
            f"Dockerfile and files have {size} bytes together, but the host {image.host.name} "
            f"takes at most {limit}. Make them smaller, or have the host's limit raised.",
        )


def check_sources(image: Image) -> None:
    """Needs a checked image: it may not be made from, or be pushed over, what others made on the
    host, nor add what no agent fetches. Only when that changes, so that a new rule blocks no
    unrelated edit."""
    for number, file in enumerate(image.files):
        for part in file["path"].split("/"):
            check_one_line(part, field=f"files.{number}.path", noun="A file's path")
    if problem := dockerfile_problem(image.dockerfile, image.build_args):
        raise Invalid.field("dockerfile", problem)
    allow = settings.TRAILER_BUILD_ALLOW
    if problem := sources_problem(image.dockerfile, image.build_args, allow):
        raise Invalid.field("dockerfile", problem)
    if problem := reserved_problem(image.reference):
        raise Invalid.field("reference", problem)


def _check_pull(image: Image) -> None:
    parse_reference(image.reference)
    for name in _BUILD_ONLY:
        if getattr(image, name):
            raise Invalid.field(name, "Only an image of kind build has this.")
    if image.push:
        raise Invalid.field("push", "A pulled image can't be pushed.")


def _check_build(image: Image) -> None:
    check_string(image.dockerfile, field="dockerfile", limit=DOCKERFILE_LIMIT)
    if not image.dockerfile.strip():
        raise Invalid.field("dockerfile", "An image of kind build needs a Dockerfile.")
    _check_files(image.files)
    _check_arguments(image.build_args)
    if not _TARGET.fullmatch(image.target):
        raise Invalid.field("target", f"“{image.target}” is not the name of a build stage.")
    if image.reference:
        if parse_reference(image.reference).digest:
            raise Invalid.field("reference", "A build is pushed under a tag, not a digest.")
    elif image.push:
        raise Invalid.field("reference", "Give the reference to push the build to.")


def _check_registry(image: Image, registry: Registry) -> None:
    if not image.reference and image.kind == ImageKind.BUILD:
        # For the images that it is built from.
        return
    if not image.reference:
        raise Invalid.field("registry", "A registry is of use only together with a reference.")
    server = parse_reference(image.reference).server
    if not image_refs.is_same_server(registry.server, server):
        raise Invalid.field(
            "registry",
            f"This credential is for {registry.server}, but {image.reference} "
            f"lies on {server}. It is sent only to its own server.",
        )


def _check_files(files: Any) -> None:
    if not isinstance(files, list):
        raise Invalid.field("files", "Give a list of files, each with path and content.")
    if len(files) > LIST_LIMIT:
        raise Invalid.field("files", f"At most {LIST_LIMIT} files are taken.")
    seen: set[str] = set()
    for number, file in enumerate(files):
        field = f"files.{number}"
        if not isinstance(file, dict) or set(file) != {"path", "content"}:
            raise Invalid.field(field, "A file has a path and a content, nothing else.")
        path, content = file["path"], file["content"]
        if not isinstance(path, str) or not isinstance(content, str):
            raise Invalid.field(field, "Path and content of a file must be text.")
        check_string(content, field=f"{field}.content", limit=TEXT_LIMIT)
        _check_path(path, f"{field}.path")
        if path in seen:
            raise Invalid.field(f"{field}.path", f"{path} is given twice.")
        seen.add(path)
    _check_folders(seen)


def _check_path(path: str, field: str) -> None:
    short = len(path.encode(errors="surrogatepass")) <= PATH_LIMIT
    plain = path and short and "\0" not in path and "\\" not in path
    if not plain or path.startswith("/") or posixpath.normpath(path) != path:
        raise Invalid.field(field, "A file's path is relative and canonical, like app/start.sh.")
    parts = path.split("/")
    if ".." in parts or path == ".":
        raise Invalid.field(field, f"{path} leads out of the build's folder.")
    if path in {"Dockerfile", ".dockerignore"}:
        raise Invalid.field(field, f"{path} is made by Trailer; choose another name.")


def _check_folders(paths: set[str]) -> None:
    for path in sorted(paths):
        parent = posixpath.dirname(path)
        while parent:
            if parent in paths:
                raise Invalid.field("files", f"{parent} can't be a file and the folder of {path}.")
            parent = posixpath.dirname(parent)


def _check_arguments(arguments: Any) -> None:
    if not isinstance(arguments, dict) or len(arguments) > LIST_LIMIT:
        raise Invalid.field(
            "build_args", f"Give at most {LIST_LIMIT} arguments, as names with text values."
        )
    for name, value in arguments.items():
        if not isinstance(name, str) or not _ARGUMENT.fullmatch(name):
            raise Invalid.field(
                "build_args", f"“{name}” can't be the name of an argument; use A-Z, a-z, 0-9, _."
            )
        if not isinstance(value, str):
            raise Invalid.field("build_args", f"The value of {name} must be text.")
        check_string(value, field="build_args")
