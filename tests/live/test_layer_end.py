"""The embedded layer when the loop of a reader is over: nobody waits for it."""

import asyncio
import threading

from trailer.layer import EmbeddedChannelLayer


def test_a_message_for_a_loop_that_stopped_holds_nobody_up() -> None:
    layer = EmbeddedChannelLayer()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    channel = asyncio.run_coroutine_threadsafe(layer.new_channel(), loop).result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
    assert not loop.is_closed()

    sender = threading.Thread(target=lambda: asyncio.run(layer.send(channel, {"type": "late"})))
    sender.start()
    sender.join(3)
    assert not sender.is_alive(), "the sender waits for a loop that never runs again"
    loop.close()
