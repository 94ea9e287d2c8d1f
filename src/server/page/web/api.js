// The server's side of the page: OpenAI's calls, and its errors in the server's own words.
import { readEvents } from './sse.js';

export class ServerError extends Error {}

async function errorOf(response) {
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // A proxy's error page, say: the status is all there is to tell.
  }
  const seconds = Number(response.headers.get('retry-after'));
  if (seconds > 0) message += ` (in ${seconds} s)`;
  return new ServerError(message);
}

async function request(path, options) {
  let response;
  try {
    // With the origin alone: the page's own address may carry a user and password, and fetch
    // refuses those.
    response = await fetch(location.origin + path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError('The server cannot be reached.');
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

// { id, max_model_len } of the model that is served.
export async function fetchModel() {
  const list = await (await request('/v1/models')).json();
  if (!list.data?.length) throw new ServerError('The server serves no model.');
  return list.data[0];
}

export async function fetchMetrics(signal) {
  return (await request('/metrics', { signal, cache: 'no-store' })).text();
}

// The chunks of a streamed chat completion. Throws ServerError for the server's errors, before and
// amid an answer, and for an answer that breaks off.
export async function* streamChat(fields, signal) {
  const response = await request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...fields,
      stream: true,
      // The count of tokens with every chunk, so that a stopped answer has it too.
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
    throw new ServerError(error instanceof SyntaxError ? 'The server sent what is no JSON.'
      : 'The connection broke off.');
  }
  throw new ServerError('The connection ended before the answer did.');
}
