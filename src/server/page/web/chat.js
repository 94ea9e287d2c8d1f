// The page: the chat that it shows, the answers in progress, and the keys and buttons.
import { fetchModel, ServerError, streamChat } from './api.js';
import { Attachments } from './attachments.js';
import { ChatList } from './chat_list.js';
import { addDelta, childrenOf, fileNameOf, fromJson, newChat, newestLeaf, newMessage, parentOfNext,
  pathTo, requestMessages, settingFields, titleOf, toJson, toMarkdown } from './conversation.js';
import { announce, download, showNotice } from './dom.js';
import { fitHeight, isSendKey, messageView } from './message.js';
import { startPanel } from './panel.js';
import { reportSettings, settingsAreValid, showSettings, startSettings } from './settings.js';
import { ChatStore, kMaxChars, openStorage, parseKey } from './store.js';

const $ = (id) => document.getElementById(id);
const log = $('log');
const input = $('input');
const kNearEnd = 64; // pixels from the end within which the view follows new text
const kSheets = ['chats', 'side']; // beside the chat on wide screens, over it on narrow ones

const store = new ChatStore(openStorage());
let model = { id: '' };
let chat = newChat(store.defaults());
let views = []; // of the messages of the shown path
const jobs = new Map(); // the answer in progress of each chat, by the chat's id
const deleted = new Set(); // ids of chats that are deleted; further messages make them anew
let follows = true; // whether the view follows new text; false once the reader scrolls up

const list = new ChatList($('chat-list'), {
  open: (id) => {
    location.hash = id;
    showSheet('');
    input.focus();
  },
  rename: renameChat,
  remove: removeChat,
  exportMarkdown: (id) => exportChat(id, 'md', 'text/markdown', toMarkdown),
  exportJson: (id) => exportChat(id, 'json', 'application/json', (one) => toJson([one])),
});
const attachments = new Attachments($('files'), () => model.max_model_len ?? Infinity,
  () => input.focus());

// Showing

function scrollToEnd() {
  if (follows) log.scrollTop = log.scrollHeight;
}

const readerActions = {
  step,
  edit,
  sendResults,
  answer: ({ id }) => answerTo(id),
  regenerate: ({ parent }) => {
    input.focus(); // the pressed button is about to be removed
    answerTo(parent);
  },
};

// Shows the path to the chat's leaf. Keeps the views of messages that are shown already.
function showPath() {
  const children = childrenOf(chat.messages);
  const path = pathTo(chat.messages, chat.leaf);
  let same = 0;
  while (same < views.length && views[same].message === path[same]) ++same;
  for (const view of views.splice(same)) view.root.remove();
  for (const message of path.slice(same)) {
    const job = jobs.get(chat.id);
    const startMs = job?.message === message ? job.startMs : undefined;
    const view = messageView(message, readerActions, startMs);
    views.push(view);
    log.append(view.root);
  }
  for (const view of views) {
    const siblings = children.get(view.message.parent);
    view.versions.show(siblings.indexOf(view.message.id), siblings.length);
    view.setAnswerable(view === views.at(-1) && !jobs.has(chat.id));
  }
  $('welcome').hidden = path.length > 0;
  document.title = `${chat.title || model.id || 'Chat'} · Quire`;
  setWorking(jobs.has(chat.id));
  scrollToEnd();
}

function setWorking(isWorking) {
  $('send').hidden = isWorking;
  $('stop').hidden = !isWorking;
  if (!isWorking && document.activeElement === document.body) input.focus(); // Stop had the focus
}

function showList() {
  const chats = store.list();
  list.show(chats.map((one) => ({ ...one, isAnswering: jobs.has(one.id) })), chat.id);
  $('export-all').hidden = chats.length === 0;
  const used = Math.ceil(100 * store.usage());
  $('storage').textContent = store.problem() ||
    (chats.length > 0 ? `${used} % of this browser's storage` : '');
}

function showChat(next) {
  chat = next;
  chat.settings = showSettings(chat.settings);
  for (const view of views.splice(0)) view.root.remove();
  follows = true;
  showPath();
  showList();
}

