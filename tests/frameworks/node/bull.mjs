// Bull: two workers, retries, delays, priorities, a repeated job, events between processes.
import Bull from 'bull'
import Redis from 'ioredis'
import { JOBS, end, failsUntil, host, insist, port, sleep, waitUntil, whileKilled, work } from './scenario.mjs'

const redis = { host, port, maxRetriesPerRequest: null, enableReadyCheck: false }
const settings = { stalledInterval: 2000, lockDuration: 4000, maxStalledCount: 5 }
const make = () => new Bull('work', { redis, settings })
const [queue, ...workers] = [make(), make(), make()]
for (const one of [queue, ...workers]) one.on('error', () => {})

let laterAt
let ticks = 0
const order = []
const completed = new Set()
queue.on('global:completed', (id) => completed.add(id))
for (const one of workers) {
  one.process('work', ({ data }) => work(data.name))
  // Each name has workers of its own.
  one.process('again', async () => failsUntil('again', 2))
  one.process('hopeless', async () => { throw new Error('hopeless') })
  one.process('later', async () => { laterAt = Date.now() })
  one.process('tick', async () => { ticks += 1 })
  one.process('first', async ({ data }) => { order.push(data.n) })
}

const addedAt = Date.now()
await queue.add('later', {}, { delay: 1500, jobId: 'later' })
await whileKilled((name) => insist(() => queue.add('work', { name }, { jobId: name })), 2, true)

const state = async (id) => (await queue.getJob(id))?.getState()
await waitUntil('all jobs are completed', async () => {
  const states = await Promise.all([...JOBS, 'later'].map(state))
  return states.every((one) => one === 'completed')
})
const again = await queue.add('again', {}, { attempts: 3, backoff: 200 })
const hopeless = await queue.add('hopeless', {}, { attempts: 2 })
const retried = await again.finished()
const failed = await hopeless.finished().catch((error) => error.message)
await queue.pause()
for (const n of [3, 1, 2]) await queue.add('first', { n }, { priority: n })
await sleep(300)
const paused = order.length
await queue.resume()
await waitUntil('what has priorities is done', () => order.length === 3)
await queue.add('tick', {}, { repeat: { every: 300 } })
await waitUntil('the repeated job ticks', () => ticks >= 3)
await queue.removeRepeatable('tick', { every: 300 })
await waitUntil('nothing is active', async () => (await queue.getActiveCount()) === 0)
await Promise.all(workers.map((one) => one.close()))

const results = {}
for (const name of JOBS) results[name] = (await queue.getJob(name)).returnvalue
const outcomes = {
  results,
  'on time': laterAt - addedAt >= 1500 && laterAt - addedAt < 60_000,
  retried,
  failed,
  attempts: (await queue.getJob(hopeless.id)).attemptsMade,
  paused,
  'done after the pause': [...order].sort(),
  'events came': completed.has(again.id),
  counts: await queue.getJobCounts(),
}
outcomes.counts.completed = 'as many as ticks'
outcomes.cleaned = (await queue.clean(0, 'failed')).length
await queue.obliterate({ force: true })
outcomes.left = (await new Redis(port, host).keys('*')).sort()
end(outcomes)
