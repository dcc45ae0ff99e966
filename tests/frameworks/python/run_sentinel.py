"""Clients of Python that know Redis Sentinel: python run_sentinel.py PORT SENTINEL_PORT."""

import sys

from celery import Celery
from celery.contrib.testing.worker import start_worker
from kombu import Connection
from redis.sentinel import MasterNotFoundError, Sentinel
from rq import Queue, SimpleWorker

port, sentinel_port = (int(word) for word in sys.argv[1:3])
ADDRESS = ("127.0.0.1", port)
URL = f"sentinel://127.0.0.1:{sentinel_port}"
OPTIONS = {"master_name": "mymaster"}


# redis-py, with both protocols.
for protocol in (2, 3):
    # The first of these sentinels is not there.
    sentinels = Sentinel(
        [("127.0.0.1", 1), ("127.0.0.1", sentinel_port)],
        sentinel_kwargs={"protocol": protocol},
        protocol=protocol,
        decode_responses=True,
    )
    assert sentinels.discover_master("mymaster") == ADDRESS
    assert sentinels.discover_slaves("mymaster") == []
    master = sentinels.master_for("mymaster")
    assert master.set("key", "value")
    # Without replicas, reads go to the master.
    assert sentinels.slave_for("mymaster").get("key") == "value"
    try:
        sentinels.discover_master("nosuch")
        raise SystemExit("a master that is not there")
    except MasterNotFoundError:
        pass
    # The one that has answered comes first now.
    sentinel = sentinels.sentinels[0]
    state = sentinel.sentinel_master("mymaster")
    assert (state["ip"], state["port"]) == ADDRESS, state
    assert state["is_master"] and not state["is_sdown"] and state["num-slaves"] == 0, state
    assert list(sentinel.sentinel_masters()) == ["mymaster"]
    assert sentinel.sentinel_sentinels("mymaster") == []
    assert sentinel.sentinel_slaves("mymaster") == []
    assert sentinel.ping()

# kombu.
with Connection(URL, transport_options=OPTIONS) as connection:
    queue = connection.SimpleQueue("kombu")
    queue.put({"number": 1})
    message = queue.get(timeout=10)
    assert message.payload == {"number": 1}
    message.ack()
    queue.close()

# Celery, with a worker in this process.
app = Celery("jobs", broker=URL, backend=URL)
app.conf.broker_transport_options = OPTIONS
app.conf.result_backend_transport_options = OPTIONS
app.conf.broker_connection_retry_on_startup = True


@app.task
def add(one, other):
    return one + other


with start_worker(app, perform_ping_check=False):
    assert add.delay(1, 2).get(timeout=20) == 3

# RQ.
binary = Sentinel([("127.0.0.1", sentinel_port)]).master_for("mymaster")
queue = Queue("rq", connection=binary)
job = queue.enqueue(len, "four")
SimpleWorker([queue], connection=binary).work(burst=True)
job.refresh()
assert job.return_value() == 4, job.get_status()
print("done")
