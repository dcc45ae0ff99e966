// socket.io: two servers that share rooms through redis-adapter and through redis-streams-adapter.
import { createServer } from 'node:http'
import { createAdapter, createShardedAdapter } from '@socket.io/redis-adapter'
import { createAdapter as createStreamsAdapter } from '@socket.io/redis-streams-adapter'
import Redis from 'ioredis'
import { Server } from 'socket.io'
import { io } from 'socket.io-client'
import { end, host, kill, port, waitUntil } from './scenario.mjs'

const connect = () => {
  const client = new Redis(port, host, { maxRetriesPerRequest: null })
  client.on('error', () => {})
  return client
}
const adapters = {
  'pub/sub': () => createAdapter(connect(), connect(), { key: 'plain' }),
  sharded: () => createShardedAdapter(connect(), connect(), { channelPrefix: 'sharded' }),
  streams: () => createStreamsAdapter(connect()),
}

async function start(adapter) {
  const http = createServer()
  const server = new Server(http, { adapter: adapter() })
  await new Promise((resolve) => http.listen(0, host, resolve))
  server.on('connection', (socket) => {
    socket.join('room')
    socket.on('answer', (reply) => reply('here'))
  })
  const client = io(`http://${host}:${http.address().port}`)
  const got = []
  client.on('news', (text) => got.push(text))
  client.on('ask', (reply) => reply('yes'))
  await new Promise((resolve) => client.on('connect', resolve))
  return { server, client, got }
}

const pairs = {}
for (const [name, adapter] of Object.entries(adapters)) {
  pairs[name] = [await start(adapter), await start(adapter)]
}
// Servers learn of each other first; the events of an emit before that are lost on Redis as well.
async function exchange(name, round) {
  const [one, two] = pairs[name]
  let sent = 0
  await waitUntil(`${name} delivers, round ${round}`, async () => {
    one.server.to('room').emit('news', `round ${round}`)
    sent += 1
    await new Promise((resolve) => setTimeout(resolve, 200))
    return two.got.includes(`round ${round}`) && one.got.includes(`round ${round}`)
  })
  const sockets = async () => (await one.server.in('room').fetchSockets()).length
  await waitUntil(`${name} sees both clients`, () => sockets().then((count) => count === 2, () => false))
  const answers = () => one.server.timeout(2_000).emitWithAck('ask').catch(() => [])
  await waitUntil(`${name} gets both answers`, async () => (await answers()).length === 2)
  return 'delivered'
}
const outcomes = {}
for (const name of Object.keys(pairs)) outcomes[`${name}, before`] = await exchange(name, 1)
await kill()
for (const name of Object.keys(pairs)) outcomes[`${name}, after`] = await exchange(name, 2)
end(outcomes)
