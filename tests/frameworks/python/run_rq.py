"""RQ: two workers that fork for each job, and one with the scheduler. The scheduler's lock outlives a
crash by a minute, on any server, so it starts only after the crash."""

import sys
import time
from datetime import timedelta

import redis
from rq import Queue, Retry, Worker as RqWorker
from rq.exceptions import DuplicateJobError
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry, StartedJobRegistry

import rq_jobs
from scenario import JOBS, Worker, end, insist, seconds_waited, url, wait_until, while_killed

server = redis.Redis.from_url(url)
queue = Queue("work", connection=server)


def worker(name, *flags):
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", url, *flags, "work"]
    return Worker(*command, name=name)


def enqueue(name):
    def once():
        try:
            retry = Retry(max=5)
            queue.enqueue(rq_jobs.work, name, job_id=name, unique=True, retry=retry, result_ttl=600)
        except DuplicateJobError:
            pass  # the attempt that was not answered had arrived

    insist(once)


def finished(name):
    job = insist(lambda: Job.fetch(name, connection=server))
    return insist(job.get_status) == "finished"


started = time.time()
later = queue.enqueue_in(timedelta(seconds=2), rq_jobs.later)
scheduled = len(ScheduledJobRegistry(queue=queue))
workers = [worker("worker-1"), worker("worker-2")]
while_killed(enqueue, workers=2)
wait_until("all jobs are finished", lambda: all(finished(name) for name in JOBS))

workers.append(worker("scheduler", "--with-scheduler"))
again = queue.enqueue(rq_jobs.again, 2, retry=Retry(max=3, interval=[1, 1, 1]))
hopeless = queue.enqueue(rq_jobs.hopeless, retry=Retry(max=1))
first = queue.enqueue(rq_jobs.work, "first")
after = queue.enqueue(rq_jobs.after, depends_on=first)
for job, status in [(again, "finished"), (hopeless, "failed"), (after, "finished"), (later, "finished")]:
    wait_until(f"{job.func_name} is {status}", lambda: job.get_status(refresh=True) == status)
names_of_workers = len(RqWorker.all(connection=server))
for one in workers:
    one.stop()

outcomes = {
    "results": {name: Job.fetch(name, connection=server).return_value() for name in JOBS},
    "retried": again.return_value(),
    "hopeless": hopeless.latest_result().exc_string.strip().splitlines()[-1],
    "dependent": after.return_value(),
    "scheduled": scheduled,
    "on time": 1 <= seconds_waited("later", started) < 60,
    "workers": names_of_workers >= 2,
    "failed": FailedJobRegistry(queue=queue).get_job_ids() == [hopeless.id],
    "finished": len(FinishedJobRegistry(queue=queue)),
    "stuck": [len(queue), len(StartedJobRegistry(queue=queue)), len(ScheduledJobRegistry(queue=queue))],
}
for registry in [FailedJobRegistry(queue=queue), FinishedJobRegistry(queue=queue)]:
    for job_id in registry.get_job_ids():
        registry.remove(job_id, delete_job=True)
queue.delete(delete_jobs=True)
outcomes["jobs left"] = len(server.keys("rq:job:*"))
end(outcomes)
