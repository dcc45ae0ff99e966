"""BullMQ for Python: two workers, retries, a delayed job, a failure, priorities, counts."""

import asyncio
import os
import sys

from bullmq import Queue
from scenario import JOBS, Worker, end, insist, notes, url, wait_until, while_killed

JOBS_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bullmq_jobs.py")


def with_queue(call):
    """Calls with a queue of its own, and waits for the answer."""

    async def once():
        queue = Queue("work", {"connection": url})
        try:
            return await asyncio.wait_for(call(queue), 5)
        finally:
            await queue.close()

    return insist(lambda: asyncio.run(once()), asyncio.TimeoutError)


def add(name, data, **options):
    return with_queue(lambda queue: queue.add(name, data, options)).id


def state(job):
    return with_queue(lambda queue: queue.getJobState(job))


later = add("later", None, delay=1500, jobId="later")
workers = [Worker(sys.executable, JOBS_FILE, name=f"worker-{number}") for number in (1, 2)]
while_killed(lambda name: add("work", name, jobId=name), workers=2, takes_safely=True)
for name in [*JOBS, "later"]:
    wait_until(f"{name} is completed", lambda: state(name) == "completed")

again = add("again", 2, attempts=3, backoff={"type": "fixed", "delay": 300})
hopeless = add("hopeless", None, attempts=5)
wait_until("the retried is completed", lambda: state(again) == "completed")
wait_until("the hopeless has failed", lambda: state(hopeless) == "failed")
for one in workers:
    one.stop()


async def job(queue, name):
    found = await queue.getJob(name)
    return found.returnvalue


outcomes = {
    "results": {name: with_queue(lambda queue: job(queue, name)) for name in JOBS},
    "retried": with_queue(lambda queue: job(queue, again)),
    "later": len(notes("later")) >= 1,
    "counts": with_queue(lambda queue: queue.getJobCounts("wait", "active", "delayed", "failed")),
}
with_queue(lambda queue: queue.obliterate(True))
end(outcomes)
