// BullMQ: jobs are added one by one, by 16 at once and in bulks, and completed by one worker that takes
// 1 or 16 at once. Run by run.py.

import { Queue, Worker } from 'bullmq'

const [port, jobs] = process.argv.slice(2).map(Number)
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
const options = { removeOnComplete: true }

async function phase(name, count, run) {
  console.log(`begin ${name}`)
  await run()
  console.log(`end ${name} ${count}`)
}

async function add(queue, adders) {
  let left = jobs
  const one = async () => {
    while (left-- > 0) await queue.add('job', { left }, options)
  }
  await Promise.all(Array.from({ length: adders }, one))
}

for (const [adders, concurrency] of [[1, 1], [16, 16]]) {
  const queue = new Queue(`work-${adders}`, { connection })
  await queue.waitUntilReady()
  await phase(`add, ${adders} at once`, jobs, () => add(queue, adders))
  let done = 0
  let finish
  const finished = new Promise((resolve) => (finish = resolve))
  const worker = new Worker(queue.name, async () => {}, { connection, concurrency, autorun: false })
  worker.on('completed', () => ++done === jobs && finish())
  await worker.waitUntilReady()
  await phase(`complete, ${concurrency} at once`, jobs, async () => {
    worker.run()
    await finished
  })
  await worker.close()
  await queue.close()
}
process.exit(0)
