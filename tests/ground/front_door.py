"""Caddy with the rules of deploy/Caddyfile in front of processes instead of containers."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CADDYFILE = ROOT / "deploy" / "Caddyfile"
CADDY = Path(sys.executable).parent / "caddy"


def rules(*, port: int, url_domain: str, web: str, sockets: str) -> str:
    """The deployed rules; only names become addresses here, and certificates are left out."""
    text = CADDYFILE.read_text()
    names = f"http://*.{url_domain}:{port}" if url_domain else "http://no-names.invalid"
    for written, here in (
        ("{\n\tservers {", "{\n\tadmin off\n\tauto_https off\n\tservers {"),
        ("*.{$TRAILER_URL_DOMAIN} {", f"{names} {{"),
        ("\ttls internal\n", ""),
        ("\n{$TRAILER_DOMAIN} {", f"\nhttp://:{port} {{"),
        ("sockets:8000", sockets),
        ("web:8000", web),
    ):
        assert written in text, f"deploy/Caddyfile has no {written!r}"
        text = text.replace(written, here)
    return text


def command(folder: Path, text: str) -> list[str | Path]:
    """What starts it with these rules."""
    file = folder / "Caddyfile"
    file.write_text(text)
    return [CADDY, "run", "--adapter", "caddyfile", "--config", file]
