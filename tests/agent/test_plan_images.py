"""Golden plans: builds and pulls, and what a workspace says while its image is not there."""

from typing import Any

import msgspec
import pytest

from agent.diff.view import BuildRecord
from agent.plan import BuildFinding, ImageFinding, Plan, WorkspaceFinding
from agent.protocol.state import BuildFile, DesiredBuild, HostSettings, RegistryCredential
from agent.steps import BuildImage, PullImage
from tests.agent.bench import Bench
from tests.agent.documents import document, image, workspace

REF = "reg.example:5000/team/app:2"


def waiting(plan: Plan) -> tuple[str, str]:
    (found,) = [f for f in plan.findings if isinstance(f, WorkspaceFinding)]
    return found.status, found.message


def image_finding(plan: Plan) -> ImageFinding:
    (found,) = [f for f in plan.findings if isinstance(f, ImageFinding)]
    return found


def app(**fields: Any) -> Any:
    return image("app", ref=REF, **fields)


def uses_app(**lists: Any) -> Any:
    given = {"images": (app(done=False),), **lists}
    return document(workspaces=(workspace(image_ref=REF, image_id="i-app"),), **given)


def test_a_requested_pull_is_started_and_the_workspace_waits(bench: Bench) -> None:
    plan = bench.plan(uses_app())
    assert plan.render() == f"1. pull_image 'app' ({REF}): build 1 requested"
    assert waiting(plan) == ("deployment_pending", "Waiting for image app.")


def test_a_build_carries_its_files_arguments_and_labels(bench: Bench) -> None:
    desired = document(
        images=(
            image(
                "app",
                kind="build",
                ref="trailer/i-app:latest",
                done=False,
                dockerfile="FROM x",
                files=(BuildFile(path="a.txt", content="A"),),
                build_args={"K": "V"},
                target="final",
                pull_base=True,
            ),
        )
    )
    plan = bench.plan(desired)
    assert plan.render() == "1. build_image 'app' (trailer/i-app:latest): build 1 requested"
    step = plan.nodes[0].step
    assert isinstance(step, BuildImage)
    assert step.request.files == (("a.txt", "A"),)
    assert (step.request.target, step.request.pull_base) == ("final", True)
    assert step.request.labels["trailer.image"] == "i-app"


def test_work_in_flight_is_joined_never_doubled(bench: Bench) -> None:
    busy = {"running_builds": {"i-app": "b-app"}, "busy": frozenset({"image:i-app"})}
    plan = bench.plan(uses_app(), **busy)
    assert plan.nodes == ()
    assert waiting(plan) == ("deployment_pending", "Waiting for image app.")


def test_a_cancel_ends_the_work_once(bench: Bench) -> None:
    build = DesiredBuild(id="b-app", number=1, cancel=True)
    desired = uses_app(images=(app(build=build),))
    running = {"running_builds": {"i-app": "b-app"}, "busy": frozenset({"image:i-app"})}
    assert bench.plan(desired, **running).render() == "1. cancel_build 'app': cancel requested"
    again = bench.plan(desired, **running, cancelling=frozenset({"b-app"}))
    assert again.nodes == ()


def test_a_cancel_before_the_start_is_answered_too(bench: Bench) -> None:
    build = DesiredBuild(id="b-app", number=1, cancel=True)
    plan = bench.plan(document(images=(app(build=build),)))
    assert plan.render() == "1. cancel_build 'app': cancel requested"


def test_a_newer_build_ends_the_older_one_first(bench: Bench) -> None:
    newer = app(build=DesiredBuild(id="b-2", number=2))
    running = {"running_builds": {"i-app": "b-1"}, "busy": frozenset({"image:i-app"})}
    plan = bench.plan(document(images=(newer,)), **running)
    assert plan.render() == "1. cancel_build 'app': a newer build waits"
    waits = BuildFinding(
        image_id="i-app",
        build_id="b-2",
        status="pending",
        message="Waiting for the end of the one before.",
    )
    assert waits in plan.findings


