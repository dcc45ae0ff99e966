"""The worker of run_bullmq.py."""

import asyncio

from bullmq import UnrecoverableError, Worker
from scenario import fails_until, note, url, work


async def handle(job, token):
    if job.name == "work":
        return await asyncio.to_thread(work, job.data)
    if job.name == "again":
        return fails_until("again", job.data)
    if job.name == "later":
        return note("later", job.timestamp)
    raise UnrecoverableError("hopeless")


async def main():
    options = {"stalledInterval": 2000, "lockDuration": 4000, "maxStalledCount": 5}
    Worker("work", handle, {"connection": url, **options})
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
