// Calls the server's OpenAI API. Errors carry the server's own message.
import { readEvents } from './sse.js';

export class ServerError extends Error {}

async function errorOf(response) {
  let message = `The server returned HTTP ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // The body is not the server's JSON (a proxy's error page, for example), so only the status is
    // known.
  }
  const seconds = Number(response.headers.get('retry-after'));
  if (seconds > 0) message += ` (in ${seconds} s)`;
  return new ServerError(message);
}

async function request(path, options) {
  let response;
  try {
    // Uses only the origin: the page's own address can contain a user and password, which fetch
    // refuses.
    response = await fetch(location.origin + path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError('The server cannot be reached.');
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

// Returns the served model, with id and max_model_len.
export async function fetchModel() {
  const list = await (await request('/v1/models')).json();
  if (!list.data?.length) throw new ServerError('The server serves no model.');
  return list.data[0];
}

export async function fetchMetrics(signal) {
  return (await request('/metrics', { signal, cache: 'no-store' })).text();
}

export async function countTokens(text) {
  const response = await request('/tokenize', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: text, add_special_tokens: false }),
  });
  return (await response.json()).count;
}

// Yields the chunks of a streamed chat completion. Throws ServerError for an error response, for an
// error within the stream, and for a stream that ends early.
export async function* streamChat(fields, signal) {
  const response = await request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...fields,
      stream: true,
      // Token counts in every chunk, so that a stopped response has them too.
      stream_options: { include_usage: true, continuous_usage_stats: true },
    }),
    signal,
  });
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
