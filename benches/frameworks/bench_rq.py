"""RQ: jobs are enqueued one by one, and done by one worker that does not fork. Run by run.py."""

import logging
import sys

import redis
from rq import Queue, SimpleWorker

port, jobs = int(sys.argv[1]), int(sys.argv[2])
server = redis.Redis(port=port)
queue = Queue("work", connection=server)
logging.disable(logging.CRITICAL)

print("begin add", flush=True)
for number in range(jobs):
    queue.enqueue(print, end="")
print("end add", jobs, flush=True)
print("begin work of 1", flush=True)
SimpleWorker([queue], connection=server).work(burst=True, logging_level="CRITICAL")
print("end work of 1", jobs, flush=True)
