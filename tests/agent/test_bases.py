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
