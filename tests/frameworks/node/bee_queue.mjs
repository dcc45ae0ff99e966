// Bee-Queue: two workers, retries, delays, progress and events between processes.
import Queue from 'bee-queue'
import Redis from 'ioredis'
import { JOBS, end, failsUntil, host, insist, port, ran, waitUntil, whileKilled, work } from './scenario.mjs'

const redis = { host, port, retry_strategy: ({ attempt }) => Math.min(attempt * 50, 500) }
const options = { redis, stallInterval: 2000, activateDelayedJobs: true, removeOnSuccess: false, autoConnect: true }
const queue = new Queue('work', { ...options, isWorker: false })
const workers = [1, 2].map(() => new Queue('work', options))
for (const one of [queue, ...workers]) {
  await one.ready()
  one.on('error', () => {})
}

let laterAt
const results = {}
queue.on('job succeeded', (id, result) => { results[id] = result })
const handlers = {
  work: ({ name }) => work(name),
  again: () => failsUntil('again', 2),
  hopeless: () => { throw new Error('hopeless') },
  later: () => { laterAt = Date.now() },
}
for (const one of workers) {
  one.process(async (job) => {
    job.reportProgress({ half: true })
    return handlers[job.data.kind](job.data)
  })
}
// Looks for stalled jobs, those whose worker has lost the server among them. A check that loses the
// server is the last of those that Bee-Queue repeats by itself.
setInterval(() => workers[0].checkStalledJobs().catch(() => {}), 1000).unref()

const addedAt = Date.now()
await queue.createJob({ kind: 'later' }).setId('later').delayUntil(addedAt + 1500).save()
const enqueue = (name) => insist(() => queue.createJob({ kind: 'work', name }).setId(name).retries(5).save())
await whileKilled(enqueue, 2, true)
// Asks the server: a queue knows the jobs that it has made by their events, which a kill may swallow.
const asking = new Queue('work', { redis: { host, port }, isWorker: false, getEvents: false, storeJobs: false })
const status = async (id) => (await insist(() => asking.getJob(id)))?.status
await waitUntil('all jobs succeeded', async () => {
  const states = await Promise.all([...JOBS, 'later'].map(status))
  return states.every((one) => one === 'succeeded')
})

const finished = (job) => new Promise((resolve) => {
  job.on('succeeded', resolve)
  job.on('failed', (error) => resolve(error.message))
})
let progress
const again = queue.createJob({ kind: 'again' }).retries(3).backoff('fixed', 200)
again.on('progress', (value) => { progress = value })
const hopeless = queue.createJob({ kind: 'hopeless' })
const ends = [finished(again), finished(hopeless)]
await again.save()
await hopeless.save()
const [retried, failed] = await Promise.all(ends)
const health = await queue.checkHealth()
const outcomes = {
  'on time': laterAt - addedAt >= 1500 && laterAt - addedAt < 60_000,
  retried,
  failed,
  progress,
  'events came': Object.keys(results).length > 0,
  counts: { waiting: health.waiting, active: health.active, delayed: health.delayed, failed: health.failed, succeeded: health.succeeded },
}
await Promise.all(workers.map((one) => one.close()))
await queue.removeJob(hopeless.id)
outcomes.removed = (await queue.getJob(hopeless.id)) === null
await queue.destroy()
outcomes.left = (await new Redis(port, host).keys('*')).sort()
end(outcomes)
