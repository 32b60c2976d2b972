"""ADD lines that take what was fetched from an image, and say to the engine what they said."""

import pytest

from agent.protocol.remote_sources import adds
from agent.runtime.dockerfile_sources import with_sources

IMAGE = "trailer.invalid/sources/m:latest"


def rewritten(text: str, **given: str) -> str:
    return with_sources(text, tuple(adds(text, given)), IMAGE)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("ADD http://h.example/a /x", f'COPY --from={IMAGE} ["/source0/*", "/x"]'),
        (
            "add --chown=1:$G --chmod=755 http://h.example/a.tar.gz $D/",
            f'COPY --chown=1:$G --chmod=755 --from={IMAGE} ["/source0/*", "$D/"]',
        ),
        (
            f"ADD --checksum=sha256:{'a' * 64} http://h.example/a /x",
            f'COPY --from={IMAGE} ["/source0/*", "/x"]',
        ),
        (
            'ADD ["http://h.example/a", "http://h.example/b", "/x y/"]',
            f'COPY --from={IMAGE} ["/source0/*", "/source1/*", "/x y/"]',
        ),
        ("ARG V=1\nADD app-$V.tgz /x", 'ARG V=1\nADD ["app-1.tgz", "/x"]'),
        ("ENV V='a $b\"'\nADD $V /x", 'ENV V=\'a $b"\'\nADD ["a \\\\$b\\\\\\"", "/x"]'),
        ("ADD ./$V /x", "ADD ./$V /x"),
    ],
)
def test_a_line_says_the_same_of_what_was_fetched(line: str, wanted: str) -> None:
    assert rewritten(f"FROM busybox\n{line}\nRUN true\n") == f"FROM busybox\n{wanted}\nRUN true\n"


def test_the_number_of_lines_stays() -> None:
    text = (
        "\ufeff# escape=`\nFROM busybox\nADD `\n# which\n\n http://h.example/a `\n /x\n"
        "FROM busybox\nRUN true\nADD http://h.example/b /y"
    )
    assert rewritten(text) == (
        f'# escape=`\nFROM busybox\nCOPY --from={IMAGE} ["/source0/*", "/x"]\n#\n#\n#\n#\n'
        f'FROM busybox\nRUN true\nCOPY --from={IMAGE} ["/source1/*", "/y"]'
    )


def test_nothing_is_left_for_an_engine_to_fetch() -> None:
    text = (
        "ARG U=http://h.example/a\nFROM busybox\nARG U\nADD $U /x\nARG F=file\nADD $F /y\n"
        'ENV L="a\'b`"\nADD "$L" /z\n'
    )
    sent = rewritten(text)
    assert "ADD $" not in sent
    assert not any(add.remote for add in adds(sent, {}))