// Returns the chat with its answer in progress, if there is one.
function chatOf(id) {
  if (id === chat.id) return chat;
  return jobs.get(id)?.chat ?? store.readChat(id);
}

// The address names the chat, so that it survives a reload and has a place in the history.
function showAddressed() {
  const id = location.hash.slice(1);
  if (id === chat.id) return;
  const found = id === '' ? newChat(store.defaults()) : chatOf(id);
  if (!found) {
    showNotice('There is no such chat in this browser.');
    history.replaceState(null, '', location.pathname);
  }
  showChat(found ?? newChat(store.defaults()));
  announce(found?.title ? `Chat ${found.title}` : 'New chat');
}

// Storing

// Stores the chat's head and these messages. A chat that was deleted is stored as a whole.
function save(one, messages = []) {
  const hadProblem = store.problem() !== '';
  store.save(one, deleted.delete(one.id) ? [...one.messages.values()] : messages);
  if (!hadProblem && store.problem() !== '') showNotice(store.problem());
  showList();
}

function addMessage(message) {
  chat.messages.set(message.id, message);
  chat.leaf = message.id;
  chat.updatedMs = Date.now();
}

function renameChat(id, title) {
  const one = chatOf(id);
  if (!one) return;
  one.title = title;
  save(one);
  if (one === chat) showPath();
}

function removeChat(id) {
  const head = store.readHead(id);
  if (!head) return showList(); // another tab has just deleted it
  const job = jobs.get(id);
  if (job) finish(job, 'stopped');
  const entries = store.remove(id);
  deleted.add(id);
  if (id === chat.id) startNewChat();
  showList();
  showNotice(`Deleted “${head.title}”.`, {
    label: 'Undo',
    run: () => {
      deleted.delete(id);
      store.restore(entries);
      showList();
      location.hash = id;
    },
  });
  document.querySelector('#notice button').focus();
}

function exportChat(id, ending, type, textOf) {
  const one = chatOf(id);
  if (one) download(fileNameOf(one.title, ending), type, textOf(one));
}

async function importFile(file) {
  try {
    if (file.size > 4 * kMaxChars) throw new Error('it is larger than the storage for chats');
    const chats = fromJson(await file.text());
    for (const one of chats) store.save(one, [...one.messages.values()]);
    showNotice([`Imported ${chats.length} ${chats.length === 1 ? 'chat' : 'chats'}.`,
      store.problem()].filter(Boolean).join(' '));
  } catch (error) {
    showNotice(`${file.name} was not imported: ${error.message}.`);
  }
  showList();
}

// Takes over what another tab has stored.
function onStorage({ key, newValue }) {
  store.refresh();
  const entry = key === null ? { chatId: chat.id, messageId: '' } : parseKey(key); // null: cleared
  const one = entry && chatInMemory(entry.chatId);
  if (one && entry.messageId === '') takeHead(one, newValue === null);
  if (one && entry.messageId !== '' && newValue !== null) takeMessage(one, entry.messageId);
  if (one === chat) showPath();
  showList();
}

function chatInMemory(id) {
  return id === chat.id ? chat : jobs.get(id)?.chat;
}

function takeHead(one, isRemoved) {
  if (!isRemoved) {
    deleted.delete(one.id);
    one.title = store.readHead(one.id)?.title ?? one.title;
  } else if (one.messages.size > 0) {
    deleted.add(one.id);
    const job = jobs.get(one.id);
    if (job) finish(job, 'stopped');
    if (one !== chat) return;
    showNotice('This chat was deleted in another tab. It is kept if you continue it.');
  }
}

function takeMessage(one, id) {
  const message = store.readMessage(one.id, id);
  if (!message || one.messages.has(id)) return;
  if (message.parent !== '' && !one.messages.has(message.parent)) return;
  one.messages.set(id, message);
  if (message.parent === one.leaf && !jobs.has(one.id)) one.leaf = id;
}

// Answering

function noteOf(finishReason) {
  return finishReason === 'length' ? 'cut off at the limit of tokens' : '';
}

