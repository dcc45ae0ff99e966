"""redis-py over TLS: python run_tls.py PORT CA CERTIFICATE KEY OTHER_CA."""

import asyncio
import sys
import threading
import time

import redis
import redis.asyncio

port, ca, certificate, key, other_ca = sys.argv[1:]
OPTIONS = {
    "host": "127.0.0.1",
    "port": int(port),
    "ssl": True,
    "ssl_ca_certs": ca,
    "ssl_certfile": certificate,
    "ssl_keyfile": key,
}


def refused(**changed):
    options = {name: value for name, value in {**OPTIONS, **changed}.items() if value is not None}
    try:
        # A client that shows no certificate learns of it from its first reply (TLS 1.3).
        redis.Redis(**options).ping()
    except redis.exceptions.RedisError:
        return True
    return False


client = redis.Redis(**OPTIONS, decode_responses=True)
assert client.ping()
large = "x" * 3_000_000
assert client.set("large", large) and client.get("large") == large
pipeline = client.pipeline()
for number in range(1_000):
    pipeline.rpush("queue", number)
assert pipeline.execute()[-1] == 1_000
assert client.lpop("queue", 1_000) == [str(number) for number in range(1_000)]

threading.Timer(0.3, lambda: redis.Redis(**OPTIONS).rpush("queue", "late")).start()
assert client.blpop("queue", timeout=20) == ("queue", "late")

listener = client.pubsub(ignore_subscribe_messages=True)
listener.subscribe("news")
message, deadline = None, time.time() + 20
while message is None and time.time() < deadline:
    client.publish("news", "now")
    message = listener.get_message(timeout=0.1)
assert message["data"] == "now"

url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={ca}&ssl_certfile={certificate}&ssl_keyfile={key}"
assert redis.Redis.from_url(url).ping()


async def from_asyncio():
    async with redis.asyncio.Redis(**OPTIONS) as one:
        return await one.ping()


assert asyncio.run(from_asyncio())
assert refused(ssl_certfile=None, ssl_keyfile=None)
assert refused(ssl_ca_certs=other_ca)
assert refused(ssl=False, ssl_ca_certs=None, ssl_certfile=None, ssl_keyfile=None)
