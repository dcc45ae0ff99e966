// node-redis with Redis Sentinel: node sentinel_of_node_redis.mjs PORT SENTINEL_PORT.
import assert from 'node:assert'
import { createSentinel } from 'redis'

const [port, sentinelPort] = process.argv.slice(2).map(Number)
const host = '127.0.0.1'
const client = createSentinel({
  name: 'mymaster',
  sentinelRootNodes: [{ host, port: 1 }, { host, port: sentinelPort }],
})
client.on('error', () => {})
await client.connect()
assert.equal(client.getMasterNode().port, port)
await client.set('key', 'value')
assert.equal(await client.get('key'), 'value')
assert.deepEqual(await client.multi().incr('n').incr('n').exec(), [1, 2])
await client.close()
