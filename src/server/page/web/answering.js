// Asks the server for answers, without regard to how they are shown.
import { countTokens, ServerError, streamChat } from './api.js';
import { firstThatFits, fitsBySize, promptRoom } from './context.js';
import { addDelta, newSeed, requestMessages, settingFields } from './conversation.js';

const kSameReadMs = 5; // tokens within this time of the first arrived together with it

// Returns { fields, numLeftOut }: the fields of the job's chat request for a path of messages, and
// the number of the oldest messages that the context cannot take. Throws ServerError if not even
// the last question fits.
async function fitted(job, path, { model, contextTokens }) {
  const { chat: { settings }, continues, isAnotherTry, controller: { signal } } = job;
  const fields = { model, ...settingFields(settings) };
  // The server's own seed is the same for the same prompt, which would yield the same answer.
  if (isAnotherTry) fields.seed ??= newSeed();
  if (continues) {
    Object.assign(fields, { continue_final_message: true, add_generation_prompt: false });
  }
  const messagesFrom = (index) => requestMessages(path.slice(index), settings.system);
  if (contextTokens === 0) {
    return { fields: { ...fields, messages: messagesFrom(0) }, numLeftOut: 0 };
  }
  const room = promptRoom(contextTokens, fields.max_tokens);
  const { tools, continue_final_message, add_generation_prompt } = fields;
  const count = async (index) => {
    const prompt = { model, messages: messagesFrom(index), tools, continue_final_message,
      add_generation_prompt };
    const fits = fitsBySize(prompt, room);
    return fits === null ? countTokens(prompt, signal) : fits ? 0 : Infinity;
  };
  const before = path.findLast(({ role, leftOut }) => role === 'assistant' && leftOut > 0);
  const first = await firstThatFits(path, room, contextTokens - 1, count, before?.leftOut);
  if (first < 0) {
    throw new ServerError('The message alone is longer than the model\'s context of ' +
      `${contextTokens.toLocaleString('en')} tokens; shorten it, or attach less.`);
  }
  return { fields: { ...fields, messages: messagesFrom(first) }, numLeftOut: first };
}

// Fills the job's message from the server, and calls changed() after each change; returns why the
// answer ended. `path` has the messages for the model; if the job continues an answer, that is the
// last of them. `limits` has { model, contextTokens }; contextTokens is 0 if it is not known.
export async function receive(job, path, limits, changed) {
  const { message, startMs, controller: { signal } } = job;
  const { timing } = message;
  const { numTokens, streamMs, streamTokens } = timing; // of the answer so far, if it is continued
  const { fields, numLeftOut } = await fitted(job, path, limits);
  if (message.leftOut !== numLeftOut) {
    message.leftOut = numLeftOut;
    changed();
  }
  let finishReason = '';
  let firstMs = 0;
  let numNow = 0;
  let numFirst = 0; // tokens that came together with the first one
  for await (const { usage, choices } of streamChat(fields, signal)) {
    if (job.isDone) break;
    if (usage) {
      numNow = usage.completion_tokens;
      timing.numTokens = numTokens + numNow;
      timing.contextTokens = usage.prompt_tokens + usage.completion_tokens;
    }
    const choice = choices?.[0];
    if (!choice) continue;
    finishReason = choice.finish_reason ?? finishReason;
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
    if (!content && !reasoning && !calls) continue;
    const elapsedMs = performance.now() - startMs;
    firstMs ||= elapsedMs;
    timing.waitMs ||= firstMs;
    if (elapsedMs - firstMs < kSameReadMs) numFirst = numNow;
    timing.streamMs = streamMs + elapsedMs - firstMs;
    timing.streamTokens = streamTokens + numNow - numFirst;
    addDelta(message, choice.delta);
    changed();
  }
  return finishReason;
}
