"""asyncmq: two workers of two jobs each, retries, a delayed job, a failure, results, cleaning up."""

import asyncio
import os
import sys

import asyncmq_jobs
from scenario import JOBS, Worker, end, insist, notes, wait_until, while_killed

JOBS_FILE = os.path.abspath(asyncmq_jobs.__file__)


def with_queue(call):
    async def once():
        return await asyncio.wait_for(call(asyncmq_jobs.queue()), 5)

    return insist(lambda: asyncio.run(once()), asyncio.TimeoutError)


def add(job, *args, **options):
    return with_queue(lambda queue: queue.add(job.task_id, list(args), **options))


def state(job):
    return with_queue(lambda queue: queue.get_job_state(job))


def enqueue(name):
    if not with_queue(lambda queue: queue.get_job(name)):
        add(asyncmq_jobs.work, name, retries=5, job_id=name)


later = add(asyncmq_jobs.later, delay=2, job_id="later")
workers = [Worker(sys.executable, JOBS_FILE, name=f"worker-{number}") for number in (1, 2)]
while_killed(enqueue, workers=4, takes_safely=True)
for name in [*JOBS, later]:
    wait_until(f"{name} is completed", lambda: state(name) == "completed")
again = add(asyncmq_jobs.again, 2, retries=3)
hopeless = add(asyncmq_jobs.hopeless)
wait_until("the retried is completed", lambda: state(again) == "completed")
wait_until("the hopeless has failed", lambda: state(hopeless) == "failed")
for one in workers:
    one.stop()
outcomes = {
    "results": {name: with_queue(lambda queue: queue.get_job_result(name)) for name in JOBS},
    "retried": with_queue(lambda queue: queue.get_job_result(again)),
    "later": len(notes("later")) == 1,
    "stuck": with_queue(lambda queue: queue.get_job_counts("waiting", "active", "delayed")),
}
end(outcomes)
