"""The worker and the jobs of run_arq.py."""

import asyncio
import time

from arq import Retry, cron
from arq.connections import RedisSettings
from scenario import fails_until, note, port, work as do_work

settings = RedisSettings(
    host="127.0.0.1", port=port, conn_retries=100, conn_retry_delay=0.2, conn_timeout=2, retry_on_timeout=True
)


async def work(context, name):
    return await asyncio.to_thread(do_work, name)


async def again(context, times):
    try:
        return fails_until("again", times)
    except ValueError as error:
        raise Retry(defer=0.3) from error


async def hopeless(context):
    raise ValueError("hopeless")


async def later(context):
    note("later", time.time())
    return "later"


async def tick(context):
    note("ticks", time.time())


class WorkerSettings:
    functions = [work, again, hopeless, later]
    cron_jobs = [cron(tick, second=set(range(60)))]
    redis_settings = settings
    max_jobs = 2
    max_tries = 10
    job_timeout = 30
    poll_delay = 0.1
    keep_result = 600
