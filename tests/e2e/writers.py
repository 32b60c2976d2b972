"""Writers that keep a running Trailer busy and know what it acknowledged."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import requests

from tests.ground.wait import eventually

if TYPE_CHECKING:
    from tests.e2e.scenario import User
    from tests.ground.server import RunningTrailer


class Writer:
    """Writes one row after the other and notes those that the server acknowledged."""

    def __init__(
        self, trailer: RunningTrailer, host_id: str, name: str, stop: threading.Event
    ) -> None:
        self._trailer, self._host_id = trailer, host_id
        self._name, self._stop = name, stop
        self.acknowledged: list[str] = []
        self.refused: list[int] = []
        self.unanswered = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        number = 0
        headers = {"Authorization": f"Token {self._trailer.token()}"}
        while not self._stop.wait(0.05):
            number += 1
            body = {"name": f"kept-{self._name}-{number}", "host": self._host_id}
            try:
                reply = requests.post(
                    f"{self._trailer.url}/api/v1/volumes/", json=body, headers=headers, timeout=20
                )
            except requests.RequestException:
                self.unanswered += 1
                continue
            if reply.status_code == 201:
                self.acknowledged.append(body["name"])
            else:
                self.refused.append(reply.status_code)


class Load:
    """Several writers at once."""

    def __init__(self, trailer: RunningTrailer, host_id: str) -> None:
        self._trailer, self._host_id = trailer, host_id
        self._stop = threading.Event()

    def __enter__(self) -> Load:
        # Asked for once, not by all of them at once.
        self._trailer.token()
        self._writers = [
            Writer(self._trailer, self._host_id, name, self._stop) for name in ("a", "b", "c")
        ]
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for writer in self._writers:
            writer.join()

    @property
    def acknowledged(self) -> set[str]:
        return {name for writer in self._writers for name in writer.acknowledged}

    @property
    def refused(self) -> Counter[int]:
        return Counter(status for writer in self._writers for status in writer.refused)

    def said(self) -> str:
        """The figures of this load."""
        unanswered = sum(writer.unanswered for writer in self._writers)
        refused = dict(self.refused)
        return f"{len(self.acknowledged)} acknowledged, refused {refused}, {unanswered} unanswered"

    def wait_for_more(self) -> None:
        """Until every one of them was acknowledged something again."""
        before = [len(writer.acknowledged) for writer in self._writers]
        eventually(
            lambda: all(
                len(writer.acknowledged) > count + 2
                for writer, count in zip(self._writers, before, strict=True)
            ),
            60,
            f"writes do not go on: {self.refused} {self._trailer.log()}",
        )


def all_volumes(user: User) -> list[str]:
    """Their names, page by page."""
    names: list[str] = []
    page = 1
    while True:
        path = f"/volumes/?page_size=200&ordering=name&search=kept-&page={page}"
        answer = user.get(path)
        names += [row["name"] for row in answer["results"]]
        if answer["next"] is None:
            assert len(names) == answer["count"]
            return names
        page += 1
