"""BuildKit's trace of a build as the lines and percentages that the older builder gives; pure."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from agent.runtime.port import Output
from agent.runtime.protobuf import Malformed, Message
from agent.secret_texts import SecretTexts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TRACE: Final = "moby.buildkit.trace"
_IMAGE: Final = "moby.image.id"
# Fields of StatusResponse, Vertex and VertexLog.
_VERTEXES, _LOGS = 1, 3
_DIGEST, _NAME, _CACHED, _STARTED, _COMPLETED, _ERROR = 1, 3, 4, 5, 6, 7
_LOG_OF, _LOG_TEXT = 1, 4
_STEP: Final = re.compile(r"\[(?:(?P<stage>[^\]]*?) )?(?P<number>\d+)/(?P<of>\d+)\] (?P<words>.*)")
# Longer lines are passed on in pieces.
_LONGEST_LINE: Final = 64 * 1024
_WRAPPING: Final = re.compile(
    r"(?:failed to solve(?: with frontend [\w.-]+)?: |rpc error: code = \w+ desc = "
    r"|failed to (?:build LLB|create LLB definition): )"
)
# What stands around the command that failed, in older and newer versions.
_FAILED: Final = (
    ("executor failed running [", "]: exit code: "),
    ('process "', '" did not complete successfully: exit code: '),
)
_CODE: Final = re.compile(r"\d+")


def buildkit_output(
    raw: Iterator[Mapping[str, Any]], secrets: Iterable[str] = ()
) -> Iterator[Output]:
    trace = Trace(secrets)
    for item in raw:
        if item.get("error"):
            yield Output(text=trace.rest())
            yield Output(error=plain_error(str(item["error"])))
            return
        aux = item.get("aux")
        if item.get("id") == _TRACE and isinstance(aux, str):
            text = trace.feed(aux)
            yield Output(text=text, progress=trace.progress)
        elif item.get("id") == _IMAGE:
            yield Output(text=trace.rest(), is_last=True)
        else:
            yield Output(text=str(item.get("stream") or ""))


def plain_error(said: str) -> str:
    """Without the layers it came through; a command that failed as the older builder says it."""
    words = _WRAPPING.sub("", said).strip()
    for before, behind in _FAILED:
        begin, end = words.find(before), words.rfind(behind)
        code = _CODE.match(words, end + len(behind))
        if begin >= 0 and begin + len(before) <= end and code:
            command = words[begin + len(before) : end]
            return f"The command '{command}' returned a non-zero code: {code[0]}"
    return words


class Trace:
    """What is known of a build's steps so far. They may run side by side: each has its own line
    of output until that ends."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.progress: int | None = None
        # Lines of other steps may come between two pieces of one: no secret may lie across.
        self._secrets = SecretTexts(secrets)
        self._steps: set[str] = set()
        self._told: set[str] = set()
        self._done: set[str] = set()
        self._lines: dict[str, str] = {}
        # By stage: how many steps it has.
        self._sizes: dict[str, int] = {}

    def feed(self, encoded: str) -> str:
        """The news of one message; one that makes no sense tells nothing."""
        try:
            message = Message(base64.b64decode(encoded, validate=True))
            vertexes = list(message.messages(_VERTEXES))
            logs = list(message.messages(_LOGS))
        except (Malformed, ValueError):
            return ""
        # The last words of a step may come together with its end.
        begun = "".join(self._begun(vertex) for vertex in vertexes)
        printed = "".join(self._printed(log) for log in logs)
        ended = "".join(self._ended(vertex) for vertex in vertexes)
        return begun + printed + ended

    def rest(self) -> str:
        """Lines that never ended."""
        return "".join(self._cut(digest) for digest in list(self._lines))

    def _begun(self, vertex: Message) -> str:
        digest = vertex.text(_DIGEST)
        found = _STEP.fullmatch(vertex.text(_NAME))
        if not found:
            return ""
        self._sizes[found["stage"] or ""] = int(found["of"])
        self._steps.add(digest)
        if digest in self._told or not (vertex.has(_STARTED) or vertex.flag(_CACHED)):
            return ""
        self._told.add(digest)
        stage = f"[{found['stage']}] " if found["stage"] else ""
        cached = " ---> Using cache\n" if vertex.flag(_CACHED) else ""
        return f"Step {found['number']}/{found['of']} : {stage}{found['words']}\n{cached}"

    def _printed(self, log: Message) -> str:
        digest = log.text(_LOG_OF)
        text = self._lines.pop(digest, "") + log.text(_LOG_TEXT)
        lines, newline, rest = text.rpartition("\n")
        is_long = len(rest) > _LONGEST_LINE + self._secrets.longest
        end = self._secrets.cut(rest) if is_long else 0
        if rest[end:]:
            self._lines[digest] = rest[end:]
        return f"{lines}{newline}{rest[:end]}"

    def _ended(self, vertex: Message) -> str:
        digest = vertex.text(_DIGEST)
        if not vertex.has(_COMPLETED):
            return ""
        text = self._cut(digest)
        if digest in self._steps and not vertex.has(_ERROR):
            self._done.add(digest)
            share = round(100 * len(self._done) / max(1, sum(self._sizes.values())))
            # Exporting what was made is work too.
            self.progress = max(self.progress or 0, min(share, 99))
        return text

    def _cut(self, digest: str) -> str:
        line = self._lines.pop(digest, "")
        return f"{line}\n" if line else ""
