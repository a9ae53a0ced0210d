// EventSource: follows a named session, comes back with its cursor after a cut, and is stopped by a 204.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventSource } from 'eventsource'
import { slowUrl } from './house.mjs'

const TEXT = 'Halo, ini sebuah cerita yang tidak boleh berlubang.'

async function begin(session) {
  const body = { model: 'echo', session_id: session, stream: true, messages: [{ role: 'user', content: TEXT }] }
  const answer = await fetch(`${slowUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const reader = answer.body.getReader()
  await reader.read()
  await reader.cancel()
}

// A fetch whose first connection is cut after so many reads, as a tunnel on a train does.
function cutOnce(reads, cursors) {
  return async (address, init) => {
    const answer = await fetch(address, init)
    cursors.push([init.headers['Last-Event-ID'] ?? null, answer.status])
    if (cursors.length > 1 || !answer.body) return answer
    const reader = answer.body.getReader()
    const body = new ReadableStream({
      async pull(controller) {
        const { done, value } = reads-- > 0 ? await reader.read() : { done: true }
        if (!done) return controller.enqueue(value)
        await reader.cancel()
        controller.close()
      },
    })
    return new Proxy(answer, { get: (target, name) => (name === 'body' ? body : Reflect.get(target, name, target)) })
  }
}

test('a reader who was cut off comes back without hole or repeat, and is let go at the end', async () => {
  await begin('train')
  const cursors = []
  const ids = []
  let text = ''
  const source = new EventSource(`${slowUrl}/v1/stream/train`, { fetch: cutOnce(8, cursors) })
  await new Promise((resolve) => {
    source.onmessage = ({ data, lastEventId }) => {
      ids.push(lastEventId)
      if (data !== '[DONE]') text += JSON.parse(data).choices[0].delta.content ?? ''
    }
    source.onerror = () => source.readyState === source.CLOSED && resolve()
  })
  assert.equal(text, TEXT)
  assert.deepEqual(ids, ids.map((_, index) => `train:${index}`))
  // The first, the one after the cut, and the one that is told that nothing more comes.
  assert.deepEqual(cursors.map(([, status]) => status), [200, 200, 204])
  assert.equal(cursors[0][0], null)
  assert.match(cursors[1][0], /^train:\d+$/)
})
