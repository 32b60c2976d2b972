"""Pull and build streams as lines of text with a percentage; pure generators over decoded JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent.runtime.port import Output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STEP = re.compile(r"^Step (\d+)/(\d+) :")
_LABELS = re.compile(r"Step \d+/\d+ : LABEL trailer\.")
_STEP_IMAGE = re.compile(r" ---> ([0-9a-f]{12,64})\s*\Z")
# Downloading is most of the work, extracting the rest.
_DOWNLOAD_SHARE = 0.7


def pull_output(raw: Iterator[Mapping[str, Any]]) -> Iterator[Output]:
    """Status lines once per layer and state; the bar moves with the bytes of all known layers."""
    layers: dict[str, float] = {}
    shown: dict[str, str] = {}
    for item in raw:
        if item.get("error"):
            yield Output(error=str(item["error"]))
            return
        layer, status = str(item.get("id") or ""), str(item.get("status") or "")
        detail = item.get("progressDetail") or {}
        if layer:
            layers[layer] = max(layers.get(layer, 0.0), _share(status, detail))
        text = _news(shown, layer, status)
        percent = round(100 * sum(layers.values()) / len(layers)) if layers else None
        yield Output(text=text, progress=percent, is_last=status.startswith("Status: "))


def _news(shown: dict[str, str], layer: str, status: str) -> str:
    """A line for each turn of a layer, not for each byte of it."""
    if not status or shown.get(layer) == status:
        return ""
    shown[layer] = status
    return f"{layer}: {status}\n" if layer else f"{status}\n"


def _share(status: str, detail: Mapping[str, Any]) -> float:
    current, total = detail.get("current") or 0, detail.get("total") or 0
    done = min(1.0, current / total) if total else 0.0
    if status == "Downloading":
        return _DOWNLOAD_SHARE * done
    if status in {"Verifying Checksum", "Download complete"}:
        return _DOWNLOAD_SHARE
    if status == "Extracting":
        return _DOWNLOAD_SHARE + (1 - _DOWNLOAD_SHARE) * done
    if status in {"Pull complete", "Already exists"}:
        return 1.0
    return 0.0


def push_output(raw: Iterator[Mapping[str, Any]]) -> Iterator[Output]:
    """Errors come as lines; the last word is the digest that the registry gave."""
    shown: dict[str, str] = {}
    for item in raw:
        if item.get("error"):
            yield Output(error=str(item["error"]))
            return
        layer, status = str(item.get("id") or ""), str(item.get("status") or "")
        text = _news(shown, layer, status)
        digest = str((item.get("aux") or {}).get("Digest") or "")
        yield Output(text=text, digest=digest, is_last=bool(digest))


def build_output(raw: Iterator[Mapping[str, Any]]) -> Iterator[Output]:
    at_labels = False
    for item in raw:
        if item.get("error"):
            yield Output(error=str(item["error"]))
            return
        text = str(item.get("stream") or "")
        if not text and item.get("status"):
            layer = str(item.get("id") or "")
            text = "" if item.get("progressDetail") else f"{layer} {item['status']}\n".lstrip()
        match = _STEP.match(text)
        progress = None
        if match:
            progress = round(100 * (int(match[1]) - 1) / int(match[2]))
            at_labels = bool(_LABELS.match(text))
        made = bool((item.get("aux") or {}).get("ID"))
        step = _STEP_IMAGE.match(text) if at_labels else None
        yield Output(
            text=text, progress=progress, is_last=made, labels_step=step[1] if step else ""
        )
