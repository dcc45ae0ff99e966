"""taskiq-redis: workers, with results, retries and a schedule, on the broker of the third argument.
The list hands each job out once. The stream hands out again what was not acknowledged. What is published
while nobody listens is gone, so there every call waits until the worker listens. A second one would do
all jobs too."""

import asyncio
import os
import sys
import threading
import time
from datetime import datetime, timedelta, timezone

import redis

kind = os.environ["SCENARIO_BROKER"] = sys.argv[3]
from scenario import (  # noqa: E402
    JOBS,
    PATIENCE_S,
    Worker,
    end,
    insist,
    kill,
    note,
    notes,
    seconds_waited,
    url,
    wait_until,
    while_killed,
)
from taskiq.exceptions import SendTaskError  # noqa: E402
from taskiq_jobs import again, broker, hopeless, later, results, source, work  # noqa: E402

server = redis.Redis.from_url(url)
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def call(make):
    return asyncio.run_coroutine_threadsafe(make(), loop).result(PATIENCE_S)


def is_listening():
    """Whether the worker listens, where that matters."""
    return kind != "pubsub" or insist(lambda: server.pubsub_numsub("taskiq"))[0][1] == 1


def enqueue(name):
    def once():
        wait_until("the worker listens", is_listening)
        call(lambda: work.kicker().with_task_id(name).kiq(name))

    insist(once, SendTaskError)


def result(name):
    async def get():
        return (await results.get_result(name)).return_value if await results.is_result_ready(name) else None

    return insist(lambda: call(get))


call(broker.startup)
call(source.startup)


def schedule():
    call(lambda: later.schedule_by_time(source, datetime.now(timezone.utc) + timedelta(seconds=3)))
    return time.time()


if kind != "pubsub":
    started = schedule()
taskiq = [sys.executable, "-m", "taskiq"]
count = 1 if kind == "pubsub" else 2
options = ["--workers", "1", "--max-async-tasks", "1", "--max-prefetch", "0"]
workers = [Worker(*taskiq, "worker", "taskiq_jobs:broker", *options, name=f"worker-{n}") for n in range(count)]
workers.append(Worker(*taskiq, "scheduler", "taskiq_jobs:scheduler", name="scheduler"))
def nudge():
    """A worker looks for what was not acknowledged only after it has read something new."""
    enqueue("something-new")


if kind != "stream":
    # A worker that loses the server ends, and what it has taken is gone, on any server. So none is
    # in the middle of a job.
    note("back", "yes")
    for name in JOBS[:15]:
        enqueue(name)
    wait_until("jobs are done", lambda: all(result(name) for name in JOBS[:15]))
    kill()
    for name in JOBS[15:]:
        enqueue(name)
else:
    while_killed(enqueue, workers=count, takes_safely=True, nudge=nudge)


def all_have_results():
    if kind == "stream":
        nudge()
        time.sleep(1)
    return all(result(name) for name in JOBS)


wait_until("all jobs have results", all_have_results)
outcomes = {
    "results": {name: result(name) for name in JOBS},
}
if kind != "pubsub":
    # The scheduler looks once a minute for what is new.
    wait_until("the scheduled job ran", lambda: notes("later"), patience_s=180)
    outcomes["on time"] = seconds_waited("later", started) >= 1


def outcome_of(make):
    # Connections of before the kill are broken; each says so once.
    sent = insist(lambda: call(make), SendTaskError)
    return insist(lambda: call(lambda: sent.wait_result(timeout=PATIENCE_S)))


retried = outcome_of(lambda: again.kiq(2))
outcomes["retried"] = retried.return_value
error = outcome_of(hopeless.kiq)
outcomes["hopeless"] = [error.is_err, repr(error.error)]
if kind == "stream":
    def is_acknowledged():
        nudge()
        time.sleep(1)
        return server.xpending("taskiq", "taskiq")["pending"] == 0

    wait_until("everything is acknowledged", is_acknowledged)
for one in reversed(workers):
    one.stop()
outcomes["queued"] = server.llen("taskiq") if kind == "list" else 0
server.flushall()
outcomes["left"] = server.dbsize()
end(outcomes)
