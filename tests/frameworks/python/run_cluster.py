"""redis-py as a client of Redis Cluster: python run_cluster.py CLUSTER_PORT…"""

import sys

from redis.cluster import ClusterNode, RedisCluster

ports = [int(word) for word in sys.argv[1:]]
CODE = """#!lua name=lib
redis.register_function("f", function(keys) return redis.call("GET", keys[1]) end)
"""


def of_each(reply):
    """What all nodes have answered, if redis-py shows a reply for each."""
    replies = list(reply.values()) if isinstance(reply, dict) else [reply]
    assert replies == replies[:1] * len(replies), reply
    return replies[0]


KEYS = [f"key{number}" for number in range(100)]

for protocol in (2, 3):
    # The first of these nodes is not there.
    nodes = [ClusterNode("127.0.0.1", 1)] + [ClusterNode("127.0.0.1", port) for port in ports]
    client = RedisCluster(startup_nodes=nodes, protocol=protocol, decode_responses=True)
    assert sorted(node.port for node in client.get_primaries()) == sorted(ports)
    assert of_each(client.flushall())
    for key in KEYS:
        assert client.set(key, key)
    assert [client.get(key) for key in KEYS] == KEYS
    # What every node is asked for is counted once.
    assert client.dbsize(target_nodes=RedisCluster.PRIMARIES) == len(KEYS)
    assert sorted(client.keys("*", target_nodes=RedisCluster.PRIMARIES)) == sorted(KEYS)
    assert sorted(client.scan_iter(count=7)) == sorted(KEYS)
    with client.pipeline() as pipeline:
        for key in KEYS:
            pipeline.get(key)
        assert pipeline.execute() == KEYS
    with client.pipeline(transaction=True) as pipeline:
        pipeline.rpush("{t}list", "a", "b").lpop("{t}list").set("{t}set", 1)
        executed = pipeline.execute()
    assert executed[:2] == [2, "a"] and len(executed) == 3, executed
    assert list(client.blpop(["{t}list"], timeout=1)) == ["{t}list", "b"]
    assert client.mset_nonatomic({"a": 1, "b": 2}) and client.mget_nonatomic("a", "b") == ["1", "2"]
    # What every node gets succeeds on every node.
    assert of_each(client.function_load(CODE)) == "lib"
    assert client.fcall("f", 1, "a") == "1"
    assert of_each(client.function_delete("lib"))
    sha = client.script_load("return redis.call('GET', KEYS[1])")
    assert client.script_exists(sha) == [True]
    assert client.evalsha(sha, 1, "b") == "2"
    assert client.keyslot("a") == client.cluster_keyslot("a") == 15495
    assert client.cluster_countkeysinslot(15495) == 1
    assert client.cluster_get_keys_in_slot(15495, 5) == ["a"]
    assert client.cluster_info()["cluster_state"] == "ok"
    assert len(client.cluster_nodes()) == len(ports)
    subscriber = client.pubsub()
    subscriber.subscribe("channel")
    assert subscriber.get_message(timeout=5)["type"] == "subscribe"
    client.publish("channel", "text")
    assert subscriber.get_message(timeout=5)["data"] == "text"
    subscriber.close()
    client.close()
print("done")