@pytest.mark.parametrize("done", [False, True])
def test_a_build_waits_for_a_fetch_of_its_image_and_says_so(bench: Bench, done: bool) -> None:
    fetched = app(build=DesiredBuild(id="b-2", number=2, done=done))
    plan = bench.plan(document(images=(fetched,)), running_builds={"i-app": ""})
    told = [finding.message for finding in plan.findings if isinstance(finding, BuildFinding)]
    assert told == ([] if done else ["Waiting for the end of the one before."])
    assert plan.nodes == ()


def test_the_build_of_a_deleted_image_is_ended(bench: Bench) -> None:
    plan = bench.plan(document(images=()), running_builds={"i-app": "b-1"})
    assert plan.render() == "1. cancel_build 'i-app': image was deleted"


def test_a_broken_off_build_that_nobody_takes_up_again_is_ended(bench: Bench) -> None:
    begun = {"builds": {"b-1": BuildRecord(status="started", image_id="i-app")}}
    gone = document(images=())
    assert bench.plan(gone, **begun).render() == "1. cancel_build 'i-app': image was deleted"
    assert bench.plan(gone, **begun, hold_removals="An older backup was restored.").nodes == ()
    newer = document(images=(app(build=DesiredBuild(id="b-2", number=2, done=True)),))
    assert bench.plan(newer, **begun).render() == "1. cancel_build 'app': a newer build waits"
    busy = frozenset({"image:i-app"})
    assert bench.plan(newer, **begun, busy=busy).nodes == ()


def test_containers_that_a_broken_off_build_left_are_cleared(bench: Bench) -> None:
    loose = {"loose_steps": {"i-app": ""}}
    clear = "1. clear_build 'i-app': the engine broke off its build"
    assert bench.plan(document(images=()), **loose).render() == clear
    assert bench.plan(document(images=()), **loose, busy=frozenset({"image:i-app"})).nodes == ()
    assert bench.plan(document(images=()), **loose, held={"image:i-app": "no"}).nodes == ()
    # The next build of the image does it by itself.
    built = image("app", kind="build", ref="trailer/i-app:latest", dockerfile="FROM x")
    again = msgspec.structs.replace(built, build=DesiredBuild(id="b-2", number=2))
    (only,) = bench.plan(document(images=(again,)), **loose).nodes
    assert isinstance(only.step, BuildImage)
    assert only.step.resumed
    done = bench.plan(document(images=(built,)), **loose)
    assert done.render() == "1. clear_build 'app': the engine broke off its build"


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (
            BuildRecord(status="failed", message="no such tag"),
            "Image app could not be pulled: no such tag",
        ),
        (BuildRecord(status="cancelled"), "Image app was cancelled; start it again."),
    ],
)
def test_a_failed_image_is_named_by_its_workspaces(
    bench: Bench, record: BuildRecord, sentence: str
) -> None:
    plan = bench.plan(uses_app(), builds={"b-app": record})
    assert plan.nodes == ()
    assert waiting(plan) == ("error", sentence)


def test_a_build_interrupted_by_a_crash_is_run_again(bench: Bench) -> None:
    plan = bench.plan(uses_app(), builds={"b-app": BuildRecord(status="started")})
    assert plan.render() == f"1. pull_image 'app' ({REF}): build 1 requested"


def test_a_vanished_pull_image_is_fetched_again_only_if_a_workspace_needs_it(
    bench: Bench,
) -> None:
    plan = bench.plan(uses_app(images=(app(),)))
    assert plan.render() == (
        f"1. pull_image 'app' ({REF}): vanished from the engine, a workspace needs it"
    )
    assert isinstance(plan.nodes[0].step, PullImage)
    assert plan.nodes[0].step.build_id == ""
    assert waiting(plan) == ("deployment_pending", "Waiting for image app.")
    unused = bench.plan(document(images=(app(),)))
    assert unused.nodes == ()
    (found,) = [f for f in unused.findings if isinstance(f, ImageFinding)]
    assert found.present is False


