// Stores chats in the browser's local storage. One entry has the title, the settings and the
// selected leaf of a chat, and one entry has each message. Two tabs that write at the same time add
// entries and do not overwrite one another's, unless both continue the same answer.
import { connected, isId, kSettings, readHead, readMessage, readSettings } from './conversation.js';

const kHead = 'quire.chat.'; // and the chat's id
const kMessage = 'quire.message.'; // and the chat's id, a dot and the message's id
const kDefaults = 'quire.settings'; // with which a new chat begins
// Characters of all keys and values. Browsers allow about 5 million.
export const kMaxChars = 4_500_000;

const messageKey = (chatId, id) => `${kMessage}${chatId}.${id}`;

// Returns the browser's storage, or null if it is refused, as some private windows do.
export function openStorage() {
  try {
    const storage = window.localStorage;
    storage.getItem(kDefaults);
    return storage;
  } catch {
    return null;
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // another program's entry, or a damaged one
  }
}

// Returns { chatId, messageId } for the key of a chat's entry, or null. The messageId of a head
// is ''.
export function parseKey(key) {
  const isHead = key?.startsWith(kHead);
  if (!isHead && !key?.startsWith(kMessage)) return null;
  const [chatId, messageId = ''] = key.slice(isHead ? kHead.length : kMessage.length).split('.');
  const isValid = isId(chatId) && (isHead ? messageId === '' : isId(messageId));
  return isValid ? { chatId, messageId } : null;
}

// Returns the text of a message that a search looks through.
function textOf(message) {
  const files = message?.files ?? [];
  return [message?.content, ...files.flatMap(({ name, text }) => [name, text])].join('\n');
}

export class ChatStore {
  #storage;
  #maxChars;
  // Entries that the storage could not take, which last until the page is closed. They are written
  // once there is space.
  #unsaved = new Map();
  #used = null; // characters in the storage; null: to be counted

  // `storage` has the interface of localStorage, or is null.
  constructor(storage, maxChars = kMaxChars) {
    this.#storage = storage;
    this.#maxChars = maxChars;
  }

  #keys() {
    const keys = this.#storage ? Object.keys(this.#storage) : [];
    return [...new Set([...keys, ...this.#unsaved.keys()])];
  }

  #get(key) {
    return this.#unsaved.get(key) ?? this.#storage?.getItem(key) ?? null;
  }

  #keysOf(chatId) {
    return this.#keys().filter((key) => parseKey(key)?.chatId === chatId);
  }

  // Returns the used share of the space.
  usage() {
    return this.#usedChars() / this.#maxChars;
  }

  // Takes over that another tab has changed the storage, which may have made space.
  refresh() {
    this.#used = null;
    this.#write([...this.#unsaved]);
  }

  #usedChars() {
    this.#used ??= Object.keys(this.#storage ?? {})
      .reduce((sum, key) => sum + key.length + this.#storage.getItem(key).length, 0);
    return this.#used;
  }

  #write(entries) {
    for (const [key, text] of entries) {
      const old = this.#storage?.getItem(key) ?? null;
      const more = text.length + (old === null ? key.length : -old.length);
      const used = this.#usedChars() + more;
      try {
        if (more > 0 && used > this.#maxChars) throw new Error('full');
        this.#storage.setItem(key, text);
        this.#unsaved.delete(key);
        this.#used = used;
      } catch {
        this.#unsaved.set(key, text); // problem() says why
      }
    }
  }

  // Returns why some chats are not stored, or ''.
  problem() {
    if (!this.#storage) return 'This browser refuses storage: chats last until the page is closed.';
    if (this.#unsaved.size === 0) return '';
    return 'The browser\'s storage is full: new messages last until the page is closed. ' +
      'Export or delete older chats.';
  }

  // Returns { id, title, updatedMs, isSaved } of each chat, the last changed first.
  list() {
    const unsaved = new Set([...this.#unsaved.keys()].map((key) => parseKey(key)?.chatId));
    return this.#keys().flatMap((key) => {
      const { chatId: id, messageId } = parseKey(key) ?? {};
      const head = messageId === '' ? this.readHead(id) : null;
      return head ? [{ id, ...head, isSaved: !unsaved.has(id) }] : [];
    }).sort((a, b) => b.updatedMs - a.updatedMs || (a.id < b.id ? 1 : -1));
  }

  // Returns null if there is no such chat.
  readChat(id) {
    const head = this.readHead(id);
    if (!head) return null;
    const messages = new Map();
    for (const key of this.#keysOf(id)) {
      const message = this.#readMessage(key);
      if (message) messages.set(message.id, message);
    }
    return { id, ...head, messages: connected(messages) };
  }

  readHead(id) {
    return readHead(parse(this.#get(kHead + id)));
  }

  readMessage(chatId, messageId) {
    return this.#readMessage(messageKey(chatId, messageId));
  }

  #readMessage(key) {
    const message = readMessage(parse(this.#get(key)));
    return message && message.id === parseKey(key).messageId ? message : null;
  }

  // Stores the chat's head and these of its messages.
  save(chat, messages = []) {
    const { id, title, createdMs, updatedMs, leaf, settings } = chat;
    this.#write([
      [kHead + id, JSON.stringify({ title, createdMs, updatedMs, leaf, settings })],
      ...messages.map((message) => [messageKey(id, message.id), JSON.stringify(message)]),
    ]);
  }

  #removeKeys(keys) {
    for (const key of keys) {
      this.#storage?.removeItem(key);
      this.#unsaved.delete(key);
    }
    this.refresh();
  }

  removeMessages(chatId, messages) {
    this.#removeKeys(messages.map(({ id }) => messageKey(chatId, id)));
  }

  // Removes a chat and returns its entries, for restore(). The head is removed first, so that other
  // tabs see that the whole chat is deleted and not some of its messages.
  remove(id) {
    const keys = [kHead + id, ...this.#keysOf(id).filter((key) => key !== kHead + id)];
    const entries = keys.map((key) => [key, this.#get(key)]);
    this.#removeKeys(keys);
    return entries;
  }

  // Returns the ids of the chats whose title, messages and files have all words of `wanted`.
  search(wanted) {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const missing = new Map(); // the words not found so far, by the chat's id
    for (const key of this.#keys()) {
      const { chatId, messageId } = parseKey(key) ?? {};
      if (chatId === undefined) continue;
      const text = messageId === '' ? this.readHead(chatId)?.title : textOf(this.#readMessage(key));
      const lower = (text ?? '').toLowerCase();
      missing.set(chatId, (missing.get(chatId) ?? words).filter((word) => !lower.includes(word)));
    }
    return new Set([...missing].filter(([, left]) => left.length === 0).map(([id]) => id));
  }

  restore(entries) {
    this.#write(entries);
  }

  defaults() {
    return readSettings(parse(this.#get(kDefaults)));
  }

  setDefaults(settings) {
    const kept = Object.fromEntries(kSettings.map((name) => [name, settings[name]]));
    this.#write([[kDefaults, JSON.stringify(kept)]]);
  }
}
