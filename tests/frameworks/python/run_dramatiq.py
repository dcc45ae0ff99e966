"""Dramatiq: two processes, with results, retries, delays, groups, pipelines and dead letters."""

import sys
import time

import dramatiq
import redis
from dramatiq.errors import ConnectionClosed, ConnectionError
from dramatiq.results import ResultMissing

from dramatiq_jobs import add, again, broker, hopeless, later, work
from scenario import JOBS, PATIENCE_S, Worker, end, insist, notes, seconds_waited, url, wait_until, while_killed

messages = {}


def enqueue(name):
    messages[name] = insist(lambda: work.send(name), ConnectionClosed, ConnectionError)


def get(message):
    return message.get_result(block=True, timeout=PATIENCE_S * 1000)


workers = [
    Worker(sys.executable, "-m", "dramatiq", "dramatiq_jobs", "--processes", "1", "--threads", "1", name=f"worker-{n}")
    for n in [1, 2]
]
while_killed(enqueue, workers=2, takes_safely=True)
# After the kills: a delayed message stays with a worker that has lost the server, on any server.
started = time.time()
late = insist(lambda: later.send_with_options(delay=2000), ConnectionClosed, ConnectionError)


def result(message):
    try:
        return insist(lambda: message.get_result(block=False), ConnectionClosed, ConnectionError)
    except ResultMissing:
        return None


wait_until("all jobs have results", lambda: all(result(messages[name]) for name in JOBS))
outcomes = {
    "results": {name: get(messages[name]) for name in JOBS},
    "late": get(late),
    "on time": 2 <= seconds_waited("later", started) < 60,
    "retried": get(again.send(2)),
    "group": sorted(dramatiq.group([add.message(n, 1) for n in range(5)]).run().get_results(block=True, timeout=60_000)),
    "pipeline": get((add.message(1, 2) | add.message(3) | add.message(4)).run()),
}
hopeless.send()
server = redis.Redis.from_url(url)
wait_until("the hopeless job is dead", lambda: server.zcard("dramatiq:default.XQ") == 1)
outcomes["hopeless"] = len(notes("hopeless"))
broker.join("default", timeout=PATIENCE_S * 1000)
wait_until("nothing is stuck", lambda: not any(server.scard(key) for key in server.keys("dramatiq:__acks__.*")))
for one in workers:
    one.stop()
add.send(1, 1)
outcomes["queued"] = server.llen("dramatiq:default")
broker.flush_all()
outcomes["left"] = [server.llen("dramatiq:default"), server.zcard("dramatiq:default.XQ")]
end(outcomes)
