"""The jobs of run_asyncmq.py, and its worker."""

import asyncio
import os

os.environ.setdefault("ASYNCMQ_SETTINGS_MODULE", "asyncmq_settings.Settings")

import scenario  # noqa: E402
from asyncmq.backends.redis import RedisBackend  # noqa: E402
from asyncmq.queues import Queue  # noqa: E402
from asyncmq.tasks import task  # noqa: E402


def queue():
    return Queue("work", backend=RedisBackend(scenario.url), concurrency=2)


@task(queue="work", retries=5)
async def work(name):
    return await asyncio.to_thread(scenario.work, name)


@task(queue="work", retries=3)
async def again(times):
    return scenario.fails_until("again", times)


@task(queue="work")
async def hopeless():
    raise ValueError("hopeless")


@task(queue="work")
async def later():
    scenario.note("later", "yes")


if __name__ == "__main__":
    import asyncmq_jobs  # the jobs' names are those of the module

    asyncio.run(asyncmq_jobs.queue().run())
