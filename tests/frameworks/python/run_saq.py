"""SAQ: two workers, with results, retries, scheduled jobs and a cron job."""

import asyncio
import sys
import time

from saq import Queue
from saq.job import Status

from scenario import JOBS, Worker, end, insist, notes, seconds_waited, url, wait_until, while_killed


def call(make):
    """Each on a connection of its own, as a short program has it."""

    async def once():
        queue = Queue.from_url(url, name="jobs")
        await queue.connect()
        try:
            return await make(queue)
        finally:
            await queue.disconnect()

    return insist(lambda: asyncio.run(asyncio.wait_for(once(), 30)))


async def enqueue(queue, name):
    # A second job of the same key is refused, so a call may be repeated.
    await queue.enqueue("work", name=name, key=name, retries=10, timeout=20, heartbeat=0, ttl=600)


started = time.time()
call(lambda queue: queue.enqueue("later", key="late", scheduled=time.time() + 2, ttl=600))
command = [sys.executable, "-m", "saq", "saq_jobs.settings"]
workers = [Worker(*command, name=f"worker-{n}") for n in [1, 2]]
while_killed(lambda name: call(lambda queue: enqueue(queue, name)), workers=4, takes_safely=True)


async def statuses(queue):
    jobs = [await queue.job(name) for name in [*JOBS, "late"]]
    return {job.status if job else None for job in jobs}


wait_until("all jobs are complete", lambda: call(statuses) == {Status.COMPLETE})
ticks = len(notes("ticks"))
wait_until("it ticks", lambda: len(notes("ticks")) > ticks)


async def rest(queue):
    outcomes = {"results": {name: (await queue.job(name)).result for name in JOBS}}
    outcomes["late"] = (await queue.job("late")).result
    again = await queue.enqueue("again", times=2, retries=5, retry_delay=0.2)
    await again.refresh(20)
    outcomes["retried"] = [again.result, again.attempts]
    hopeless = await queue.enqueue("hopeless", retries=1)
    await hopeless.refresh(20)
    outcomes["hopeless"] = [hopeless.status, hopeless.error.strip().splitlines()[-1]]
    outcomes["applied"] = await queue.apply("again", times=0)
    # In the order in which they end.
    outcomes["mapped"] = sorted(await queue.map("again", [{"times": 0}, {"times": 1}]))
    return outcomes


outcomes = call(rest)
outcomes["on time"] = 1 <= seconds_waited("later", started) < 60
for one in workers:
    one.stop()


async def clean(queue):
    await queue.redis.flushdb()
    return len(await queue.redis.keys("*"))


end({**outcomes, "left": call(clean)})
