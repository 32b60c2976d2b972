"""The navigation: which pages a user is led to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trailer.policy import Actor

# Address, words, icon. Administrators see the last group too.
_LINKS = (
    ("/", "Dashboard", "layout-dashboard"),
    ("/workspaces/", "Workspaces", "boxes"),
    ("/stacks/", "Stacks", "git-branch"),
    ("/images/", "Images", "layers"),
    ("/hosts/", "Hosts", "server"),
    ("/networks/", "Networks", "network"),
    ("/volumes/", "Volumes", "hard-drive"),
    ("/registries/", "Registries", "key-round"),
)
_ADMIN_LINKS = (
    ("/users/", "Users", "users"),
    ("/audit/", "Audit", "scroll-text"),
    ("/admin/", "Admin", "shield"),
)


@dataclass(frozen=True)
class Link:
    address: str
    words: str
    icon: str
    current: bool


def links_for(user: Actor, path: str) -> list[Link]:
    rows = _LINKS + (_ADMIN_LINKS if user.is_authenticated and user.is_admin else ())
    return [Link(address, words, icon, _leads(address, path)) for address, words, icon in rows]


def _leads(address: str, path: str) -> bool:
    return path == address if address == "/" else path.startswith(address)
