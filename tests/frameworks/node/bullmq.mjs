// BullMQ: two workers, retries, delays, priorities, a flow, a scheduler, events.
import Redis from 'ioredis'
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq'
import { JOBS, end, failsUntil, host, insist, port, sleep, waitUntil, whileKilled, work } from './scenario.mjs'

const connection = { host, port, maxRetriesPerRequest: null }
const queue = new Queue('work', { connection })
const flows = new FlowProducer({ connection })
const events = new QueueEvents('work', { connection })
const completed = new Set()
events.on('completed', ({ jobId }) => completed.add(jobId))

let laterAt
let ticks = 0
const order = []
const handlers = {
  work: ({ data }) => work(data),
  again: () => failsUntil('again', 2),
  hopeless: () => { throw new UnrecoverableError('hopeless') },
  later: () => { laterAt = Date.now() },
  tick: () => { ticks += 1 },
  child: ({ data }) => data,
  parent: async (job) => Object.values(await job.getChildrenValues()).sort(),
  first: ({ data }) => { order.push(data) },
}
const workers = [1, 2].map(() => new Worker('work', (job) => handlers[job.name](job), {
  connection, stalledInterval: 2000, lockDuration: 4000, maxStalledCount: 5,
}))
for (const one of [queue, flows, events, ...workers]) one.on('error', () => {})

const addedAt = Date.now()
await queue.add('later', null, { delay: 1500, jobId: 'later' })
await whileKilled((name) => insist(() => queue.add('work', name, { jobId: name })), 2, true)

const state = async (id) => (await queue.getJob(id))?.getState()
await waitUntil('all jobs are completed', async () => {
  const states = await Promise.all([...JOBS, 'later'].map(state))
  return states.every((one) => one === 'completed')
})
await waitUntil('all events came', () => JOBS.every((name) => completed.has(name)))

const again = await queue.add('again', null, { attempts: 3, backoff: { type: 'fixed', delay: 300 } })
const hopeless = await queue.add('hopeless', null, { attempts: 5 })
const flow = await flows.add({
  name: 'parent', queueName: 'work',
  children: [1, 2, 3].map((n) => ({ name: 'child', queueName: 'work', data: n })),
})
const retried = await again.waitUntilFinished(events, 20_000)
const failed = await hopeless.waitUntilFinished(events, 20_000).catch((error) => error.message)
const family = await flow.job.waitUntilFinished(events, 20_000)

await queue.pause()
await queue.addBulk([3, 1, 2].map((n) => ({ name: 'first', data: n, opts: { priority: n } })))
await sleep(300)
const paused = order.length
await queue.resume()
await waitUntil('what has priorities is done', () => order.length === 3)

await queue.upsertJobScheduler('tick', { every: 300 }, { name: 'tick' })
await waitUntil('the scheduler ticks', () => ticks >= 3)
await queue.removeJobScheduler('tick')
await waitUntil('nothing is active', async () => (await queue.getActiveCount()) === 0)
await Promise.all(workers.map((one) => one.close()))

const results = {}
for (const name of JOBS) results[name] = (await queue.getJob(name)).returnvalue
const outcomes = {
  results,
  'on time': laterAt - addedAt >= 1500 && laterAt - addedAt < 60_000,
  retried,
  attempts: (await queue.getJob(again.id)).attemptsMade,
  failed,
  family,
  paused,
  'done after the pause': [...order].sort(),
  counts: await queue.getJobCounts('wait', 'active', 'delayed', 'failed', 'prioritized', 'paused'),
}
outcomes.cleaned = (await queue.clean(0, 1000, 'failed')).length
await queue.obliterate({ force: true })
const client = new Redis(port, host)
outcomes.left = (await client.keys('*')).sort()
end(outcomes)
