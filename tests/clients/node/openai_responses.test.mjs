// openai-node: responses and conversations.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { apiKey, CITY, collect, SARI, STORY, url, WEATHER, WEATHER_TOLD } from './house.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const tools = [{ type: 'function', name: 'get_weather', description: 'Get the weather in a city', parameters: CITY, strict: false }]
const asked = (input) => ({ model: 'demo', temperature: 0, input })
const textOf = (events) => events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join('')

test('a response is kept until it is deleted', async () => {
  const made = await client.responses.create(asked('Say hello.'))
  assert.equal(made.output_text, 'Hello!')
  assert.equal((await client.responses.retrieve(made.id)).output_text, 'Hello!')
  const [item] = await collect(client.responses.inputItems.list(made.id))
  assert.equal(item.content[0].text, 'Say hello.')
  await client.responses.delete(made.id)
  await assert.rejects(client.responses.retrieve(made.id), OpenAI.NotFoundError)
})

for (const background of [false, true]) {
  test(`a stream that was left is taken up again (background: ${background})`, async () => {
    const seen = []
    for await (const event of await client.responses.create({ ...asked(STORY), stream: true, background })) {
      seen.push(event)
      if (seen.length === 6) break
    }
    const id = seen[0].response.id
    const events = seen.concat(await collect(await client.responses.retrieve(id, { stream: true, starting_after: 5 })))
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index))
    assert.equal(events.at(-1).type, 'response.completed')
    assert.equal(textOf(events), (await client.responses.retrieve(id)).output_text)
    const helper = client.responses.stream({ response_id: id, starting_after: 5 })
    assert.equal((await helper.finalResponse()).output_text, textOf(events))
  })
}

test('the stream helper', async () => {
  const stream = client.responses.stream(asked(STORY))
  const text = textOf(await collect(stream))
  assert.ok(text)
  assert.equal((await stream.finalResponse()).output_text, text)
})

test('a tool is called and its result told', async () => {
  const first = await client.responses.create({ ...asked('Bagaimana cuaca di Bandung?'), tools })
  const call = first.output.find((item) => item.type === 'function_call')
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ['get_weather', { city: 'Bandung' }])
  const output = [{ type: 'function_call_output', call_id: call.call_id, output: WEATHER }]
  const told = await client.responses.create({ ...asked(output), tools, previous_response_id: first.id })
  assert.equal(told.output_text, WEATHER_TOLD)
})

test('a background response is waited for, another cancelled', async () => {
  let response = await client.responses.create({ ...asked(STORY), background: true })
  while (['queued', 'in_progress'].includes(response.status)) response = await client.responses.retrieve(response.id)
  assert.equal(response.status, 'completed')
  const endless = { ignore_eos: true, max_output_tokens: 2000 }
  const { id } = await client.responses.create({ ...asked(STORY), ...endless, background: true })
  assert.equal((await client.responses.cancel(id)).status, 'cancelled')
})

test('a conversation remembers', async () => {
  const conversation = await client.conversations.create({})
  const say = (input) => client.responses.create({ ...asked(input), conversation: conversation.id })
  await say('My name is Sari.')
  assert.equal((await say('What is my name?')).output_text, 'Your name is Sari.')
  assert.equal((await collect(client.conversations.items.list(conversation.id))).length, 4)
  await client.conversations.delete(conversation.id)
})

test('an answer is parsed into an object', async () => {
  const format = zodTextFormat(z.object({ name: z.string(), city: z.string() }), 'person')
  const { output_parsed } = await client.responses.parse({ ...asked(SARI), text: { format } })
  assert.deepEqual(output_parsed, { name: 'Sari', city: 'Bandung' })
})
