// Calls the server's OpenAI API. Errors have the server's own message.
import { readEvents } from './sse.js';

export class ServerError extends Error {}

let key = '';

// Sends this API key with each request; '' sends none.
export function useKey(next) {
  key = next;
}

async function errorOf(response) {
  let message = `The server returned HTTP ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // The body is not the server's JSON (a proxy's error page, for example), so only the status is
    // known.
  }
  const seconds = Number(response.headers.get('retry-after'));
  if (seconds > 0) message = `${message.replace(/\.$/, '')}; try again in ${seconds} s.`;
  const error = new ServerError(message);
  error.status = response.status;
  return error;
}

async function request(path, options = {}) {
  const headers = { ...options.headers, ...(key && { authorization: `Bearer ${key}` }) };
  let response;
  try {
    // Uses only the origin: the page's own address can contain a user and password, which fetch
    // refuses.
    response = await fetch(location.origin + path, { ...options, headers });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError('The server cannot be reached.');
  }
  if (response.ok) return response;
  if (response.status === 401) window.dispatchEvent(new CustomEvent('keyneeded', { detail: key }));
  throw await errorOf(response);
}

async function post(path, fields, signal) {
  return request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(fields),
    signal,
  });
}

// Returns the entries of the server's list of models.
export async function fetchModels() {
  const { data } = await (await request('/v1/models', { cache: 'no-store' })).json();
  const models = Array.isArray(data) ? data.filter((model) => typeof model?.id === 'string') : [];
  if (models.length === 0) throw new ServerError('The server serves no model.');
  return models;
}

export async function fetchMetrics(signal) {
  return (await request('/metrics', { signal, cache: 'no-store' })).text();
}

// Returns the number of tokens of a text, { prompt }, or of a chat's prompt, { messages, … }.
export async function countTokens(fields, signal) {
  return (await (await post('/tokenize', fields, signal)).json()).count;
}

// Yields the chunks of a streamed chat completion. Throws ServerError for an error response, for an
// error within the stream, and for a stream that ends early.
export async function* streamChat(fields, signal) {
  const response = await post('/v1/chat/completions', {
    ...fields,
    stream: true,
    // Token counts in every chunk, so that a stopped response has them too.
    stream_options: { include_usage: true, continuous_usage_stats: true },
  }, signal);
  try {
    for await (const data of readEvents(response.body)) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ServerError(chunk.error.message);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof ServerError || error.name === 'AbortError') throw error;
    throw new ServerError(error instanceof SyntaxError ? 'The server sent invalid JSON.'
      : 'The connection was lost.');
  }
  throw new ServerError('The connection ended before the answer did.');
}
