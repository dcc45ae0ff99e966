"""Celery: results that a program waits for one by one, and jobs done by 1 and by 16 threads. Run by run.py."""

import sys
import threading

from celery import Celery
from celery.contrib.testing.worker import start_worker

port, jobs = int(sys.argv[1]), int(sys.argv[2])
app = Celery("bench", broker=f"redis://127.0.0.1:{port}/0", backend=f"redis://127.0.0.1:{port}/1")
app.conf.task_acks_late = True
done = 0
all_done = threading.Event()
lock = threading.Lock()


@app.task
def count():
    global done
    with lock:
        done += 1
        if done == jobs:
            all_done.set()


@app.task
def echo(word):
    return word


def phase(name, many, run):
    print("begin", name, flush=True)
    run()
    print("end", name, many, flush=True)


for threads in [1, 16]:
    done = 0
    all_done.clear()
    phase(f"add, for {threads}", jobs, lambda: [count.delay() for _ in range(jobs)])
    with start_worker(app, pool="threads", concurrency=threads, perform_ping_check=False, loglevel="ERROR"):
        # Its start is none of the servers' time.
        already = done
        phase(f"work of {threads} threads", jobs - already, lambda: all_done.wait(300))
        if threads == 1:
            phase("round trip", 200, lambda: [echo.delay("x").get(timeout=30) for _ in range(200)])
