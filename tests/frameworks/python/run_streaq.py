"""streaq: two workers of two tasks each, results, a later task, a failure."""

import asyncio
import os
import sys
from datetime import timedelta

from coredis.exceptions import ConnectionError as LostConnection
import streaq_jobs
from scenario import JOBS, Worker, end, insist, notes, while_killed

PROGRAM = os.path.join(os.path.dirname(sys.executable), "streaq")


def with_worker(call):
    async def once():
        async with streaq_jobs.worker:
            return await asyncio.wait_for(call(), 90)

    return insist(lambda: asyncio.run(once()), LostConnection, asyncio.TimeoutError, ExceptionGroup)


ids = {}


def enqueue(name):
    async def once():
        return (await streaq_jobs.work.enqueue(name)).id

    ids[name] = with_worker(once)


async def start_later():
    return (await streaq_jobs.later.enqueue().start(delay=timedelta(seconds=2))).id


async def start_hopeless():
    return (await streaq_jobs.hopeless.enqueue()).id


def result(task_id):
    return with_worker(lambda: streaq_jobs.worker.result_by_id(task_id, timeout=80))


later = with_worker(start_later)
workers = [Worker(PROGRAM, "run", "streaq_jobs:worker", name=f"worker-{number}") for number in (1, 2)]
while_killed(enqueue, workers=4, takes_safely=True)
outcomes = {
    "results": {name: result(ids[name]).result for name in JOBS},
    "later": result(later).result,
    "later ran": len(notes("later")) == 1,
}
failed = result(with_worker(start_hopeless))
outcomes["failed"] = [failed.success, str(failed.exception)]
outcomes["failed"] = outcomes["failed"][1:]
outcomes["left"] = with_worker(streaq_jobs.worker.queue_size)
for one in workers:
    one.stop()
end(outcomes)