// Fills the job's message from the server; returns why the answer ended.
async function receive(job, fields) {
  const { message, startMs } = job;
  const { timing } = message;
  let finishReason = '';
  for await (const chunk of streamChat(fields, job.controller.signal)) {
    if (job.isDone) break;
    timing.numTokens = chunk.usage?.completion_tokens ?? timing.numTokens;
    const choice = chunk.choices?.[0];
    if (!choice) continue;
    finishReason = choice.finish_reason ?? finishReason;
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
    if (!content && !reasoning && !calls) continue;
    const elapsedMs = performance.now() - startMs;
    timing.waitMs ||= elapsedMs;
    timing.streamMs = elapsedMs - timing.waitMs;
    addDelta(message, choice.delta);
    viewOf(message)?.changed();
  }
  return finishReason;
}

function viewOf(message) {
  return views.find((view) => view.message === message);
}

// Ends an answer in progress and stores it.
function finish(job, note) {
  if (job.isDone) return;
  job.isDone = true;
  job.controller.abort();
  jobs.delete(job.chat.id);
  job.message.note = note;
  viewOf(job.message)?.finish();
  if (!deleted.has(job.chat.id)) save(job.chat, [job.message]);
  if (job.chat === chat) showPath();
}

async function run(job) {
  const { message } = job;
  const path = pathTo(job.chat.messages, message.id).slice(0, -1);
  const { settings } = job.chat;
  try {
    const finishReason = await receive(job, {
      model: model.id,
      messages: requestMessages(path, settings.system),
      ...settingFields(settings),
    });
    if (job.isDone) return;
    announce('Answer complete');
    finish(job, noteOf(finishReason));
  } catch (error) {
    if (job.isDone) return;
    const isServers = error instanceof ServerError;
    if (!isServers) console.error(error);
    message.error = isServers ? error.message : 'The page failed; see its console.';
    finish(job, '');
  }
}

// Returns whether the settings are valid; otherwise shows the error in their form.
function checkSettings() {
  if (settingsAreValid()) return true;
  if ($('side-toggle').checkVisibility()) showSheet('side');
  reportSettings();
  return false;
}

// Begins an answer to the message `parent`, which is a question or has the results of tools.
function answerTo(parent) {
  if (!checkSettings()) return;
  stop('');
  const message = newMessage('assistant', parent, { model: model.id });
  const job = { chat, message, startMs: performance.now(), controller: new AbortController(),
    isDone: false };
  addMessage(message);
  jobs.set(chat.id, job);
  follows = true;
  showPath();
  showList();
  announce('Answering');
  run(job);
}

// Adds a question, or results of tools, and begins its answer. Returns whether the settings allow
// that.
function ask(message) {
  if (!checkSettings()) return false;
  stop('');
  if (chat.messages.size === 0) {
    chat.title ||= titleOf(message);
    chat.createdMs = Date.now();
    history.pushState(null, '', `#${chat.id}`);
  }
  addMessage(message);
  save(chat, [message]);
  input.focus();
  answerTo(message.id);
  return true;
}

function send() {
  const content = input.value.trim();
  if (jobs.has(chat.id) || (content === '' && attachments.isEmpty)) return;
  if (attachments.isReading) return showNotice('A file is still being read.');
  if (!checkSettings()) return;
  const parent = parentOfNext(pathTo(chat.messages, chat.leaf));
  ask(newMessage('user', parent, { content, files: attachments.take() }));
  input.value = '';
  fitHeight(input);
}

function edit(message, content) {
  return ask(newMessage('user', message.parent, { content, files: message.files }));
}

function sendResults(message, results) {
  ask(newMessage('tool', message.id, { results }));
}

// Selects the version of a message before or after the shown one.
function step(message, by) {
  const siblings = childrenOf(chat.messages).get(message.parent);
  const id = siblings[siblings.indexOf(message.id) + by];
  chat.leaf = newestLeaf(chat.messages, id);
  follows = false;
  showPath();
  if (!deleted.has(chat.id)) save(chat);
  views.find((view) => view.message.id === id).versions.focus(by);
}

function stop(announcement = 'Stopped') {
  const job = jobs.get(chat.id);
  if (!job) return;
  finish(job, 'stopped');
  if (announcement) announce(announcement);
}

