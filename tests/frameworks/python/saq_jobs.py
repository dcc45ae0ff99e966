"""The worker and the jobs of run_saq.py."""

import asyncio
import time

from saq import CronJob, Queue
from scenario import fails_until, note, url, work as do_work

queue = Queue.from_url(url, name="jobs")


async def work(context, *, name):
    return await asyncio.to_thread(do_work, name)


async def again(context, *, times):
    return fails_until("again", times)


async def hopeless(context):
    raise ValueError("hopeless")


async def later(context):
    note("later", time.time())
    return "later"


async def tick(context):
    note("ticks", time.time())


settings = {
    "queue": queue,
    "functions": [work, again, hopeless, later],
    "concurrency": 2,
    "cron_jobs": [CronJob(tick, cron="* * * * * */1")],
    # A sweep aborts a job that a worker has just taken and not yet marked, so it must be rare.
    "timers": {"schedule": 1, "worker_info": 1, "sweep": 20, "abort": 1},
    "dequeue_timeout": 2,
}
