// Server-sent events out of a stream of bytes, as the HTML standard has them. Pieces of a body may
// end anywhere: inside a character, inside a line, between the two bytes of a line's end.

export class SseDecoder {
  #rest = '';
  #data = [];

  // The data of each event that `text` completes.
  feed(text) {
    const events = [];
    this.#rest += text;
    let begin = 0;
    for (let at = 0; at < this.#rest.length; ++at) {
      const c = this.#rest[at];
      if (c !== '\n' && c !== '\r') continue;
      // Whether a last '\r' stands alone is known only with what follows.
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
    if (field !== 'data') return; // comments that keep a connection open, ids, names
    const value = colon < 0 ? '' : line.slice(colon + 1);
    this.#data.push(value.startsWith(' ') ? value.slice(1) : value);
  }
}

// The data of a response body's events, one by one. An event cut off by the body's end is none.
export async function* readEvents(body) {
  const reader = body.getReader();
  const characters = new TextDecoder(); // also drops a byte order mark
  const decoder = new SseDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* decoder.feed(characters.decode(value, { stream: true }));
    }
  } finally {
    // Whoever stops reading also stops the server's work.
    reader.cancel().catch(() => {});
  }
}
