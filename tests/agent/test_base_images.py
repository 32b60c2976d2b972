"""Base images are here before a build begins, and bring no triggers that reach further."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent.engine_requests import BuildRequest, Credential
from agent.errors import EngineError, NotFound
from agent.fetch.registry import RegistryGate
from agent.protocol.bases import Base
from agent.protocol.triggers import triggers_problem
from agent.runtime.base_images import MissingBase, check_bases
from agent.runtime.fake import FakeRuntime
from agent.steps import BuildImage
from agent.work.images import ImageWork
from tests.agent.fake_fetch import FakeFetcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.protocol.report import BuildStatus
    from agent.runtime.fake_streams import FakeStream

OTHERS = "trailer/4a1e6c1e-93f5-4b0e-8f83-1f0b5a3f7a11"
REF = "trailer/i-app:latest"


@pytest.mark.parametrize(
    ("trigger", "part"),
    [
        (f"COPY --from={OTHERS} / /stolen", "only the Dockerfile itself"),
        (f"copy --chown=1:1 --from={OTHERS} / /stolen", "only the Dockerfile itself"),
        (f"COPY \\\n --from={OTHERS} / /stolen", "only the Dockerfile itself"),
        (f'COPY --fr"om"={OTHERS} / /stolen', "only the Dockerfile itself"),
        (f"RUN --mount=from={OTHERS},target=/x true", "only the Dockerfile itself"),
        ("COPY --from=registry.example/somebodys/private:1 / /x", "only the Dockerfile itself"),
        ("COPY --from=later / /x", "only the Dockerfile itself"),
        ("ADD http://127.0.0.1:9/x /x", "Only an ADD of the Dockerfile itself"),
        ("ADD https://h.example/x /x", "Only an ADD of the Dockerfile itself"),
        ("add \\\n git@h.example:x /x", "Only an ADD of the Dockerfile itself"),
        ('ADD ["\\u0068ttp://127.0.0.1/", "/x"]', "Only an ADD of the Dockerfile itself"),
        ("ADD $URL /x", "Only an ADD of the Dockerfile itself"),
        (f"RUN true \\\\\nCOPY --from={OTHERS} / /stolen", "do not agree"),
        ("RUN <<E\nE", "here-document"),
    ],
)
def test_a_trigger_that_takes_an_image_is_refused_by_name(trigger: str, part: str) -> None:
    problem = triggers_problem(Base("evil/base:1", stages=frozenset({"built"})), [trigger], ())
    assert problem.startswith("The base image evil/base:1 has the trigger “")
    assert part in problem
    assert problem.endswith(".")


def test_triggers_that_stay_within_the_build_are_taken() -> None:
    base = Base("node:onbuild", stages=frozenset({"built"}))
    usual = [
        "COPY package.json /app/",
        "ADD . /app",
        "ADD --chown=1 a.tgz /",
        "RUN npm install",
        "COPY --from=Built /a /b",
        "ARG X=1",
    ]
    shared = "RUN --mount=type=cache,target=/c true"
    assert triggers_problem(base, [*usual, "COPY --from=0 /a /b", shared], ()) == ""
    assert "type cache" in triggers_problem(base, [shared], {"token"})


class Engine:
    """Of the connections to an engine what the check needs; `triggers` by image."""

    def __init__(
        self,
        triggers: dict[str, list[str] | None],
        arch: str = "amd64",
        env: tuple[str, ...] = (),
    ) -> None:
        self._triggers = triggers
        self._env = env
        self._arch = arch
        self.asked: Counter[str] = Counter()

    def run(self, call: Callable[[Any], Any]) -> Any:
        return call(self)

    def inspect_image(self, ref: str) -> dict[str, Any]:
        self.asked[ref] += 1
        if ref not in self._triggers:
            raise NotFound(f"No such image: {ref}")
        config = {"OnBuild": self._triggers[ref], "Env": self._env}
        return {"Os": "linux", "Architecture": self._arch, "Config": config}

    def version(self) -> dict[str, str]:
        self.asked["version"] += 1
        return {"Os": "linux", "Arch": "amd64"}


def check(engine: Engine, dockerfile: str, **fields: Any) -> None:
    connections: Any = engine
    check_bases(connections, BuildRequest(ref=REF, dockerfile=dockerfile, **fields))


def test_a_base_is_looked_at_once_however_often_it_is_named() -> None:
    engine = Engine({"busybox": None, "other:1": None, "node:1": ["COPY --from=one / /x"]})
    text = (
        "FROM busybox AS one\nFROM busybox\nCOPY --from=other:1 / /\nFROM scratch\nFROM one\n"
        "FROM node:1\nFROM never:1\n"
    )
    check(engine, text, target="4")
    assert engine.asked == {"busybox": 1, "other:1": 1, "node:1": 1}


def test_a_hostile_base_of_any_stage_is_refused_before_the_build() -> None:
    engine = Engine({"busybox": None, "evil/base": [f"COPY --from={OTHERS} / /stolen"]})
    with pytest.raises(EngineError, match="The base image evil/base has the trigger"):
        check(engine, "ARG B=base\nFROM busybox AS x\nFROM evil/$B AS y\nFROM x")


def test_with_buildkit_images_that_are_only_copied_from_are_looked_at_too() -> None:
    engine = Engine({"busybox": None, "evil/base": [f"COPY --from={OTHERS} / /stolen"]})
    text = "FROM busybox\nCOPY --from=evil/base /a /b"
    check(engine, text)
    with pytest.raises(EngineError, match="The base image evil/base has the trigger"):
        check(engine, text, secrets={"a": "b"})


def test_a_base_that_is_not_here_is_named() -> None:
    with pytest.raises(MissingBase) as missing:
        check(Engine({}), "FROM busybox:1")
    assert missing.value.ref == "busybox:1"


@pytest.mark.parametrize(
    ("triggers", "env"),
    [(None, ("PATH=/bin", "V=2")), (["ENV V=2"], ()), (["ARG V"], ()), (['ENV "V"=2'], ())],
)
def test_an_argument_that_the_base_sets_itself_is_refused(
    triggers: list[str] | None, env: tuple[str, ...]
) -> None:
    engine = Engine({"busybox": triggers, "other": None}, env=env)
    check(engine, "FROM busybox", filled_in={"busybox": frozenset({"U"}) if env else frozenset()})
    with pytest.raises(EngineError, match="may set V itself, which an ADD of the Dockerfile uses"):
        check(engine, "FROM busybox", filled_in={"busybox": frozenset({"V"})})


@pytest.mark.parametrize(
    ("flag", "arch", "secrets", "part"),
    [
        ("", "arm64", {}, ""),
        ("", "arm64", {"a": "b"}, "for linux/arm64, and the build wants it for linux/amd64"),
        ("", "amd64", {"a": "b"}, ""),
        ("--platform=linux/amd64", "amd64", {}, ""),
        ("--platform=linux/x86_64", "amd64", {}, ""),
        ("--platform=amd64", "amd64", {}, ""),
        ("--platform=linux", "amd64", {}, ""),
        ("--platform=$BUILDPLATFORM", "amd64", {}, ""),
        ("--platform=${TARGETPLATFORM}", "amd64", {"a": "b"}, ""),
        ("--platform=linux/arm64", "amd64", {}, "wants it for linux/arm64"),
        ("--platform=linux/arm64/v8", "arm64", {}, ""),
        ("--platform=linux/$TARGETARCH", "amd64", {}, "not clear which platform"),
        ("--platform=${BUILDPLATFORM:-linux/arm64}", "amd64", {}, "not clear which platform"),
    ],
)
def test_only_the_image_that_was_looked_at_is_built_from(
    flag: str, arch: str, secrets: dict[str, str], part: str
) -> None:
    engine = Engine({"busybox": None}, arch)
    if not part:
        check(engine, f"FROM {flag} busybox", secrets=secrets)
        return
    with pytest.raises(EngineError) as refused:
        check(engine, f"FROM {flag} busybox", secrets=secrets)
    assert part in str(refused.value)


# --- fetching them -------------------------------------------------------------------------------


class Runtime(FakeRuntime):
    """An engine that has no base unless it was pulled."""

    def __init__(self) -> None:
        super().__init__()
        self.pulls: list[tuple[str, str]] = []
        self.pulls_base: list[bool] = []

    def pull_image(self, ref: str, credential: Credential | None) -> FakeStream:
        self.pulls.append((ref, credential.username if credential else ""))
        return super().pull_image(ref, credential)

    def build_image(self, request: BuildRequest, credential: Credential | None) -> FakeStream:
        for ref in ("busybox", "reg.example/team/base:1"):
            if f"FROM {ref}" in request.dockerfile and not self.has(ref):
                raise MissingBase(ref)
        self.pulls_base.append(request.pull_base)
        return super().build_image(request, credential)

    def has(self, ref: str) -> bool:
        try:
            return bool(self.inspect_image(ref))
        except NotFound:
            return False


def build(runtime: Runtime, dockerfile: str, **fields: Any) -> BuildStatus:
    step = BuildImage(
        image_id="i-app",
        key="image:i-app",
        name="app",
        cause="wanted",
        build_id="b-app",
        request=BuildRequest(ref=REF, dockerfile=dockerfile, **fields),
        credential=Credential(server="reg.example", username="robot", password="p4ss"),
    )
    work = ImageWork(
        step,
        runtime,
        timeout=60,
        write=lambda _: None,
        on_progress=lambda _: None,
        registries=RegistryGate(FakeFetcher()),
    )
    ended = work.run()
    assert ended is not None
    return ended


TWO = "FROM busybox AS one\nFROM reg.example/team/base:1\nCOPY --from=one / /x\n"


def test_a_base_that_is_not_here_is_fetched_first_with_its_own_registrys_password() -> None:
    runtime = Runtime()
    runtime.registry |= {"busybox": "sha256:b", "reg.example/team/base:1": "sha256:t"}
    assert build(runtime, TWO).status == "finished"
    assert runtime.pulls == [("busybox", ""), ("reg.example/team/base:1", "robot")]
    assert build(runtime, TWO).status == "finished"
    assert len(runtime.pulls) == 2


def test_bases_that_are_to_be_pulled_anew_are_not_pulled_by_the_engine_again() -> None:
    runtime = Runtime()
    refs = ("busybox", "reg.example/team/base:1", "tools:1")
    runtime.registry |= {ref: f"sha256:{ref}" for ref in refs}
    assert build(runtime, f"{TWO}COPY --from=tools:1 / /", pull_base=True).status == "finished"
    assert [ref for ref, _ in runtime.pulls] == list(refs)
    assert runtime.pulls_base == [False]


def test_a_base_that_no_registry_gives_fails_the_build_in_a_sentence() -> None:
    ended = build(Runtime(), "FROM busybox")
    assert ended.status == "failed"
    assert ended.message.startswith("The base image busybox could not be fetched. busybox was not")
