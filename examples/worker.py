"""A worker for a task queue, with redis-py: `python3 examples/worker.py redis://127.0.0.1:6379 jobs`.

It extends the lease of the task that it works on, tries failed tasks again later and says why they failed, survives
restarts of the server, and finishes its task when it gets SIGTERM.
"""

import os
import random
import signal
import socket
import sys
import threading
import time

import redis

LEASE_MS = 30_000
BLOCK_MS = 1_000
DELAY_MS_MAX = 3_600_000
NAME = f"{socket.gethostname()}:{os.getpid()}"

stopping = threading.Event()


def handle(payload, is_lost):
    """The work itself. `is_lost()` says that another worker has the task by now, so that this one should give up."""
    word, _, rest = payload.partition(" ")
    if word == "fail":
        raise RuntimeError(rest)
    if word == "sleep":
        time.sleep(int(rest) / 1000)


def keep(queue, connection, id, token, lease_ms, ended, lost):
    """Extends the lease until the task has ended."""
    while not ended.wait(lease_ms / 3000):
        try:
            if connection.execute_command("TASK.EXTEND", queue, id, lease_ms, "TOKEN", token) != 1:
                lost.set()
                return
        except redis.ConnectionError:
            pass  # The lease lasts for two more attempts.


def finish(connection, *command):
    """Sends the outcome until the server has it. Sent twice, the second reply is 0: there is no such task any more."""
    while True:
        try:
            return connection.execute_command(*command)
        except redis.ConnectionError:
            time.sleep(0.5)


def work(queue, connection, task, lease_ms):
    id, _priority, tries, _needs, payload, token, *_ = task
    ended, lost = threading.Event(), threading.Event()
    arguments = (queue, connection, id, token, lease_ms, ended, lost)
    keeper = threading.Thread(target=keep, args=arguments)
    keeper.start()
    try:
        handle(payload, lost.is_set)
        outcome = ("TASK.ACK", queue, id, "TOKEN", token)
        print("done:", id, flush=True)
    except Exception as error:
        delay_ms = min(1000 * 2 ** (tries - 1), DELAY_MS_MAX)
        delay_ms = random.randint(delay_ms // 2, delay_ms)
        outcome = ("TASK.NACK", queue, id, "DELAY", delay_ms, "REASON", str(error), "TOKEN", token)
        print(f"failed: {id}: {error}", flush=True)
    finally:
        ended.set()
        keeper.join()
    finish(connection, *outcome)


def main(url, queue, lease_ms=LEASE_MS):
    lease_ms = int(lease_ms)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    connection = redis.Redis.from_url(url, decode_responses=True)
    while not stopping.is_set():
        try:
            tasks = connection.execute_command(
                "TASK.TAKE", queue, "LEASE", lease_ms, "WORKER", NAME, "BLOCK", BLOCK_MS)
        except redis.ConnectionError:
            time.sleep(0.5)
            continue
        for task in tasks or []:
            work(queue, connection, task, lease_ms)


if __name__ == "__main__":
    main(*sys.argv[1:])
