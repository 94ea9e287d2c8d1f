// The tokens of a conversation that fit in the model's context, as pure functions, and their meter.

const kReplyRoom = 1024; // tokens that are left for the answer if no limit is set
// An assumed upper bound. A text that exceeds the room even by this bound is not counted at all.
const kMaxBytesPerToken = 32;
const kTemplateTokens = 256; // more than a chat template adds of its own
const kNearlyFull = 0.8;

// Returns how many tokens a prompt may have, so that an answer fits in the context after it.
export function promptRoom(contextTokens, maxTokens) {
  const wanted = maxTokens > 0 && maxTokens < contextTokens ? maxTokens : kReplyRoom;
  return contextTokens - Math.min(wanted, Math.floor(contextTokens / 2));
}

// Judges by its size in bytes whether the prompt of a chat request fits in `room` tokens: true,
// false, or null if its tokens must be counted. A token has at least one byte.
export function fitsBySize(fields, room) {
  const numBytes = new TextEncoder().encode(JSON.stringify(fields)).length;
  if (numBytes + kTemplateTokens <= room) return true;
  return numBytes > kMaxBytesPerToken * room ? false : null;
}

// Returns the index in the path of the first message that the model gets. If the messages from
// there on have more than `room` tokens, they are only the last turn, which may have up to `most`
// tokens; -1 means that it has more. count(index) returns the number of tokens of the prompt
// without the messages before that index. Whole turns are left out, because many templates require
// alternating roles. `before` is the index that the previous request used: while it fits, the
// prompts share their beginning, which the server then has in its prefix cache.
export async function firstThatFits(path, room, most, count, before) {
  const total = await count(0);
  if (total <= room) return 0;
  const starts = path.flatMap(({ role }, i) => (role === 'user' && i > 0 ? [i] : []));
  if (starts.length === 0) return total <= most ? 0 : -1;
  if (starts.includes(before) && await count(before) <= room) return before;
  // Leaves out the fewest messages that free half of the room, so that not every turn loses one.
  // Searches by halves, because each count tokenizes the rest of the conversation.
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await count(starts[middle]) <= room / 2) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return await count(starts[high]) <= most ? starts[high] : -1;
}

// Shows how full the context is after the last answer of the path.
export function showContext(path, contextTokens) {
  const used = path.findLast(({ timing }) => timing?.contextTokens > 0)?.timing.contextTokens ?? 0;
  const root = document.getElementById('context-used');
  root.hidden = used === 0 || contextTokens === 0;
  if (root.hidden) return;
  const bar = root.querySelector('progress');
  bar.max = contextTokens;
  bar.value = Math.min(used, contextTokens);
  const isNearlyFull = used > kNearlyFull * contextTokens;
  root.classList.toggle('nearly-full', isNearlyFull);
  root.querySelector('span').textContent =
    `${used.toLocaleString('en')} of ${contextTokens.toLocaleString('en')} tokens of context` +
    (isNearlyFull ? '; the oldest messages will be left out' : '');
}
