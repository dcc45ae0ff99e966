// redlock and rate-limiter-flexible: what they hold is held after the kill.
import Redis from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import Redlock from 'redlock'
import { end, host, insist, kill, port } from './scenario.mjs'

const client = new Redis(port, host)
client.on('error', () => {})
const redlock = new Redlock([client], { retryCount: 2, retryDelay: 50 })
redlock.on('clientError', () => {})
const limiter = new RateLimiterRedis({ storeClient: client, points: 5, duration: 600, blockDuration: 0 })

const attempt = (make) => make().then(() => 'yes', (error) => error.name ?? 'refused')
const lock = await redlock.lock('lock', 60_000)
const contended = await attempt(() => redlock.lock('lock', 1_000))
await limiter.consume('user', 2)
await limiter.penalty('user', 1)
await kill()
await insist(() => client.ping())
const outcomes = {
  contended,
  'contended after the kill': await attempt(() => redlock.lock('lock', 1_000)),
  consumed: (await limiter.get('user')).consumedPoints,
  allowed: await attempt(() => limiter.consume('user', 2)),
  refused: await attempt(async () => {
    try { await limiter.consume('user', 1) } catch (error) { throw { name: `remaining ${error.remainingPoints}` } }
  }),
}
await limiter.reward('user', 3)
outcomes.rewarded = (await limiter.get('user')).consumedPoints
await limiter.delete('user')
outcomes.deleted = (await limiter.get('user')) === null
const extended = await lock.extend(30_000)
outcomes.extended = (await client.pttl('lock')) > 20_000
await extended.unlock()
const next = await redlock.lock('lock', 1_000)
await next.unlock()
outcomes.left = await client.keys('*')
end(outcomes)
