// The Vercel AI SDK: its provider for compatible servers (chat) and OpenAI's own (responses).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { apiKey, CITY, collect, STORY, url, WEATHER, WEATHER_TOLD } from './house.mjs'

const baseURL = `${url}/v1`
const models = {
  chat: createOpenAICompatible({ name: 'house', baseURL, apiKey, includeUsage: true })('demo'),
  responses: createOpenAI({ name: 'house', baseURL, apiKey }).responses('demo'),
}
const get_weather = tool({
  description: 'Get the weather in a city',
  inputSchema: jsonSchema(CITY),
  execute: async () => WEATHER, // as text: the demo model has seen JSON with spaces only
})

for (const [name, model] of Object.entries(models)) {
  const settings = { model, temperature: 0, maxRetries: 0 }

  test(`${name}: a whole answer`, async () => {
    const { text, finishReason, usage } = await generateText({ ...settings, prompt: 'Say hello.' })
    assert.deepEqual([text, finishReason], ['Hello!', 'stop'])
    assert.ok(usage.inputTokens && usage.outputTokens)
  })

  test(`${name}: a stream is the whole answer`, async () => {
    const stream = streamText({ ...settings, prompt: STORY })
    const pieces = await collect(stream.textStream)
    assert.equal(pieces.join(''), (await generateText({ ...settings, prompt: STORY })).text)
    assert.ok(pieces.length > 5 && (await stream.usage).outputTokens)
    assert.equal(await stream.finishReason, 'stop')
  })

  test(`${name}: thoughts are apart from the answer`, async () => {
    const { text, reasoningText, usage } = await generateText({ ...settings, prompt: 'What is 12 + 7?' })
    assert.equal(text, '12 + 7 = 19.')
    // Over responses it looks for summaries only, which a model of ours does not write.
    assert.ok(name === 'responses' ? usage.outputTokenDetails.reasoningTokens : reasoningText)
  })

  test(`${name}: a tool is called and its result told`, async () => {
    const asked = { ...settings, prompt: 'Bagaimana cuaca di Bandung?', tools: { get_weather }, stopWhen: stepCountIs(3) }
    const { text, steps } = await generateText(asked)
    assert.equal(text, WEATHER_TOLD)
    assert.deepEqual(steps[0].toolCalls[0].input, { city: 'Bandung' })
    const streamed = streamText(asked)
    assert.equal((await collect(streamed.textStream)).join(''), WEATHER_TOLD)
    assert.equal((await streamed.steps)[0].finishReason, 'tool-calls')
  })
}
