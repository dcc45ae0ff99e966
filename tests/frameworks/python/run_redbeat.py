"""celery-redbeat: entries of a schedule that lie in the server, and its lock."""

import sys
from datetime import timedelta

import redis
from celery.schedules import schedule
from redbeat import RedBeatSchedulerEntry

from redbeat_jobs import app
from scenario import Worker, end, kill, notes, url, wait_until

celery = [sys.executable, "-m", "celery", "-A", "redbeat_jobs"]
entry = RedBeatSchedulerEntry("mine", "redbeat_jobs.tick", schedule(timedelta(seconds=1)), app=app)
entry.save()
workers = [
    Worker(*celery, "worker", "--concurrency", "1", "--pool", "solo", name="worker"),
    Worker(*celery, "beat", "--scheduler", "redbeat.RedBeatScheduler", name="beat"),
]
wait_until("it ticks", lambda: len(notes("ticks")) >= 3)
kill()
before = len(notes("ticks"))
wait_until("it ticks again", lambda: len(notes("ticks")) >= before + 4)
for one in reversed(workers):
    one.stop()
server = redis.Redis.from_url(f"{url}/2")
outcomes = {
    "runs": RedBeatSchedulerEntry.from_key("redbeat:mine", app=app).total_run_count > 0,
    "keys": sorted(key.decode() for key in server.keys("*")),
}
entry.delete()
outcomes["keys of an entry"] = sorted(key.decode() for key in server.keys("redbeat:mine*"))
outcomes["schedule"] = server.zrange("redbeat::schedule", 0, -1) == [b"redbeat:tick"]
end(outcomes)
