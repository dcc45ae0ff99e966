// Clients of Node.js that know Redis Cluster: node cluster.mjs CLUSTER_PORT…
import assert from 'node:assert'
import { Queue, QueueEvents, Worker } from 'bullmq'
import { Cluster } from 'ioredis'

const nodes = process.argv.slice(2).map((port) => ({ host: '127.0.0.1', port: Number(port) }))
const connect = () => new Cluster(nodes, { redisOptions: { maxRetriesPerRequest: null } })
const client = connect()
const keys = Array.from({ length: 100 }, (_, number) => `key${number}`)
await Promise.all(keys.map((key) => client.set(key, key)))
assert.deepEqual(await Promise.all(keys.map((key) => client.get(key))), keys)
const found = []
for (const node of client.nodes('master')) {
  let cursor = '0'
  do {
    const [next, some] = await node.scan(cursor, 'MATCH', 'key*')
    found.push(...some)
    cursor = next
  } while (cursor !== '0')
}
assert.deepEqual(found.sort(), [...keys].sort())
assert.equal(client.nodes('master').length, nodes.length)
const replies = await client.pipeline().rpush('{t}a', 1, 2).lpop('{t}a').llen('{t}b').exec()
assert.deepEqual(replies, [[null, 2], [null, '1'], [null, 0]])
assert.deepEqual(await client.multi().incr('{t}n').incr('{t}n').exec(), [[null, 1], [null, 2]])
const waiting = connect()
const popped = waiting.blpop('queue', 10)
await client.rpush('queue', 'a')
assert.deepEqual(await popped, ['queue', 'a'])
const subscriber = connect()
const heard = new Promise((resolve) => subscriber.on('message', (...what) => resolve(what)))
await subscriber.subscribe('channel')
await client.publish('channel', 'text')
assert.deepEqual(await heard, ['channel', 'text'])

const options = { connection: client, prefix: '{jobs}' }
const queue = new Queue('jobs', options)
const events = new QueueEvents('jobs', { connection: connect(), prefix: '{jobs}' })
await events.waitUntilReady()
const double = async (job) => job.data * 2
const worker = new Worker('jobs', double, { connection: connect(), prefix: '{jobs}' })
const jobs = await Promise.all([1, 2, 3].map((number) => queue.add('double', number)))
const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)))
assert.deepEqual(results, [2, 4, 6])
await Promise.all([worker.close(), events.close(), queue.close()])
process.exit(0)
