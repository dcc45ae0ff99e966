"""The application of run_redbeat.py."""

import time

from celery import Celery
from scenario import note, url

app = Celery("jobs", broker=f"{url}/0", backend=f"{url}/1")
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    redbeat_redis_url=f"{url}/2",
    redbeat_lock_timeout=5,
    beat_max_loop_interval=1,
    beat_schedule={"tick": {"task": "redbeat_jobs.tick", "schedule": 1.0}},
)


@app.task
def tick():
    note("ticks", time.time())
