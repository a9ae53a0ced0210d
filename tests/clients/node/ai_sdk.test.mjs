// The Vercel AI SDK: its provider for compatible servers (chat) and OpenAI's own (responses).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { apiKey, CITY, collect, SARI, STORY, url, WEATHER, WEATHER_TOLD } from './house.mjs'

const baseURL = `${url}/v1`
const models = {
  chat: createOpenAICompatible({ name: 'house', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true })('demo'),
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
    // Over responses it looks for summaries only, and asks for them only if it takes the model for one that thinks.
    const openai = { forceReasoning: true, reasoningSummary: 'auto' }
    const asked = { ...settings, prompt: 'What is 12 + 7?', providerOptions: { openai } }
    const { text, reasoningText, usage } = await generateText(asked)
    assert.equal(text, '12 + 7 = 19.')
    assert.ok(reasoningText && usage.outputTokenDetails.reasoningTokens)
    const parts = await collect(streamText(asked).fullStream)
    const thought = parts.filter(({ type }) => type === 'reasoning-delta').map(({ text }) => text)
    assert.equal(thought.join(''), reasoningText)
    assert.ok(thought.length > 1)
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

  test(`${name}: an answer is an object`, async () => {
    const output = Output.object({ schema: z.object({ name: z.string(), city: z.string() }) })
    const whole = await generateText({ ...settings, prompt: SARI, output })
    assert.deepEqual(whole.output, { name: 'Sari', city: 'Bandung' })
    const parts = await collect(streamText({ ...settings, prompt: SARI, output }).partialOutputStream)
    assert.deepEqual(parts.at(-1), { name: 'Sari', city: 'Bandung' })
  })

  test(`${name}: a tool is called if it has to be`, async () => {
    const asked = { ...settings, prompt: 'Bandung', tools: { get_weather }, maxOutputTokens: 100 }
    for (const toolChoice of ['required', { type: 'tool', toolName: 'get_weather' }]) {
      const { toolCalls } = await generateText({ ...asked, toolChoice })
      assert.equal(typeof toolCalls[0].input.city, 'string')
    }
  })
}
