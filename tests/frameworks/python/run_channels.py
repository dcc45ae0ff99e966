"""channels_redis: the core layer, which keeps what is sent, and the layer on pub/sub, which does not."""

import asyncio

from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from scenario import end, kill, url

OUTCOMES = {}


async def received(layer, channel):
    return (await asyncio.wait_for(layer.receive(channel), 30))["text"]


async def again(make):
    """Calls until the server answers."""
    for attempt in range(100):
        try:
            return await make()
        except Exception:
            if attempt == 99:
                raise
            await asyncio.sleep(0.1)


async def core():
    layer = RedisChannelLayer(hosts=[url], capacity=5)
    members = [await layer.new_channel() for _ in range(3)]
    for member in members:
        await layer.group_add("group", member)
    await layer.group_discard("group", members[2])
    for number in range(3):
        await layer.send("kept", {"type": "message", "text": f"kept {number}"})
    await asyncio.to_thread(kill)
    # The connections are those of before the kill.
    await again(lambda: layer.group_send("group", {"type": "message", "text": "to all"}))
    layer = RedisChannelLayer(hosts=[url], capacity=5)
    OUTCOMES["kept"] = [await received(layer, "kept") for _ in range(3)]
    await layer.group_send("group", {"type": "message", "text": "to all"})
    await layer.flush()
    inbox = await layer.new_channel()
    await layer.group_add("group", inbox)
    await layer.group_send("group", {"type": "message", "text": "to the group"})
    OUTCOMES["core"] = await received(layer, inbox)


async def pubsub():
    layer = RedisPubSubChannelLayer(hosts=[url])
    inbox = await layer.new_channel()
    await layer.group_add("group", inbox)
    await layer.group_send("group", {"type": "message", "text": "before"})
    before = await received(layer, inbox)
    await asyncio.to_thread(kill)
    for _ in range(300):
        # It subscribes again by itself; what is sent until then reaches nobody.
        await again(lambda: layer.group_send("group", {"type": "message", "text": "after"}))
        try:
            after = (await asyncio.wait_for(layer.receive(inbox), 0.3))["text"]
            break
        except asyncio.TimeoutError:
            pass
    OUTCOMES["pub/sub"] = [before, after]
    await layer.flush()


asyncio.run(core())
asyncio.run(pubsub())
end(OUTCOMES)
