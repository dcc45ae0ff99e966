"""The broker and the jobs of run_dramatiq.py."""

import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage  # noqa: F401
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from scenario import fails_until, note, url, work as do_work

results = RedisBackend(url=url)
broker = RedisBroker(url=url, heartbeat_timeout=8000, maintenance_chance=100_000)
broker.add_middleware(Results(backend=results))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True, max_retries=5, min_backoff=200, max_backoff=500)
def work(name):
    return do_work(name)


@dramatiq.actor(store_results=True, max_retries=5, min_backoff=200, max_backoff=500)
def again(times):
    return fails_until("again", times)


@dramatiq.actor(max_retries=1, min_backoff=200, max_backoff=500)
def hopeless():
    note("hopeless", time.time())
    raise ValueError("hopeless")


@dramatiq.actor(store_results=True)
def later():
    note("later", time.time())
    return "later"


@dramatiq.actor(store_results=True)
def add(x, y):
    return x + y
