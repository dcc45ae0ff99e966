// rsmq: messages that come back when they are not deleted, delays, and the kill in the middle.
import Redis from 'ioredis'
import RSMQ from 'rsmq'
import { JOBS, end, host, insist, kill, port, ran, sleep, waitUntil } from './scenario.mjs'

const queue = new RSMQ({ host, port, ns: 'rsmq', realtime: true })
queue.on('error', () => {})
await queue.createQueueAsync({ qname: 'work', vt: 2 })
const named = { qname: 'work' }
const sentAt = Date.now()
await queue.sendMessageAsync({ ...named, message: 'late', delay: 2 })
for (const name of JOBS.slice(0, 20)) await queue.sendMessageAsync({ ...named, message: name })

let laterAt
let comesAgain = 0
const receive = async () => {
  const message = await insist(() => queue.receiveMessageAsync(named))
  if (!message.id) return false
  if (message.message === 'late') laterAt = Date.now()
  // Every tenth is not deleted the first time, as if its worker had died.
  if (message.message.endsWith('0') && message.rc === 1) return true
  comesAgain += message.rc > 1 ? 1 : 0
  await insist(() => queue.deleteMessageAsync({ ...named, id: message.id }))
  ran.add(message.message)
  return true
}
for (let n = 0; n < 8; n += 1) await receive()
const sends = (async () => {
  for (const name of JOBS.slice(20)) await insist(() => queue.sendMessageAsync({ ...named, message: name }))
})()
await kill()
await sends
await waitUntil('all messages are done', async () => {
  await receive()
  return JOBS.every((name) => ran.has(name)) && ran.has('late')
})
await sleep(2_500)
while (await receive());
const popped = await queue.sendMessageAsync({ ...named, message: 'popped' }).then(() => queue.popMessageAsync(named))
const attributes = await queue.getQueueAttributesAsync(named)
const outcomes = {
  'on time': laterAt - sentAt >= 1_000,
  'came again': comesAgain >= 3,
  popped: popped.message,
  left: attributes.msgs,
  hidden: attributes.hiddenmsgs,
  queues: await queue.listQueuesAsync(),
}
await queue.deleteQueueAsync(named)
outcomes.keys = await new Redis(port, host).keys('*')
end(outcomes)
