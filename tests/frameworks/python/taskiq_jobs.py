"""The broker and the jobs of run_taskiq.py. The environment says which broker."""

import asyncio
import os
import time

from scenario import fails_until, note, url, work as do_work
from taskiq import SimpleRetryMiddleware, TaskiqScheduler
from taskiq_redis import (
    ListQueueBroker,
    ListRedisScheduleSource,
    PubSubBroker,
    RedisAsyncResultBackend,
    RedisStreamBroker,
)

results = RedisAsyncResultBackend(redis_url=url, result_ex_time=600)
kind = os.environ["SCENARIO_BROKER"]
if kind == "list":
    broker = ListQueueBroker(url=url)
elif kind == "pubsub":
    broker = PubSubBroker(url=url)
else:
    broker = RedisStreamBroker(url=url, idle_timeout=4000, xread_block=500, xread_count=1)
broker = broker.with_result_backend(results).with_middlewares(SimpleRetryMiddleware(default_retry_count=5))
source = ListRedisScheduleSource(url)
scheduler = TaskiqScheduler(broker, [source])


@broker.task
async def work(name):
    return await asyncio.to_thread(do_work, name)


@broker.task(retry_on_error=True)
async def again(times):
    return fails_until("again", times)


@broker.task
async def hopeless():
    raise ValueError("hopeless")


@broker.task
async def later():
    note("later", time.time())
    return "later"
