// Where the server under test is, and what the clients ask it.
export const url = process.env.CLIENTS_URL
export const slowUrl = process.env.CLIENTS_SLOW_URL
export const apiKey = process.env.CLIENTS_API_KEY
export const STORY = 'Tell me a short story.'
export const SARI = 'Answer in JSON: name and city of Sari from Bandung.'
export const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
export const WEATHER = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
export const WEATHER_TOLD = 'Cuaca di Bandung: cerah, 24 derajat.'

export async function collect(stream) {
  const all = []
  for await (const one of stream) all.push(one)
  return all
}
