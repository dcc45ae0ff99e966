"""Celery: two workers with results, retries, a countdown, chords, groups and chains."""

import sys
import time

import redis
from celery import chain, chord, group
from celery.exceptions import OperationalError
from celery.result import AsyncResult

from celery_jobs import add, again, app, hopeless, later, total, work
from scenario import JOBS, PATIENCE_S, Worker, end, insist, seconds_waited, url, wait_until, while_killed


def worker(number):
    command = [sys.executable, "-m", "celery", "-A", "celery_jobs", "worker", "--pool", "prefork"]
    node = f"--hostname=worker-{number}@localhost"
    return Worker(*command, "--concurrency", "1", "--loglevel", "INFO", node, name=f"worker-{number}")


def enqueue(name):
    insist(lambda: work.apply_async((name,), task_id=name, retry=False), OperationalError)


workers = [worker(1), worker(2)]
while_killed(enqueue, workers=2)
# Not before: a worker that loses the server forgets the countdowns that it holds, and no other
# is given those jobs soon. It is the same with a redis-server that is killed and has lost nothing.
started = time.time()
late = insist(lambda: later.apply_async(countdown=3, retry=False), OperationalError)


def results():
    return {name: insist(lambda: AsyncResult(name, app=app).result) for name in JOBS}


wait_until("all jobs have results", lambda: all(results().values()))
outcomes = {
    "results": results(),
    "late": wait_until("the late job is done", lambda: insist(lambda: late.result)),
    "on time": 3 <= seconds_waited("later", started) < 60,
    "retried": again.delay(2).get(timeout=PATIENCE_S),
    "hopeless": repr(hopeless.delay().get(timeout=PATIENCE_S, propagate=False)),
    "chord": chord(add.s(number, number) for number in range(10))(total.s()).get(timeout=PATIENCE_S),
    "group": group(add.s(number, 1) for number in range(5)).apply_async().get(timeout=PATIENCE_S),
    "chain": chain(add.s(1, 2), add.s(3), add.s(4)).apply_async().get(timeout=PATIENCE_S),
    "workers": sorted(app.control.inspect(timeout=5).ping() or {}),
}
server = redis.Redis.from_url(f"{url}/0")
# What a worker had taken from the server that died is given back after the visibility timeout.
wait_until("nothing is stuck", lambda: not server.hlen("unacked") and not server.llen("celery"))
for one in workers:
    one.stop()
add.delay(1, 1)
outcomes["purged"] = app.control.purge()
for name in JOBS:
    AsyncResult(name, app=app).forget()
outcomes["stuck"] = [server.llen("celery"), server.hlen("unacked"), server.zcard("unacked_index")]
left = redis.Redis.from_url(f"{url}/1").keys("celery-task-meta-job-*")
outcomes["results left"] = len(left)
end(outcomes)
