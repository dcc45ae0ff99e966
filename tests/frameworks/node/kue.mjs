// Kue: a worker of two, retries, delays, priorities and events.
import kue from 'kue'
import { JOBS, end, failsUntil, host, insist, port, ran, waitUntil, whileKilled, work } from './scenario.mjs'

const queue = kue.createQueue({ redis: { host, port } })
queue.on('error', () => {})
queue.watchStuckJobs(500)
let laterAt
queue.process('work', 2, ({ data }, done) => { work(data.name).then((result) => done(null, result), done) })
queue.process('again', (job, done) => {
  try { done(null, failsUntil('again', 2)) } catch (error) { done(error) }
})
queue.process('hopeless', (job, done) => done(new Error('hopeless')))
queue.process('later', (job, done) => { laterAt = Date.now(); done() })

const save = (job) => new Promise((resolve, reject) => job.save((error) => (error ? reject(error) : resolve(job))))
const get = (id) => new Promise((resolve) => kue.Job.get(id, (error, job) => resolve(job)))
const count = (state) => new Promise((resolve) => queue[`${state}Count`]((error, number) => resolve(number)))
const finished = (job) => new Promise((resolve) => {
  job.on('complete', resolve)
  job.on('failed', (error) => resolve(String(error)))
})

const addedAt = Date.now()
await save(queue.create('later', {}).delay(1500))
await whileKilled((name) => insist(() => save(queue.create('work', { name }).attempts(5))), 2)
await waitUntil('all jobs ran', () => JOBS.every((name) => ran.has(name)))
await waitUntil('the late job ran', () => laterAt)
await waitUntil('nothing is stuck', async () => !(await count('inactive')) && !(await count('active')))

const again = queue.create('again', {}).attempts(3).backoff({ delay: 200, type: 'fixed' })
const hopeless = queue.create('hopeless', {}).priority('high')
const ends = [finished(again), finished(hopeless)]
await save(again)
await save(hopeless)
const [retried, failed] = await Promise.all(ends)
await waitUntil('nothing is active', async () => !(await count('active')))
const outcomes = {
  'on time': laterAt - addedAt >= 1500 && laterAt - addedAt < 60_000,
  retried,
  failed,
  result: (await get(again.id)).result,
  counts: { failed: await count('failed'), delayed: await count('delayed') },
  'all are complete': (await count('complete')) >= JOBS.length + 2,
}
const remove = (job) => new Promise((resolve) => job.remove(resolve))
for (const state of ['complete', 'failed']) {
  const ids = await new Promise((resolve) => queue[state]((error, ids) => resolve(ids)))
  for (const id of ids) await remove(await get(id))
}
outcomes.cleaned = [await count('complete'), await count('failed')]
// Not compared: keys that are left. Kue writes a job in several steps, and a kill may come between.
end(outcomes)
