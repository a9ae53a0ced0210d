// openai-node: chat completions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { apiKey, CITY, collect, SARI, STORY, url, WEATHER, WEATHER_TOLD } from './house.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Get the weather in a city', parameters: CITY } }]
const asked = (content) => ({ model: 'demo', temperature: 0, messages: [{ role: 'user', content }] })

test('a whole answer', async () => {
  const { choices, usage } = await client.chat.completions.create(asked('Say hello.'))
  assert.equal(choices[0].message.content, 'Hello!')
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
})

test('a stream is the whole answer', async () => {
  const chunks = await collect(await client.chat.completions.create({ ...asked(STORY), stream: true }))
  const whole = await client.chat.completions.create(asked(STORY))
  assert.equal(chunks.map((chunk) => chunk.choices[0].delta.content ?? '').join(''), whole.choices[0].message.content)
  assert.ok(chunks.length > 5)
})

test('the stream helper puts a call together', async () => {
  const stream = client.chat.completions.stream({ ...asked('What is the weather in Jakarta?'), tools })
  const [call] = (await stream.finalChatCompletion()).choices[0].message.tool_calls
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ['get_weather', { city: 'Jakarta' }])
})

test('the helper for tools calls them and tells the result', async () => {
  const runner = client.chat.completions.runTools({
    ...asked('Bagaimana cuaca di Bandung?'),
    tools: [{ type: 'function', function: { ...tools[0].function, parse: JSON.parse, function: () => WEATHER } }],
  })
  assert.equal(await runner.finalContent(), WEATHER_TOLD)
})

test('a wrong key is an authentication error', async () => {
  const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'wrong', maxRetries: 0 })
  await assert.rejects(stranger.models.list(), (error) => error instanceof OpenAI.AuthenticationError && error.code === 'invalid_api_key')
})

test('a stream is aborted and the server is still there', async () => {
  const stream = await client.chat.completions.create({ ...asked(STORY), stream: true, ignore_eos: true, max_tokens: 2000 })
  for await (const _ of stream) {
    stream.controller.abort()
    break
  }
  assert.equal((await client.models.retrieve('demo')).id, 'demo')
})

test('an answer is parsed into an object', async () => {
  const response_format = zodResponseFormat(z.object({ name: z.string(), city: z.string() }), 'person')
  const { choices } = await client.chat.completions.parse({ ...asked(SARI), response_format })
  assert.deepEqual(choices[0].message.parsed, { name: 'Sari', city: 'Bandung' })
})

test('a tool is called if it has to be', async () => {
  for (const tool_choice of ['required', { type: 'function', function: { name: 'get_weather' } }]) {
    const { choices } = await client.chat.completions.create({ ...asked('Bandung'), tools, tool_choice, max_tokens: 100 })
    assert.equal(choices[0].finish_reason, 'tool_calls')
    assert.equal(typeof JSON.parse(choices[0].message.tool_calls[0].function.arguments).city, 'string')
  }
})
