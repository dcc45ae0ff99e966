"""The application and the jobs of run_celery.py."""

import time

from celery import Celery
from scenario import fails_until, note, url, work as do_work

app = Celery("jobs", broker=f"{url}/0", backend=f"{url}/1")
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # How soon a job is given to another worker if the one that has it says nothing.
    broker_transport_options={"visibility_timeout": 5, "polling_interval": 0.2},
    result_backend_transport_options={"retry_policy": {"timeout": 30.0}},
    result_expires=600,
)


@app.task(ignore_result=False)
def work(name):
    return do_work(name)


@app.task(bind=True, max_retries=5)
def again(self, times):
    try:
        return fails_until("again", times)
    except ValueError as error:
        raise self.retry(exc=error, countdown=0.5)


@app.task
def hopeless():
    raise ValueError("hopeless")


@app.task
def later():
    note("later", time.time())
    return "later"


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)
