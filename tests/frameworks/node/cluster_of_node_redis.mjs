// node-redis as a client of Redis Cluster: node cluster_of_node_redis.mjs CLUSTER_PORT…
import assert from 'node:assert'
import { createCluster } from 'redis'

const ports = process.argv.slice(2)
const client = createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })
client.on('error', () => {})
await client.connect()
assert.equal(client.masters.length, ports.length)
const keys = Array.from({ length: 100 }, (_, number) => `key${number}`)
await Promise.all(keys.map((key) => client.set(key, key)))
assert.deepEqual(await Promise.all(keys.map((key) => client.get(key))), keys)
assert.deepEqual(await client.multi().incr('{t}n').incr('{t}n').exec(), [1, 2])
await client.rPush('{t}list', ['a', 'b'])
assert.equal(await client.lPop('{t}list'), 'a')
assert.equal(await client.eval("return redis.call('GET', KEYS[1])", { keys: ['key1'] }), 'key1')
await client.close()
