// Clients of Node.js that know Redis Sentinel: node sentinel.mjs PORT SENTINEL_PORT.
import assert from 'node:assert'
import { Queue, QueueEvents, Worker } from 'bullmq'
import { Redis } from 'ioredis'

const [port, sentinelPort] = process.argv.slice(2).map(Number)
const host = '127.0.0.1'
// One that is not there would be connected to again and again by the failover detector.
const sentinels = [{ host, port: sentinelPort }]
const options = { sentinels, name: 'mymaster', failoverDetector: true, maxRetriesPerRequest: null }

const client = new Redis(options)
await client.set('key', 'value')
assert.equal(await client.get('key'), 'value')
assert.equal(client.stream.remotePort, port)
const reader = new Redis({ ...options, role: 'slave', sentinelRetryStrategy: null, lazyConnect: true })
reader.on('error', () => {})
// There are no replicas.
await assert.rejects(reader.connect())
reader.disconnect()

const queue = new Queue('jobs', { connection: options })
const events = new QueueEvents('jobs', { connection: options })
await events.waitUntilReady()
const worker = new Worker('jobs', async (job) => job.data * 2, { connection: options })
const job = await queue.add('double', 21)
assert.equal(await job.waitUntilFinished(events), 42)
await Promise.all([worker.close(), events.close(), queue.close()])
client.disconnect()
// The failover detector keeps its connections.
process.exit(0)
