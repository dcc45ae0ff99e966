"""TaskTiger: two workers that fork, unique jobs, retries, a later job, a failure."""

import os
import sys
from datetime import timedelta

from tasktiger import Task
import tasktiger_jobs
from scenario import Worker, end, insist, notes, wait_until, while_killed
from tasktiger_jobs import tiger

JOBS_FILE = os.path.abspath(tasktiger_jobs.__file__)


def count(state):
    return insist(lambda: Task.tasks_from_queue(tiger, "work", state)[0])


tiger.delay(tasktiger_jobs.later, when=timedelta(seconds=2))
workers = [Worker(sys.executable, JOBS_FILE, name=f"worker-{number}") for number in (1, 2)]
while_killed(lambda name: insist(lambda: tiger.delay(tasktiger_jobs.work, [name], unique=True)), workers=2, takes_safely=True)
UNDONE = ["queued", "active", "scheduled"]
wait_until("nothing is left", lambda: not any(count(state) for state in UNDONE))

tiger.delay(tasktiger_jobs.again, [2], retry_method=tasktiger_jobs.fixed(1, 3), retry=True)
tiger.delay(tasktiger_jobs.hopeless)
wait_until("the retried is done", lambda: notes("again done"))
wait_until("the hopeless has failed", lambda: count("error"))
for one in workers:
    one.stop()
_, tasks = Task.tasks_from_queue(tiger, "work", "error")
outcomes = {
    "retried": notes("again done"),
    "later": len(notes("later")) == 1,
    "failed": [task.serialized_func for task in tasks],
    "undone": [count(state) for state in UNDONE],
}
for task in tasks:
    task.delete()
outcomes["left"] = count("error")
end(outcomes)
