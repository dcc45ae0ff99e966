"""Huey: a consumer of two threads, with results, retries, delays and pipelines; then its queue with
priorities, which is a sorted set."""

import os
import sys
import time

from scenario import JOBS, PATIENCE_S, Worker, end, insist, notes, seconds_waited, wait_until, while_killed

os.environ["SCENARIO_HUEY"] = sys.argv[3] if len(sys.argv) > 3 else "list"
from huey.exceptions import TaskException  # noqa: E402
from huey_jobs import add, again, hopeless, huey, later, work  # noqa: E402

handles = {}


def enqueue(name):
    handles[name] = insist(lambda: work(name))


started = time.time()
late = later.schedule(delay=2)
consumer = Worker(sys.executable, "-m", "huey.bin.huey_consumer", "huey_jobs.huey", "-w", "2", "-d", "0.1", "-s", "1", name="consumer")
while_killed(enqueue, workers=2)
outcomes = {
    "results": {name: handles[name].get(blocking=True, timeout=PATIENCE_S) for name in JOBS},
    "late": late.get(blocking=True, timeout=PATIENCE_S),
    "on time": 1 <= seconds_waited("later", started) < 60,
}


def retried():
    # Until it succeeds, the result is the error of the last attempt.
    handle.reset()
    try:
        return handle.get(preserve=True)
    except TaskException:
        return None


handle = again(2)
outcomes["retried"] = wait_until("the third attempt succeeds", retried)
try:
    hopeless().get(blocking=True, timeout=PATIENCE_S)
except TaskException as error:
    outcomes["hopeless"] = str(error)
outcomes["pipeline"] = huey.enqueue(add.s(1, 2).then(add, 3).then(add, 4)).get(blocking=True, timeout=PATIENCE_S)
wait_until("the hopeless job was tried again", lambda: len(notes("hopeless")) == 2)
revoked = add.schedule((1, 1), delay=600)
revoked.revoke()
outcomes["revoked"] = revoked.is_revoked()
with huey.lock_task("lock"):
    outcomes["locked"] = huey.is_locked("lock")
consumer.stop()
add(1, 1)
outcomes["left"] = [huey.pending_count(), huey.scheduled_count()]
huey.flush()
outcomes["flushed"] = [huey.pending_count(), huey.scheduled_count(), huey.result_count()]
end(outcomes)
