// Chats as plain data, and pure functions over them.
//
// A chat is { id, title, createdMs, updatedMs, leaf, settings, messages }. Its messages are a tree:
// a Map of id to { id, parent, role, content, … }, where the parent of a first message is ''. The
// path from a first message to the leaf is the conversation that the page shows; an edited question
// and a regenerated answer are siblings of the earlier version. Further fields depend on the role:
//   user:      files [{ name, text, numTokens }]
//   assistant: reasoning, calls [{ id, name, arguments }], model, note, error, leftOut (the number
//              of the path's first messages that the model did not get), and timing { numTokens,
//              contextTokens, waitMs, streamMs, streamTokens }: the tokens of the answer, and
//              with its prompt; the times until the first token and from the first to the last
//              one; and the tokens after the first piece
//   tool:      results [{ id, name, content }], one per call of the assistant message before it

const kNumbers = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty',
  'presence_penalty', 'frequency_penalty', 'max_tokens', 'seed'];
export const kFormSettings = [...kNumbers, 'stop', 'system', 'tools'];
export const kSettings = [...kFormSettings, 'model'];
const kMaxTitle = 60; // characters of a title that comes from a question
const kMaxImported = 5000; // messages per chat; the page shows a path as a whole
const kMaxIndent = 20; // levels, so that a deeply nested text does not grow without bound
const kFormat = 'quire-chats';
const kVersion = 1;

// An id begins with the time, so that the order of ids is the order of creation.
export function newId() {
  const random = crypto.getRandomValues(new Uint8Array(8)); // randomUUID needs https
  return Date.now().toString(36).padStart(9, '0') +
    Array.from(random, (byte) => byte.toString(36).padStart(2, '0')).join('');
}

export function newSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0];
}

export function newChat(settings) {
  const now = Date.now();
  return { id: newId(), title: '', createdMs: now, updatedMs: now, leaf: '', settings,
    messages: new Map() };
}

// Returns the title of a chat that begins with this message.
export function titleOf({ content, files = [] }) {
  const line = content.trim().split('\n')[0] || files[0]?.name || '';
  const characters = [...line];
  if (characters.length <= kMaxTitle) return line;
  return `${characters.slice(0, kMaxTitle).join('').trim()}…`;
}

// The tree

// Returns a Map of each parent to the ids of its children, the oldest first.
export function childrenOf(messages) {
  const children = new Map();
  for (const id of [...messages.keys()].sort()) {
    const { parent } = messages.get(id);
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(id);
  }
  return children;
}

// Returns the messages from the first one to `leaf`. If there is no such message, the path ends at
// the newest leaf.
export function pathTo(messages, leaf) {
  const path = [];
  let id = messages.has(leaf) ? leaf : newestLeaf(messages, '');
  for (; messages.has(id); id = messages.get(id).parent) path.push(messages.get(id));
  return path.reverse();
}

// Returns the end of the newest branch below the message `from`; '' stands for the whole tree.
export function newestLeaf(messages, from) {
  const children = childrenOf(messages);
  let leaf = from;
  while (children.has(leaf)) leaf = children.get(leaf).at(-1);
  return leaf;
}

// Returns only the messages that descend from a first message, so that every path ends. Damaged
// data can have parents that are missing or that form a cycle.
export function connected(messages) {
  const children = childrenOf(messages);
  const found = new Map();
  const parents = [''];
  while (parents.length > 0) {
    for (const id of children.get(parents.pop()) ?? []) {
      found.set(id, messages.get(id));
      parents.push(id);
    }
  }
  return found;
}