def test_a_vanished_built_image_asks_to_be_built_again(bench: Bench) -> None:
    built = image("app", kind="build", ref="trailer/i-app:latest")
    plan = bench.plan(
        document(
            images=(built,),
            workspaces=(workspace(image_ref="trailer/i-app:latest", image_id="i-app"),),
        )
    )
    assert waiting(plan) == ("error", "Image app is not on this host; build it again.")


def test_a_running_container_does_not_need_its_vanished_image(bench: Bench) -> None:
    desired = document(workspaces=(workspace(),))
    bench.settle(desired)
    bench.runtime.images.clear()
    plan = bench.plan(desired)
    assert [node.step.verb for node in plan.nodes] == ["pull_image"]
    assert waiting(plan) == ("running", "")


def test_a_password_goes_only_to_the_server_it_was_given_for(bench: Bench) -> None:
    def pull(server: str) -> PullImage:
        credential = RegistryCredential(server=server, username="u", password="p")
        step = bench.plan(uses_app(images=(app(done=False, credential=credential),))).nodes[0].step
        assert isinstance(step, PullImage)
        return step

    assert pull("reg.example:5000").credential is not None
    assert pull("REG.example:5000").credential is not None
    assert pull("https://reg.example:5000/").credential is None
    assert pull("reg.example").credential is None
    assert pull("docker.io").credential is None


def test_a_present_image_is_pulled_only_by_wish_or_policy(bench: Bench) -> None:
    def accepts(policy: str, *, force: bool) -> bool:
        build = DesiredBuild(id="b", number=1, force=force)
        step = bench.plan(document(images=(app(build=build, update_policy=policy),))).nodes[0].step
        assert isinstance(step, PullImage)
        return step.accept_present

    assert accepts("if_missing", force=False)
    assert not accepts("if_missing", force=True)
    assert not accepts("always", force=False)


def test_a_disabled_host_starts_no_builds(bench: Bench) -> None:
    plan = bench.plan(uses_app(settings=HostSettings(enabled=False)))
    assert plan.nodes == ()


def test_a_known_image_is_used_at_once_while_a_rebuild_runs(bench: Bench) -> None:
    image_id = bench.runtime.add_image(REF)
    desired = document(
        images=(app(build=DesiredBuild(id="b-2", number=2)),),
        workspaces=(workspace(image_ref=REF, image_id="i-app", image_engine_id=image_id),),
    )
    busy = {"running_builds": {"i-app": "b-2"}, "busy": frozenset({"image:i-app"})}
    plan = bench.plan(desired, **busy)
    assert [node.step.verb for node in plan.nodes] == ["create_container", "start_container"]


def test_another_pull_of_the_tag_moves_no_image_that_has_its_own(bench: Bench) -> None:
    given = bench.runtime.add_image(REF, image_id="sha256:given")
    bench.runtime.add_image(REF, image_id="sha256:pulled-for-another")
    found = image_finding(bench.plan(document(images=(app(keep=(given,)),))))
    assert (found.present, found.engine_id) == (True, given)


@pytest.mark.parametrize("keep", [(), ("sha256:gone",), None])
def test_an_image_without_one_of_its_own_is_what_its_tag_means(
    bench: Bench, keep: tuple[str, ...] | None
) -> None:
    held = bench.runtime.add_image(REF)
    found = image_finding(bench.plan(document(images=(app(keep=keep),))))
    assert (found.present, found.engine_id) == (True, held)


def test_a_pull_that_the_server_has_not_heard_of_yet_is_not_told_as_the_one_before(
    bench: Bench,
) -> None:
    before = bench.runtime.add_image(REF, image_id="sha256:before")
    pulled = bench.runtime.add_image(REF, image_id="sha256:pulled")
    asked = app(keep=(before,), build=DesiredBuild(id="b-2", number=2))
    ended = {"b-2": BuildRecord(status="finished")}
    found = image_finding(bench.plan(document(images=(asked,)), builds=ended))
    assert (found.present, found.engine_id) == (True, pulled)
