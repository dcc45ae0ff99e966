"""The application and the jobs of run_huey.py."""

import os
import time

from huey import PriorityRedisHuey, RedisHuey
from scenario import fails_until, note, url, work as do_work

kind = PriorityRedisHuey if os.environ.get("SCENARIO_HUEY") == "priorities" else RedisHuey
huey = kind("jobs", url=url)


@huey.task(retries=3)
def work(name):
    return do_work(name)


@huey.task(retries=3, retry_delay=1)
def again(times):
    return fails_until("again", times)


@huey.task(retries=1)
def hopeless():
    note("hopeless", time.time())
    raise ValueError("hopeless")


@huey.task()
def later():
    note("later", time.time())
    return "later"


@huey.task()
def add(x, y):
    return x + y
