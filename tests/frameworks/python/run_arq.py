"""arq: two workers, with results, retries, deferred jobs and a cron job."""

import asyncio
import os
import sys
import time
from datetime import timedelta

from arq import create_pool
from arq.jobs import Job, JobStatus

from arq_jobs import settings
from scenario import JOBS, PATIENCE_S, Worker, end, insist, notes, seconds_waited, wait_until, while_killed

script = os.path.join(os.path.dirname(sys.executable), "arq")


def call(make):
    """Each on a connection of its own, as a short program has it."""

    async def once():
        pool = await create_pool(settings)
        try:
            return await make(pool)
        finally:
            await pool.aclose()

    return insist(lambda: asyncio.run(once()))


started = time.time()
late = call(lambda pool: pool.enqueue_job("later", _job_id="late", _defer_by=timedelta(seconds=2)))
workers = [Worker(sys.executable, script, "arq_jobs.WorkerSettings", name=f"worker-{n}") for n in [1, 2]]
# A second job of the same name is refused, so a call may be repeated.
while_killed(lambda name: call(lambda pool: pool.enqueue_job("work", name, _job_id=name)), workers=4, takes_safely=True)


async def statuses(pool):
    return [await Job(name, pool).status() for name in [*JOBS, "late"]]


wait_until("all jobs are complete", lambda: set(call(statuses)) == {JobStatus.complete})
ticks = len(notes("ticks"))
wait_until("it ticks", lambda: len(notes("ticks")) > ticks)


async def rest(pool):
    outcomes = {"results": {name: await Job(name, pool).result() for name in JOBS}}
    again = await pool.enqueue_job("again", 2)
    outcomes["retried"] = await again.result(timeout=PATIENCE_S)
    outcomes["tries"] = (await again.result_info()).job_try
    hopeless = await pool.enqueue_job("hopeless")
    try:
        await hopeless.result(timeout=PATIENCE_S)
    except ValueError as error:
        outcomes["hopeless"] = repr(error)
    outcomes["late"] = await Job("late", pool).result()
    return outcomes


outcomes = call(rest)
outcomes["on time"] = 2 <= seconds_waited("later", started) < 60
for one in workers:
    one.stop()


async def clean(pool):
    left = {"queued": len(await pool.queued_jobs()), "in progress": len(await pool.keys("arq:in-progress:*"))}
    left["results"] = len(await pool.keys("arq:result:job-*"))
    await pool.flushdb()
    left["keys"] = len(await pool.keys("*"))
    return left


# Jobs of the cron, which the workers may have left.
left = call(clean)
left.pop("queued")
left.pop("in progress")
end({**outcomes, "left": left})