function startNewChat() {
  history.pushState(null, '', location.pathname);
  showAddressed();
  input.focus();
}

// Sheets, keys and buttons

// Shows one sheet, or none for ''.
function showSheet(shown) {
  for (const id of kSheets) {
    $(id).classList.toggle('shown', id === shown);
    $(`${id}-toggle`).setAttribute('aria-expanded', String(id === shown));
  }
  if (shown) $(shown).focus();
}

function shownSheet() {
  return kSheets.find((id) => $(id).classList.contains('shown'));
}

function onKey(event) {
  if (event.key !== 'Escape') return;
  if (jobs.has(chat.id)) return stop();
  const sheet = shownSheet();
  if (!sheet) return;
  showSheet('');
  $(`${sheet}-toggle`).focus();
}

function startFiles() {
  const composer = $('composer');
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files');
  $('attach').addEventListener('click', () => $('file-input').click());
  $('file-input').addEventListener('change', (event) => {
    attachments.add(event.target.files);
    event.target.value = ''; // so that the same file can be chosen again
    input.focus();
  });
  // A file can be dropped anywhere: beside the field, the browser would leave the page for it.
  document.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    composer.classList.add('dropping');
  });
  document.addEventListener('dragleave', () => composer.classList.remove('dropping'));
  document.addEventListener('drop', (event) => {
    composer.classList.remove('dropping');
    if (!hasFiles(event)) return;
    event.preventDefault();
    attachments.add(event.dataTransfer.files);
    input.focus();
  });
  input.addEventListener('paste', (event) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    attachments.add(event.clipboardData.files);
  });
}

function startChats() {
  $('new-chat').addEventListener('click', () => {
    showSheet('');
    startNewChat();
  });
  $('import').addEventListener('click', () => $('import-input').click());
  $('import-input').addEventListener('change', async (event) => {
    const [file] = event.target.files;
    if (file) await importFile(file);
    event.target.value = '';
  });
  $('export-all').addEventListener('click', () => {
    const chats = store.list().map(({ id }) => chatOf(id));
    download(`quire-chats-${new Date().toISOString().slice(0, 10)}.json`, 'application/json',
      toJson(chats));
  });
  window.addEventListener('hashchange', showAddressed);
  window.addEventListener('storage', onStorage);
  window.addEventListener('pagehide', () => {
    for (const job of [...jobs.values()]) finish(job, 'stopped when the page was closed');
  });
}

async function showModel() {
  try {
    model = await fetchModel();
    $('model').textContent = model.id;
    const context = model.max_model_len;
    $('context').textContent = context ? `${context.toLocaleString('en')} tokens of context` : '';
    // The example questions suit the embedded model.
    $('examples').hidden = model.root !== $('examples').dataset.model;
  } catch (error) {
    $('model').textContent = error.message;
  }
  showPath(); // the title names the model
}

function start() {
  startSettings((settings) => {
    chat.settings = settings;
    store.setDefaults(settings);
    if (chat.messages.size > 0 && !deleted.has(chat.id)) save(chat);
  });
  startPanel();
  startFiles();
  startChats();
  showModel();
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', () => {
    input.focus();
    stop();
  });
  for (const id of kSheets) {
    $(`${id}-toggle`).addEventListener('click', () => showSheet(shownSheet() === id ? '' : id));
  }
  $('examples').addEventListener('click', (event) => {
    if (event.target.nodeName !== 'BUTTON' || jobs.has(chat.id)) return;
    input.value = event.target.textContent.trim();
    send();
  });
  input.addEventListener('input', () => fitHeight(input));
  input.addEventListener('keydown', (event) => {
    if (!isSendKey(event)) return;
    event.preventDefault();
    send();
  });
  document.addEventListener('keydown', onKey);
  log.addEventListener('grow', scrollToEnd);
  log.addEventListener('scroll', () => {
    follows = log.scrollHeight - log.scrollTop - log.clientHeight < kNearEnd;
  });
  showChat(chat);
  if (location.hash !== '') showAddressed();
  if (store.problem()) showNotice(store.problem());
  input.focus();
}

start();
