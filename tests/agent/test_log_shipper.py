"""Build output on its way to the server: whole when it can be, bounded when it cannot."""

from agent.server.http import HttpServer
from agent.work import log_shipper
from agent.work.log_shipper import LogShipper
from tests.agent.fake_server import TOKEN, FakeServer
from tests.ground.wait import eventually


def shipper(server: FakeServer) -> LogShipper:
    server.epoch = 1
    return LogShipper(HttpServer(server.url, token=TOKEN), "b", epoch=lambda: 1)


def test_output_arrives_in_order_and_whole(fake_server: FakeServer) -> None:
    ship = shipper(fake_server)
    for number in range(2000):
        ship.write(f"line {number}\n")
    ship.close(patience=5)
    expected = "".join(f"line {number}\n" for number in range(2000)).encode()
    assert fake_server.book.logs["b"] == expected
    assert ship.sent_bytes == len(expected)
    assert fake_server.book.requests.count("POST /builds/b/log") < 20


def test_output_is_on_its_way_while_the_build_runs(fake_server: FakeServer) -> None:
    ship = shipper(fake_server)
    ship.write("Step 1\n")
    eventually(lambda: fake_server.book.logs.get("b") == b"Step 1\n", 2)
    ship.close(patience=5)


def test_a_server_that_was_away_gets_the_rest(fake_server: FakeServer) -> None:
    fake_server.answers["/builds/b/log"] = (503, b"")
    ship = shipper(fake_server)
    ship.write("early\n")
    eventually(lambda: "POST /builds/b/log" in fake_server.book.requests)
    ship.write("late\n")
    fake_server.answers.clear()
    ship.close(patience=10)
    assert fake_server.book.logs["b"] == b"early\nlate\n"


def test_what_is_still_to_come_counts_when_the_build_ends(fake_server: FakeServer) -> None:
    """The result may overtake the last lines: it says how many bytes there will be."""
    fake_server.answers["/builds/b/log"] = (503, b"")
    ship = shipper(fake_server)
    ship.write("early\n")
    eventually(lambda: "POST /builds/b/log" in fake_server.book.requests)
    ship.write("läte\n")
    ship.close(patience=0.1)
    assert (ship.sent_bytes, ship.total_bytes) == (0, len("early\nläte\n".encode()))
    fake_server.answers.clear()
    eventually(lambda: ship.sent_bytes == ship.total_bytes, 20)
    assert len(fake_server.book.logs["b"]) == ship.total_bytes


def test_a_restarted_build_goes_on_behind_what_the_server_has(fake_server: FakeServer) -> None:
    fake_server.book.logs["b"] = b"before the crash\n"
    ship = shipper(fake_server)
    ship.write("again\n")
    ship.close(patience=5)
    assert fake_server.book.logs["b"] == b"before the crash\nagain\n"


def test_a_short_log_of_an_earlier_try_costs_the_next_one_nothing(
    fake_server: FakeServer,
) -> None:
    """The server takes what lies before its end for something sent again."""
    fake_server.book.logs["b"] = b"one\n"
    ship = shipper(fake_server)
    ship.write("two\nthree\n")
    ship.close(patience=5)
    assert fake_server.book.logs["b"] == b"one\ntwo\nthree\n"
    assert ship.sent_bytes == ship.total_bytes == len(fake_server.book.logs["b"])


def test_a_server_that_lost_what_it_had_gets_the_rest(fake_server: FakeServer) -> None:
    """An older backup was restored: the log is shorter than the shipper knows."""
    ship = shipper(fake_server)
    ship.write("one\ntwo\n")
    eventually(lambda: ship.sent_bytes == 8)
    fake_server.book.logs["b"] = b"one\n"
    ship.write("three\n")
    ship.close(patience=5)
    assert fake_server.book.logs["b"] == b"one\nthree\n"


def test_a_reply_that_got_lost_doubles_nothing(fake_server: FakeServer) -> None:
    ship = shipper(fake_server)
    ship.write("one\n")
    eventually(lambda: ship.sent_bytes == 4)
    # The server has stored the next batch, but its answer never came.
    fake_server.book.logs["b"] += b"two\n"
    ship.write("two\nthree\n")
    ship.close(patience=5)
    assert fake_server.book.logs["b"] == b"one\ntwo\nthree\n"


def test_a_long_line_is_cut(fake_server: FakeServer) -> None:
    ship = shipper(fake_server)
    ship.write("x" * 100_000 + "\nnext\n")
    ship.close(patience=5)
    cut, following = fake_server.book.logs["b"].splitlines()
    assert len(cut) < 17_000
    assert "83616 characters cut" in cut.decode()
    assert following == b"next"


def test_memory_stays_bounded_and_what_is_missing_is_the_middle(fake_server: FakeServer) -> None:
    fake_server.answers["/builds/b/log"] = (503, b"")
    ship = shipper(fake_server)
    lines = [f"{number:015d}\n" for number in range(6 * 1024 * 1024 // 16)]
    for start in range(0, len(lines), 64):
        ship.write("".join(lines[start : start + 64]))
    assert ship.held_bytes <= log_shipper.HEAD_BYTES + log_shipper.TAIL_BYTES
    fake_server.answers.clear()
    ship.close(patience=20)
    whole, log = "".join(lines).encode(), fake_server.book.logs["b"]
    head, marked, rest = log.partition(b"\n\xe2\x80\xa6 ")
    assert marked
    # The mark lies inside of what the server keeps of the beginning.
    assert log_shipper.HEAD_BYTES - 20_000 < len(head) < log_shipper.HEAD_BYTES - 60
    assert whole.startswith(head)
    count, _, tail = rest.partition(b" bytes of output left out \xe2\x80\xa6\n")
    assert whole.endswith(tail)
    assert len(tail) > log_shipper.TAIL_BYTES - 20_000
    assert len(head) + int(count) + len(tail) == len(whole)
    assert ship.total_bytes == len(log)
