"""RQ's dashboard and rq-scheduler, beside a worker: the server is killed while the dashboard shows a
running job and the scheduler waits for the next time of an entry."""

import json
import socket
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import redis
from rq import Queue
from rq_scheduler import Scheduler

import rq_jobs
from scenario import Worker, end, insist, notes, seconds_waited, url, wait_until, while_killed


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


server = redis.Redis.from_url(url)
queue = Queue("work", connection=server)
scheduler = Scheduler(queue_name="work", connection=server)
page_port = free_port()


def page(path, method="GET"):
    """What the dashboard answers. It may need some seconds to start, or to find the server again."""
    request = urllib.request.Request(f"http://127.0.0.1:{page_port}{path}", method=method)

    def once():
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    return insist(once, urllib.error.URLError)


def data(path):
    return json.loads(page(f"/0/data/{path}"))


def jobs_of(registry):
    return sorted(job["id"] for job in data(f"jobs/work/{registry}/50/asc/1.json")["jobs"])


started = time.time()
scheduler.enqueue_in(timedelta(seconds=2), rq_jobs.later)
every_second = scheduler.schedule(datetime.now(UTC), rq_jobs.tick, interval=1)
processes = [
    Worker(sys.executable, "-m", "rq.cli", "worker", "--url", url, "work", name="worker"),
    Worker(sys.executable, "-m", "rq_scheduler.scripts.rqscheduler", "-u", url, "-i", "1", name="scheduler"),
    Worker(
        *[sys.executable, "-m", "rq_dashboard", "-u", url, "-b", "127.0.0.1", "-p", page_port],
        name="dashboard",
    ),
]
wait_until("the entry is due twice", lambda: len(notes("tick")) >= 2)
page("/")


def enqueue(name):
    insist(lambda: queue.enqueue(rq_jobs.work, name, job_id=name))


while_killed(enqueue, workers=1)
ticks = len(notes("tick"))
wait_until("the entry is due once more", lambda: len(notes("tick")) > ticks)
wait_until("the later job has run", lambda: notes("later"))
# It would put back an entry that is cancelled while it enqueues it.
processes[1].stop()
insist(lambda: scheduler.cancel(every_second))

hopeless = queue.enqueue(rq_jobs.hopeless)
wait_until("the dashboard shows the failure", lambda: jobs_of("failed") == [hopeless.id])
shown = data(f"job/{hopeless.id}.json")
workers = data("workers.json")["workers"]
first_failure = hopeless.latest_result().id
page(f"/job/{hopeless.id}/requeue", "POST")
wait_until("it fails again", lambda: jobs_of("failed") and hopeless.latest_result().id != first_failure)
processes[0].stop()
for name in ["one", "two", "three"]:
    queue.enqueue(rq_jobs.later, job_id=name)
waiting = jobs_of("queued")
page("/job/one/delete", "POST")
counts = data("queues.json")["queues"]
for registry in ["queued", "failed", "finished"]:
    page(f"/queue/work/{registry}/empty", "POST")
left = [jobs_of(registry) for registry in ["queued", "failed", "finished"]]
processes[2].stop()

end(
    {
        "ticks": ticks >= 2,
        "on time": 1 <= seconds_waited("later", started) < 60,
        "shown": [shown["status"], shown["exc_info"].strip().splitlines()[-1], shown["origin"]],
        # One that loses its server while it is idle ends without signing off, on any server.
        "workers": len(workers) >= 1,
        "waiting": waiting,
        "counts": [[queue["name"], queue["count"], queue["failed_job_registry_count"]] for queue in counts],
        "left": left,
        "entries": scheduler.count(),
    }
)
