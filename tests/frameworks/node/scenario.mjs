// What the scenarios share. A scenario is run as `node X.mjs PORT FOLDER`. It prints `kill` where
// the server is to be killed, goes on when it reads a line, and ends with one line of JSON: its
// outcomes. Workers live in the same process, as each framework has them.
import readline from 'node:readline'

export const PATIENCE_MS = 90_000
// Of the jobs in the middle of which the server is killed.
export const JOBS = Array.from({ length: 30 }, (_, n) => `job-${String(n).padStart(2, '0')}`)
const DONE_BEFORE_KILL = 8
const ENQUEUED_BEFORE_KILL = 20

export const port = Number(process.argv[2])
export const folder = process.argv[3]
export const host = '127.0.0.1'
export const url = `redis://${host}:${port}`

export const began = []
export const ran = new Set()

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
let isBack
const back = new Promise((resolve) => { isBack = resolve })

// Clients tell of lost connections by events that end a program that does not listen.
process.on('unhandledRejection', (error) => console.error('unhandled', error))
process.on('uncaughtException', (error) => {
  console.error('uncaught', error)
  if (!/ECONN|closed|reconnect/i.test(String(error?.stack))) process.exit(1)
})

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export async function waitUntil(what, isSo, patienceMs = PATIENCE_MS) {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const answer = await isSo()
    if (answer) return answer
    if (Date.now() > deadline) fail(`never: ${what}`)
    await sleep(50)
  }
}

function fail(what) {
  console.error(what)
  process.exit(1)
}

// A promise that must not take longer than a client waits for a server that is back.
export function soon(promise, ms = 5_000) {
  const late = sleep(ms).then(() => { throw new Error('late') })
  late.catch(() => {})
  return Promise.race([promise, late])
}

// Calls until the server answers, as a program does that must not lose what it has to say.
export async function insist(call) {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await soon(call())
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(100)
    }
  }
}

// What each of the jobs does. Those that begin when enough are done last until the server is back.
export async function work(name) {
  began.push(name)
  await (began.length > DONE_BEFORE_KILL ? back : sleep(50))
  ran.add(name)
  return name.toUpperCase()
}

const attempts = {}

// The number of this attempt; fails in the first `times`.
export function failsUntil(name, times) {
  attempts[name] = (attempts[name] ?? 0) + 1
  if (attempts[name] <= times) throw new Error(`attempt ${attempts[name]}`)
  return attempts[name]
}

// Enqueues the jobs, one after the other, while the server is killed and started again: when as
// many jobs as there are `workers` are in the middle of their work; then while the workers are idle.
// Where a worker takes a job so that it comes back if the answer is lost (`takesSafely`), the server is
// killed while they take jobs as fast as they come, too. Elsewhere such a job may get lost on any server.
export async function whileKilled(enqueue, workers, takesSafely = false) {
  const isBusy = waitUntil('all workers are busy', () => began.length >= DONE_BEFORE_KILL + workers)
  const enqueued = (async () => {
    for (const [number, name] of JOBS.entries()) {
      if (number === ENQUEUED_BEFORE_KILL) {
        await isBusy
        await sleep(500)
      }
      await enqueue(name)
      await sleep(20)
    }
  })()
  await isBusy
  await sleep(600)
  await kill()
  isBack()
  await enqueued
  await haveRun(JOBS)

  await sleep(1_000)
  await kill()
  await enqueue('idle')
  await haveRun(['idle'])

  if (takesSafely) {
    const quick = Array.from({ length: 20 }, (_, n) => `quick-${n}`)
    const added = (async () => { for (const name of quick) await enqueue(name) })()
    await haveRun(quick.slice(0, 3))
    await kill()
    await added
    await haveRun(quick)
  }
}

const haveRun = (names) =>
  waitUntil(`${names} ran`, () => names.every((name) => ran.has(name)), 2 * PATIENCE_MS)

export async function kill() {
  console.log('kill')
  await lines.next()
}

// Prints the outcomes, which must be those on Redis. What is true or false must be true.
export function end(outcomes) {
  const lost = JOBS.filter((name) => !ran.has(name))
  if (ran.size > 0 && lost.length > 0) fail(`lost: ${lost}`)
  const wrong = Object.keys(outcomes).filter((what) => outcomes[what] === false)
  if (wrong.length > 0) fail(`not so: ${wrong} of ${JSON.stringify(outcomes)}`)
  console.log(JSON.stringify(outcomes))
  process.exit(0)
}
