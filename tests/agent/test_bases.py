"""Images that nobody may take by name: the engine would hand them to whoever asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.host_policy import HostPolicy
from agent.plan import BuildFinding, ImageFinding
from agent.protocol.bases import dockerfile_bases, dockerfile_problem, reserved_problem
from tests.agent.documents import document, image, workspace

if TYPE_CHECKING:
    from agent.protocol.state import HostState
    from tests.agent.bench import Bench

THEIR_ID = "4a1e6c1e-93f5-4b0e-8f83-1f0b5a3f7a11"
OTHERS = f"trailer/{THEIR_ID}"
BUILT = f"{OTHERS}:latest"


@pytest.mark.parametrize(
    "prefix", ["", "docker.io/", "index.docker.io/", "Docker.io/", "library/"]
)
def test_a_reference_to_trailers_own_images_is_refused_in_every_spelling(prefix: str) -> None:
    assert "keeps a build or snapshot" in reserved_problem(f"{prefix}{BUILT}")


@pytest.mark.parametrize(
    "ref", ["sha256:4f", "SHA256:4f", f"sha256:{'4f' * 32}", "4f" * 32, "sha256:" + "4" * 63]
)
def test_an_images_id_is_no_reference(ref: str) -> None:
    assert "may be the id of an image" in reserved_problem(ref)


@pytest.mark.parametrize(
    "ref", [f"{OTHERS}:", f"{OTHERS}:a b", f"{OTHERS}@sha256:1", f"/{OTHERS}"]
)
def test_what_no_engine_reads_is_refused_where_it_holds_trailers_own_names(ref: str) -> None:
    assert "keeps a build or snapshot" in reserved_problem(ref)


@pytest.mark.parametrize(
    "ref", ["busybox", "trailer/agent:1", "ghcr.io/trailer/agent:1", "my/trailer/x", f"{OTHERS}/x"]
)
def test_other_references_are_not(ref: str) -> None:
    assert reserved_problem(ref) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"FROM {BUILT}",
        f"from docker.io/{OTHERS} AS x",
        f"FROM --platform=linux/amd64 {OTHERS}",
        f"\ufeffFROM {OTHERS}",
        f"FROM busybox\nCOPY --from={OTHERS} / /stolen",
        f"FROM busybox\nCOPY --chown=1:1 --from={OTHERS} / /stolen",
        f"FROM busybox\nONBUILD COPY --from={OTHERS} / /stolen",
        f"FROM busybox\nRUN --mount=type=bind,from={OTHERS},target=/x cp -r /x /y",
        f"FROM busybox\nRUN --mount=type=bind,FROM={OTHERS},target=/x cp -r /x /y",
        f'FROM busybox\nRUN --mount=type=bind,fr"om"={OTHERS},target=/x cp -r /x /y',
        f'FROM busybox\nCOPY --fr"om"={OTHERS} / /stolen',
        f"FROM busybox\nCOPY --fr\\om={OTHERS} / /stolen",
        f'FROM busybox\nCOPY --chown="1 1" --from={OTHERS} / /stolen',
        f"FROM \\\n# why\n\n  {OTHERS}\n",
        f"FROM tra\\\niler/{THEIR_ID}",
        f"# escape=`\nFROM tra`\niler/{THEIR_ID}",
        f"ARG BASE={OTHERS}\nFROM $BASE",
        f'ARG BASE="{OTHERS}"\nFROM ${{BASE}}',
        f"ARG A=trail\nARG B=${{A}}er\nFROM ${{B}}/{THEIR_ID}",
        f"ARG A=1 B=er/{THEIR_ID}\nFROM trail$B",
        f"FROM ${{NOT:-{OTHERS}}}",
        f"ARG A=1\nFROM ${{A:+{OTHERS}}}",
        "ARG GIVEN=busybox\nFROM $GIVEN",
        *("FROM tr'ai'ler/x", 'FROM "trailer"/x', "FROM trai\\ler/x", "FROM ${A:-${B}}"),
        *("FROM a", "FROM 4f", "FROM sha256:4f", f"FROM {'4f' * 32}", "FROM 4F AS x"),
        *("FROM busybox\nCOPY --from=ab / /", "FROM busybox\nCOPY --from=ab / /\nFROM x AS ab"),
        'FROM busybox\nCOPY --from="ab" / /',
    ],
)
def test_a_dockerfile_that_takes_what_others_made_is_refused(text: str) -> None:
    problem = dockerfile_problem(text, {"GIVEN": OTHERS})
    assert problem.endswith(".")


COPY = f"COPY --from={OTHERS} / /stolen"


@pytest.mark.parametrize(
    "text",
    [
        f"FROM ${{TARGETOS:+{OTHERS}}}",
        f"ARG TARGETOS\nFROM ${{TARGETOS:+{OTHERS}}}",
        f"ARG A=${{TARGETOS:+{OTHERS}}}\nFROM $A",
        f"ARG A=$TARGETVARIANT\nFROM {OTHERS}${{A:+/x}}",
        f"ARG A={OTHERS}\nARG A\nFROM ${{A:-busybox}}",
        f"ARG A\nFROM {OTHERS}${{A+/x}}",
        "FROM busybox:$UNKNOWN",
        *("ARG A\nFROM $A", 'FROM ""'),
        f'ARG A=busybox\nARG "A"={OTHERS}\nFROM $A',
        f'ARG A={OTHERS}\nARG B="1 A=busybox "\nFROM $A',
        f"ARG A=busybox\nARG A\u00e9={OTHERS}\nFROM $A\u00e9",
    ],
)
def test_a_base_that_an_engine_may_fill_in_otherwise_is_not_clear(text: str) -> None:
    assert "It is not clear which image" in dockerfile_problem(text, {})


@pytest.mark.parametrize("space", ["\u00a0", "\v", "\f", "\u2003", "\x1f", "\r "])
def test_a_line_whose_end_only_some_see_is_refused(space: str) -> None:
    assert dockerfile_problem(f"FROM busybox\nRUN true \\{space}\n{COPY}", {}).endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        f"FROM busybox\nRUN true \\\\\n{COPY}",
        f"# escape=`\nFROM busybox\nRUN true ``\n{COPY}",
        f"# foo=bar\n# escape=`\nFROM busybox\nRUN true `\n{COPY}",
        f"# foo=bar\n# escape=`\nFROM busybox\nRUN true \\\n{COPY}",
        f"# check=skip=all\n# escape=`\nFROM busybox\nRUN true `\n{COPY}",
        f"\n# escape=`\nFROM busybox\nRUN true `\n{COPY}",
        f"# escape=`x\nFROM busybox\nRUN true `\n{COPY}",
        f"FROM busybox\nRUN true \\\n\x1c# no comment\n{COPY}",
        f"FROM busybox\nRUN true \\\n\x1f\n{COPY}",
        f"FROM busybox\nRUN echo \fFROM x\f{COPY}",
        f"FROM busybox\nRUN echo \rFROM x\r{COPY}",
    ],
)
def test_what_engines_read_differently_is_refused(text: str) -> None:
    problem = dockerfile_problem(text, {})
    assert "ngines do not" in problem
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        f"FROM busybox\nRUN true <<'E\\'\nE\\\n{COPY}",
        f"FROM busybox\nRUN true <<#E\nfoo \\\n#E\n{COPY}",
        f"FROM busybox\nONBUILD ADD ${{X:+a b}}3<<E\\ /a\nE\\\n{COPY}",
        "FROM busybox\nRUN cat <<E\nFROM x AS ab\nE\nCOPY --from=ab / /stolen",
    ],
)
def test_no_here_document_hides_a_line_or_makes_one_up(text: str) -> None:
    assert "here-document" in dockerfile_problem(text, {})


@pytest.mark.parametrize(
    "text",
    [
        f"# syntax=a b\n# escape=`\nFROM busybox\nRUN dir C:\\\n{COPY}",
        f"# escape=`\nFROM busybox\nRUN dir C:\\\n{COPY}",
        f"\ufeff# escape=`\nFROM busybox\nRUN dir C:\\\n{COPY}",
        f"FROM busybox\nCOPY --chown=\u00e0--from={OTHERS} / /stolen",
        f"FROM busybox\nCOPY --chown=1` x --from={OTHERS} / /stolen",
        f"FROM --platform=linux${{Z:+\\ busybox }} {OTHERS}",
        f"FROM busybox AS {OTHERS}\n{COPY}",
        f"FROM busybox\nCOPY --from={'1' * 24} / /stolen",
    ],
)
def test_a_line_that_another_seems_to_hide_is_read(text: str) -> None:
    assert dockerfile_problem(text, {})


@pytest.mark.parametrize(
    ("text", "bases"),
    [
        ("FROM --platform=$BUILDPLATFORM golang:1", ["golang:1"]),
        ("FROM --platform=${TARGETPLATFORM:-linux/amd64} golang:1 AS a\nFROM a", ["golang:1"]),
        ("FROM busybox\nRUN sed 's/a\\\\b/c/' file", ["busybox"]),
        ("FROM busybox\n# a tree: \\\\\nRUN true\\ \t\r\n && false", ["busybox"]),
        ("# Made by hand = yes\n# and more\nFROM busybox", ["busybox"]),
        ("# syntax=docker/dockerfile:1\n# escape=\\\nFROM busybox", ["busybox"]),
        ("# foo=bar\n# escape=\\\nFROM busybox", ["busybox"]),
        ("# escape=`\nFROM busybox\nWORKDIR C:\\\\\nRUN a `\n b", ["busybox"]),
        ("ARG V=1 # which one\nFROM busybox:$V", ["busybox:1"]),
        ('ARG WORDS="a b"\nARG V=1\nFROM busybox:$V', ["busybox:1"]),
        ("ARG TARGETARCH\nARG V\nFROM busybox:${V:-1}", ["busybox:1"]),
        ('FROM busybox\nRUN cat <<< "x" && echo $((1<<3)) $((1 << 3))', ["busybox"]),
        ("FROM busybox\nRUN echo \u00e9\u00a0\u3000 \x1b[1m", ["busybox"]),
    ],
)
def test_ordinary_dockerfiles_are_taken(text: str, bases: list[str]) -> None:
    assert dockerfile_problem(text, {}) == ""
    assert [base.text for base in dockerfile_bases(text, {})] == bases


def test_the_images_of_a_target_end_with_its_stage() -> None:
    text = "FROM a:1 AS one\nFROM b:1 AS two\nCOPY --from=c:1 / /\nFROM d:1"
    wanted = {"one": "a", "0": "a", "TWO": "abc", "": "abcd", "none": "abcd"}
    for target, names in wanted.items():
        found = dockerfile_bases(text, {}, target)
        assert "".join(base.text[0] for base in found) == names


@pytest.mark.parametrize(
    ("text", "bases"),
    [
        ("FROM busybox", ["busybox"]),
        ("FROM scratch\nCOPY x /x", []),
        ("FROM golang:1 AS ab\nFROM busybox\nCOPY --from=ab /a /b", ["golang:1", "busybox"]),
        ("FROM golang:1 AS ab\nFROM AB\nCOPY --from=0 /a /b", ["golang:1"]),
        ('ARG V="1.36"\nFROM busybox:${V}', ["busybox:1.36"]),
        ("ARG V\nFROM busybox:${V:-1}", ["busybox:1"]),
        ("ARG V=2\nFROM busybox${V:+:$V}", None),
        ("FROM busybox\nRUN echo FROM trailer/x\n# FROM trailer/x", ["busybox"]),
        ("FROM busybox\nRUN echo \\\n FROM trailer/x", ["busybox"]),
        ("FROM busybox\nCOPY --from=nginx:1 /etc /etc", ["busybox", "nginx:1"]),
        ('FROM busybox\nCOPY --chown="1:1" --from=nginx:1 /etc /etc', ["busybox", "nginx:1"]),
        ("", []),
        ("FROM", []),
    ],
)
def test_the_images_of_a_dockerfile_are_read_as_the_engine_reads_them(
    text: str, bases: list[str] | None
) -> None:
    found = list(dockerfile_bases(text, {}))
    assert bases is None or [base.text for base in found] == bases
    assert (dockerfile_problem(text, {}) == "") == (bases is not None)


FORGED: dict[str, dict[str, Any]] = {
    "a pull": {"kind": "pull", "ref": BUILT},
    "a base": {"kind": "build", "ref": "trailer/i-x:latest", "dockerfile": f"FROM {OTHERS}"},
    "a push": {"kind": "build", "dockerfile": "FROM busybox", "push": True, "reference": BUILT},
}


def asked(fields: dict[str, Any], *, done: bool) -> HostState:
    wanted = image("x", done=done, **fields)
    user = workspace(image_ref=wanted.ref, image_id="i-x")
    return document(images=(wanted,), workspaces=(user,))


@pytest.mark.parametrize("what", FORGED)
def test_the_agent_refuses_a_document_that_takes_them(bench: Bench, what: str) -> None:
    bench.runtime.add_image(BUILT)
    state = asked(FORGED[what], done=False)
    refused = HostPolicy().refusals(state, resolve=str)
    assert list(refused) == ["image:i-x"]
    plan = bench.plan(state, refused=refused)
    assert plan.nodes == ()
    told = [finding for finding in plan.findings if isinstance(finding, BuildFinding)]
    assert [finding.status for finding in told] == ["failed"]


def test_no_workspace_starts_from_another_ones_build_although_it_is_there(bench: Bench) -> None:
    bench.runtime.add_image(BUILT)
    state = asked(FORGED["a pull"], done=True)
    plan = bench.plan(state, refused=HostPolicy().refusals(state, resolve=str))
    assert plan.nodes == ()
    assert not [finding for finding in plan.findings if isinstance(finding, ImageFinding)]


def test_what_was_built_before_stays_usable(bench: Bench) -> None:
    bench.runtime.add_image("trailer/i-x:latest")
    state = asked(FORGED["a base"], done=True)
    assert not HostPolicy().refusals(state, resolve=str)
