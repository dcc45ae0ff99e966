"""The worker of run_streaq.py, and its tasks."""

import asyncio

import scenario
from streaq import Worker

worker = Worker(redis_url=scenario.url, concurrency=2, idle_timeout=3, anyio_backend="asyncio")


@worker.task(max_tries=5)
async def work(name: str) -> str:
    return await asyncio.to_thread(scenario.work, name)


@worker.task
async def hopeless() -> None:
    raise ValueError("hopeless")


@worker.task
async def later() -> str:
    scenario.note("later", "yes")
    return "later"
