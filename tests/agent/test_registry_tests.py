"""Credentials that a user wants tried: each once, and the answer in words without the password."""

from agent.protocol.report import RegistryTested
from agent.protocol.state import DesiredRegistryTest, RegistryCredential
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch
from tests.ground.wait import eventually


def wish(number: int, username: str = "robot") -> DesiredRegistryTest:
    credential = RegistryCredential(server="reg.example", username=username, password="s3cret")
    return DesiredRegistryTest(id=f"t-{number}", credential=credential)


def answers(server: FakeServer) -> dict[str, RegistryTested]:
    return {item.test_id: item for item in server.all(RegistryTested)}


def test_each_is_tried_once_and_told(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    fake_server.desire(registry_tests=(wish(1), wish(2, "nobody")))
    launch()
    told = eventually(lambda: len(found := answers(fake_server)) == 2 and found, 10)
    assert told
    assert (told["t-1"].accepted, told["t-1"].message) == (True, "")
    assert not told["t-2"].accepted
    assert told["t-2"].message == "The registry reg.example refused this username and password."
    assert "s3cret" not in repr(fake_server.book.items)
    # An unrelated change of the document is no new wish.
    fake_server.desire(registry_tests=(wish(1), wish(3)), images=(image(),))
    eventually(lambda: "t-3" in answers(fake_server), 10)
    assert runtime.asked == ["reg.example"] * 3