// Deletes a message, with the results of its calls of tools, which mean nothing without it. The
// messages that follow it then follow the one before it. Returns { deleted, moved }: the deleted
// messages, and those with another parent now, each as [message, earlier parent].
export function deleteMessage(messages, id) {
  const { parent } = messages.get(id);
  const children = childrenOf(messages);
  const results = (children.get(id) ?? []).filter((one) => messages.get(one).role === 'tool');
  const gone = new Set([id, ...results]);
  const moved = [...gone].flatMap((one) => children.get(one) ?? [])
    .filter((one) => !gone.has(one)).map((one) => [messages.get(one), messages.get(one).parent]);
  const deleted = [...gone].map((one) => messages.get(one));
  for (const one of gone) messages.delete(one);
  for (const [message] of moved) message.parent = parent;
  return { deleted, moved };
}

// Requests

// Encloses a text in a fence that is longer than any run of backticks in it.
function fenced(text, info = '') {
  const runs = text.match(/`{3,}/g) ?? [];
  const fence = '`'.repeat(runs.reduce((length, run) => Math.max(length, run.length + 1), 3));
  return `${fence}${info}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

// Returns a question as the model reads it: each attached file as a fenced block below its name.
export function questionText({ content, files = [] }) {
  return [...files.map((file) => `${oneLine(file.name)}:\n${fenced(file.text)}`), content]
    .filter((part) => part !== '').join('\n\n');
}

const oneLine = (text) => text.replace(/\s+/g, ' ').trim();

// Returns the value of a JSON text, or undefined for other texts.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

// The server takes only objects as arguments, so invalid ones become the value of an object.
function callFields({ id, name, arguments: text }) {
  const isValid = text === '' || isObject(parsed(text));
  const sent = isValid ? text : JSON.stringify({ invalid_arguments: text });
  return { id, type: 'function', function: { name, arguments: sent } };
}

function assistantFields({ content, calls, reasoning }) {
  if (calls.length === 0) return { role: 'assistant', content };
  // Other reasoning is not sent, because templates drop it; but a model that reasons between its
  // calls needs it.
  const thoughts = reasoning ? { reasoning_content: reasoning } : {};
  return { role: 'assistant', content, ...thoughts, tool_calls: calls.map(callFields) };
}

// Returns the parent of the next question after a path. A last question that has no answer is
// replaced by the next one, as by an edited one, because many templates require alternating roles.
export function parentOfNext(path) {
  const last = path.at(-1);
  return (last?.role === 'user' ? last.parent : last?.id) ?? '';
}

// Returns the path as messages for the model. Omits a question without an answer that another
// question follows, and an answer that failed before its first token. Joins answers between which
// the question was deleted.
export function requestMessages(path, system) {
  const messages = system ? [{ role: 'system', content: system }] : [];
  path.forEach((message, i) => {
    const next = path[i + 1];
    if (message.role === 'user') {
      if (next && (next.role === 'user' || isEmptyAnswer(next))) return;
      messages.push({ role: 'user', content: questionText(message) });
    } else if (message.role === 'tool') {
      for (const { id, content } of message.results) {
        messages.push({ role: 'tool', tool_call_id: id, content });
      }
    } else if (!isEmptyAnswer(message)) {
      const last = messages.at(-1);
      const fields = assistantFields(message);
      if (last?.role === 'assistant' && !last.tool_calls) {
        fields.content = `${last.content}\n\n${fields.content}`;
        messages.pop();
      }
      messages.push(fields);
    }
  });
  return messages;
}

function isEmptyAnswer({ role, content, calls }) {
  return role === 'assistant' && content === '' && calls.length === 0;
}

// Adds a piece of a streamed answer to its message.
export function addDelta(message, { content, reasoning_content: reasoning, tool_calls: calls }) {
  message.content += content ?? '';
  message.reasoning += reasoning ?? '';
  for (const { index, id, function: piece } of calls ?? []) {
    message.calls[index] ??= { id: '', name: '', arguments: '' };
    const call = message.calls[index];
    call.id ||= id ?? '';
    call.name += piece?.name ?? '';
    call.arguments += piece?.arguments ?? '';
  }
}

// Returns a JSON text with line breaks and indents, and other texts as they are. Unlike
// JSON.stringify(JSON.parse(text)), it keeps the digits of large numbers.
export function indented(text) {
  if (parsed(text) === undefined) return text;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  const opens = (token) => token === '{' || token === '[';
  const closes = (token) => token === '}' || token === ']';
  let depth = 0;
  let out = '';
  tokens.forEach((token, i) => {
    if (closes(token)) --depth;
    const before = tokens[i - 1];
    const beginsLine = closes(token) ? !opens(before) : opens(before) || before === ',';
    if (beginsLine) out += `\n${'  '.repeat(Math.min(depth, kMaxIndent))}`;
    out += token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
    if (token === ':') out += ' ';
    if (opens(token)) ++depth;
  });
  return out;
}

// Returns why a text cannot be the request's list of tools, or ''.
export function toolsError(text) {
  if (text.trim() === '') return '';
  const tools = parsed(text);
  if (tools === undefined) return 'The tools are not valid JSON.';
  if (!Array.isArray(tools)) return 'The tools must be a JSON array, as in OpenAI\'s API.';
  const bad = tools.findIndex((tool) => typeof tool?.function?.name !== 'string');
  return bad < 0 ? '' : `Tool ${bad + 1} has no "function" with a "name".`;
}

// Returns the stop texts, one per line, in which \n, \t and \\ stand for a line break, a tab and a
// backslash.
export function stopTexts(text) {
  const characters = { n: '\n', t: '\t', '\\': '\\' };
  return text.split('\n').filter((line) => line !== '')
    .map((line) => line.replace(/\\([nt\\])/g, (_, letter) => characters[letter]));
}

// Returns the settings as fields of a request. Omits empty ones, so that the model's defaults
// apply.
export function settingFields(settings) {
  const fields = {};
  for (const name of kNumbers) {
    if (settings[name]) fields[name] = Number(settings[name]);
  }
  const stop = stopTexts(settings.stop ?? '');
  if (stop.length > 0) fields.stop = stop;
  const tools = parsed(settings.tools ?? '') ?? [];
  if (tools.length > 0) fields.tools = tools;
  return fields;
}

// Reading: stored and imported data may be damaged or hostile. Each function copies the fields that
// the page uses and replaces values of a wrong type.

const textOf = (value) => (typeof value === 'string' ? value : '');
const numberOf = (value) => (Number.isFinite(value) && value > 0 ? value : 0);
const listOf = (value, read) => (Array.isArray(value) ? value.filter(isObject).map(read) : []);
export const isId = (value) => typeof value === 'string' && /^[0-9a-z]{1,40}$/.test(value);

const kReaders = {
  user: ({ files }) => ({
    files: listOf(files, (file) => ({
      name: textOf(file.name), text: textOf(file.text), numTokens: numberOf(file.numTokens),
    })),
  }),
  assistant: ({ reasoning, calls, model, timing, note, error, leftOut }) => ({
    reasoning: textOf(reasoning),
    calls: listOf(calls, (call) => ({
      id: textOf(call.id), name: textOf(call.name), arguments: textOf(call.arguments),
    })),
    model: textOf(model),
    timing: {
      numTokens: numberOf(timing?.numTokens),
      contextTokens: numberOf(timing?.contextTokens),
      waitMs: numberOf(timing?.waitMs),
      streamMs: numberOf(timing?.streamMs),
      streamTokens: numberOf(timing?.streamTokens),
    },
    note: textOf(note),
    error: textOf(error),
    leftOut: numberOf(leftOut),
  }),
  tool: ({ results }) => ({
    results: listOf(results, (result) => ({
      id: textOf(result.id), name: textOf(result.name), content: textOf(result.content),
    })),
  }),
};

// Makes a message of `role` with these fields and the defaults of all others.
export function newMessage(role, parent, fields) {
  return { id: newId(), parent, role, content: '', ...kReaders[role](fields), ...fields };
}

// Returns null for a value that is not a message.
export function readMessage(value) {
  if (!isObject(value) || !isId(value.id) || !(value.parent === '' || isId(value.parent)) ||
      !Object.hasOwn(kReaders, textOf(value.role))) {
    return null;
  }
  const { id, parent, role } = value;
  return { id, parent, role, content: textOf(value.content), ...kReaders[role](value) };
}

export function readSettings(value) {
  return Object.fromEntries(kSettings.map((name) => [name, textOf(value?.[name])]));
}

// Returns the fields of a chat other than its id and messages, or null for a value of another kind.
export function readHead(value) {
  if (!isObject(value)) return null;
  return {
    title: textOf(value.title).trim() || 'Untitled',
    createdMs: numberOf(value.createdMs),
    updatedMs: numberOf(value.updatedMs),
    leaf: isId(value.leaf) ? value.leaf : '',
    settings: readSettings(value.settings),
  };
}

// Export and import

export function toJson(chats) {
  const values = chats.map((chat) => ({ ...chat, messages: [...chat.messages.values()] }));
  return `${JSON.stringify({ format: kFormat, version: kVersion, chats: values }, null, 1)}\n`;
}

function importedChat(value, at) {
  const head = readHead(value);
  if (!head || !Array.isArray(value.messages)) throw new Error(`${at} has no list of messages`);
  if (value.messages.length > kMaxImported) {
    throw new Error(`${at} has ${value.messages.length} messages, more than ${kMaxImported}`);
  }
  const messages = new Map();
  value.messages.forEach((one, i) => {
    const message = readMessage(one);
    if (!message) throw new Error(`message ${i + 1} of ${at} has no valid id, parent and role`);
    if (messages.has(message.id)) throw new Error(`${at} has two messages ${message.id}`);
    messages.set(message.id, message);
  });
  if (connected(messages).size < messages.size) {
    throw new Error(`${at} has a message whose parent is missing`);
  }
  // The chat may exist already, so the imported one is a copy.
  return { ...head, id: newId(), messages };
}

// Returns the chats of an exported file. Throws an Error whose message says why it is refused.
export function fromJson(text) {
  const value = parsed(text);
  if (value === undefined) throw new Error('it is not valid JSON');
  if (value?.format !== kFormat) throw new Error(`it has no "format": "${kFormat}"`);
  if (value.version !== kVersion) {
    throw new Error(`its version is ${JSON.stringify(value.version)}; this page reads ${kVersion}`);
  }
  if (!Array.isArray(value.chats)) throw new Error('it has no list of chats');
  return value.chats.map((chat, i) => importedChat(chat, `chat ${i + 1}`));
}

function markdownOf(message) {
  if (message.role === 'user') return ['## You', questionText(message)];
  if (message.role === 'tool') {
    return message.results.flatMap(({ name, content }) =>
      [`## Result of ${oneLine(name)}`, fenced(indented(content))]);
  }
  const { model, reasoning, content, calls, error } = message;
  return [
    `## ${oneLine(model) || 'Answer'}`,
    reasoning && `<details><summary>Reasoning</summary>\n\n${reasoning.trim()}\n\n</details>`,
    content,
    ...calls.flatMap(({ name, arguments: text }) =>
      [`Calls ${oneLine(name)}:`, fenced(indented(text), 'json')]),
    error && `> ${oneLine(error)}`,
  ];
}

// Returns the conversation that the page shows, without the other branches.
export function toMarkdown(chat) {
  const { system } = chat.settings;
  const parts = [`# ${oneLine(chat.title)}`, ...(system ? ['## System', system] : []),
    ...pathTo(chat.messages, chat.leaf).flatMap(markdownOf)];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

// Returns a file's name for the title of a chat.
export function fileNameOf(title, ending) {
  const words = title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['chat'];
  return `${[...words.join('-')].slice(0, kMaxTitle).join('')}.${ending}`;
}
