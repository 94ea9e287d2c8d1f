// Decodes server-sent events from a byte stream (HTML standard, "Server-sent events"). A piece of
// the body can end anywhere: within a character, within a line, or between CR and LF.

export class SseDecoder {
  #rest = '';
  #data = [];

  // Returns the data of each event that `text` completes.
  feed(text) {
    const events = [];
    this.#rest += text;
    let begin = 0;
    for (let at = 0; at < this.#rest.length; ++at) {
      const c = this.#rest[at];
      if (c !== '\n' && c !== '\r') continue;
      // A final '\r' may be followed by '\n' in the next piece.
      if (c === '\r' && at + 1 === this.#rest.length) break;
      this.#line(this.#rest.slice(begin, at), events);
      if (c === '\r' && this.#rest[at + 1] === '\n') ++at;
      begin = at + 1;
    }
    this.#rest = this.#rest.slice(begin);
    return events;
  }

  #line(line, events) {
    if (line === '') {
      if (this.#data.length > 0) events.push(this.#data.join('\n'));
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    if (field !== 'data') return; // ignores keep-alive comments, ids and event names
    const value = colon < 0 ? '' : line.slice(colon + 1);
    this.#data.push(value.startsWith(' ') ? value.slice(1) : value);
  }
}

// Yields the data of a response body's events. Drops an event that the end of the body cuts off.
export async function* readEvents(body) {
  const reader = body.getReader();
  const characters = new TextDecoder(); // also removes a byte order mark
  const decoder = new SseDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* decoder.feed(characters.decode(value, { stream: true }));
    }
  } finally {
    // Cancels the response when the caller stops reading, so that the server stops generating.
    reader.cancel().catch(() => {});
  }
}
