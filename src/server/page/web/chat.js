// The page: the chat that it shows, the answers in progress, and the keys and buttons.
import { messageView } from './answer.js';
import { receive } from './answering.js';
import { countTokens, ServerError } from './api.js';
import { Attachments, startFiles } from './attachments.js';
import { ChatList } from './chat_list.js';
import { showContext } from './context.js';
import { childrenOf, deleteMessage, fileNameOf, fromJson, newChat, newestLeaf, newMessage,
  parentOfNext, pathTo, titleOf, toJson, toMarkdown } from './conversation.js';
import { announce, clearNotice, download, showNotice } from './dom.js';
import { startKey } from './key.js';
import { fitHeight, isSendKey } from './message.js';
import { Models } from './models.js';
import { startPanel } from './panel.js';
import { reportSettings, settingsAreValid, showDefaults, showSettings,
  startSettings } from './settings.js';
import { closeSheet, showSheet, startSheets } from './sheets.js';
import { ChatStore, kMaxChars, openStorage, parseKey } from './store.js';

const $ = (id) => document.getElementById(id);
const log = $('log');
const input = $('input');
const kNearEnd = 64; // pixels from the end within which the view follows new text

const store = new ChatStore(openStorage());
let chat = newChat(store.defaults());
let views = []; // of the messages of the shown path
const jobs = new Map(); // the answer in progress of each chat, by the chat's id
const deleted = new Set(); // ids of deleted chats; save() stores such a chat as a whole again
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
const models = new Models(showModel, chooseModel);
const attachments = new Attachments($('files'), () => models.contextTokens || Infinity,
  (text) => countTokens({ model: models.current.id, prompt: text, add_special_tokens: false }),
  () => input.focus());

// Showing

function scrollToEnd() {
  if (follows) log.scrollTop = log.scrollHeight;
}

const readerActions = {
  step,
  edit,
  editAnswer,
  sendResults,
  remove: removeMessage,
  goOn: continueAnswer,
  isLoading: ({ model }) => models.stateOf(model) !== 'loaded',
  answer: ({ id }) => answerTo(id),
  regenerate: ({ parent }) => {
    input.focus(); // the pressed button is about to be removed
    answerTo(parent);
  },
};

function removeViews(from) {
  for (const view of views.splice(from)) view.root.remove();
}

// Makes showPath() draw a message again, because it has changed.
function redraw(message) {
  const index = views.findIndex((view) => view.message === message);
  if (index >= 0) removeViews(index);
}

// Shows the path to the chat's leaf. Keeps the views of messages that are shown already.
function showPath() {
  const children = childrenOf(chat.messages);
  const path = pathTo(chat.messages, chat.leaf);
  let same = 0;
  while (same < views.length && views[same].message === path[same]) ++same;
  removeViews(same);
  for (const message of path.slice(same)) {
    const job = jobs.get(chat.id);
    const startMs = job?.message === message ? job.startMs : undefined;
    const view = messageView(message, readerActions, startMs);
    views.push(view);
    log.append(view.root);
  }
  let before = ''; // the model of the last answer
  for (const view of views) {
    view.setModelBefore?.(before);
    before = view.message.model || before;
    const siblings = children.get(view.message.parent);
    view.versions.show(siblings.indexOf(view.message.id), siblings.length);
    view.setAnswerable(view === views.at(-1) && !jobs.has(chat.id));
  }
  models.want(chat.settings.model || before);
  $('welcome').hidden = path.length > 0;
  showModel();
  setWorking(jobs.has(chat.id));
  scrollToEnd();
}

// Shows what depends on the current model.
function showModel() {
  document.title = `${chat.title || models.current.id || 'Chat'} · Quire`;
  showContext(pathTo(chat.messages, chat.leaf), models.contextTokens);
  showDefaults((name) => models.defaultOf(name));
}

function setWorking(isWorking) {
  $('send').hidden = isWorking;
  $('stop').hidden = !isWorking;
  if (!isWorking && document.activeElement === document.body) input.focus(); // Stop had the focus
}

function showList() {
  const chats = store.list();
  const wanted = $('search').value.trim();
  const found = wanted === '' ? null : store.search(wanted);
  const shown = chats.filter(({ id }) => !found || found.has(id));
  list.show(shown.map((one) => ({ ...one, isAnswering: jobs.has(one.id) })), chat.id);
  $('search').hidden = chats.length === 0;
  $('none-found').hidden = chats.length === 0 || shown.length > 0;
  $('export-all').hidden = chats.length === 0;
  const used = Math.ceil(100 * store.usage());
  $('storage').textContent = store.problem() ||
    (chats.length > 0 ? `${used} % of this browser's storage` : '');
}

function showChat(next) {
  chat = next;
  takeSettings(showSettings(chat.settings));
  clearNotice();
  removeViews(0);
  follows = true;
  showPath();
  showList();
}

// Takes over the form's settings, which are all but the model.
function takeSettings(settings) {
  chat.settings = { model: chat.settings.model, ...settings };
}

function storeSettings() {
  store.setDefaults(chat.settings);
  if (chat.messages.size > 0 && !deleted.has(chat.id)) save(chat);
}

function chooseModel(id) {
  chat.settings.model = id;
  models.want(id);
  storeSettings();
  showModel();
  input.focus();
}

// Returns the chat with its answer in progress, if there is one.
function chatOf(id) {
  if (id === chat.id) return chat;
  return jobs.get(id)?.chat ?? store.readChat(id);
}

// Shows the chat that the address names, so that the chat survives a reload and has a place in the
// history.
function showAddressed() {
  const id = location.hash.slice(1);
  if (id === chat.id) return;
  const found = id === '' ? newChat(store.defaults()) : chatOf(id);
  if (!found) history.replaceState(null, '', location.pathname);
  showChat(found ?? newChat(store.defaults()));
  if (!found) showNotice('There is no such chat in this browser.');
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

// Deletes a message of the shown chat; the messages after it stay.
function removeMessage({ id, parent }) {
  const { deleted: gone, moved } = deleteMessage(chat.messages, id);
  const owner = chat.id;
  const { leaf } = chat;
  if (!chat.messages.has(leaf)) chat.leaf = newestLeaf(chat.messages, parent);
  showPath();
  if (!deleted.has(owner)) {
    save(chat, moved.map(([message]) => message));
    store.removeMessages(owner, gone);
  }
  const run = () => restoreMessages(owner, gone, moved, leaf);
  showNotice('Deleted a message.', { label: 'Undo', run });
  document.querySelector('#notice button').focus();
}

function restoreMessages(chatId, gone, moved, leaf) {
  const one = chatOf(chatId);
  if (!one) return;
  for (const message of gone) one.messages.set(message.id, message);
  const children = moved.flatMap(([{ id }, parent]) => {
    const child = one.messages.get(id);
    if (child) child.parent = parent;
    return child ?? [];
  });
  one.leaf = leaf;
  save(one, [...gone, ...children]);
  if (one === chat) showPath();
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
  if (one && entry.messageId !== '') {
    if (newValue === null) dropMessage(one, entry.messageId);
    else takeMessage(one, entry.messageId);
  }
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
  const known = one.messages.get(id);
  if (!message || (known && jobs.get(one.id)?.message === known)) return;
  if (message.parent !== '' && !one.messages.has(message.parent)) return;
  if (known) { // was continued, or follows another message now
    Object.assign(known, message);
    redraw(known);
    return;
  }
  one.messages.set(id, message);
  if (message.parent === one.leaf && !jobs.has(one.id)) one.leaf = id;
}

// Applies another tab's deletion of a message, unless that tab has deleted the whole chat.
function dropMessage(one, id) {
  if (deleted.has(one.id) || !store.readHead(one.id) || jobs.get(one.id)?.message.id === id) return;
  const parent = one.messages.get(id)?.parent;
  if (parent === undefined) return;
  deleteMessage(one.messages, id);
  if (!one.messages.has(one.leaf)) one.leaf = newestLeaf(one.messages, parent);
}

// Answering

function noteOf(finishReason) {
  return finishReason === 'length' ? 'cut off at the limit of tokens' : '';
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
  const path = pathTo(job.chat.messages, message.id);
  if (!job.continues) path.pop();
  try {
    if (models.current.id === '') await models.refresh(); // the server was away
    const { contextTokens, current: { id: model } } = models;
    const finishReason = await receive(job, path, { model, contextTokens },
      () => viewOf(message)?.changed());
    if (job.isDone) return;
    announce('Answer complete');
    finish(job, noteOf(finishReason));
    if (models.stateOf(model) !== 'loaded') models.refresh(); // it is loaded now, and has limits
  } catch (error) {
    if (job.isDone) return;
    const isServers = error instanceof ServerError;
    if (!isServers) console.error(error);
    message.error = isServers ? error.message : 'The page failed; see its console.';
    finish(job, '');
    models.refresh(); // the server may serve another model now
  }
}

// Returns whether the settings are valid; otherwise shows the error in their form.
function checkSettings() {
  if (settingsAreValid()) return true;
  if ($('side-toggle').checkVisibility()) showSheet('side');
  reportSettings();
  return false;
}

// Begins to receive a message of the shown chat; continues the text that it has if `continues`.
function begin(message, continues) {
  const siblings = childrenOf(chat.messages).get(message.parent);
  const job = { chat, message, continues, isAnotherTry: siblings.length > 1,
    startMs: performance.now(), controller: new AbortController(), isDone: false };
  jobs.set(chat.id, job);
  follows = true;
  showPath();
  showList();
  announce('Answering');
  models.follow(() => jobs.size > 0);
  run(job);
}

// Begins an answer to the message `parent`, which is a question or has the results of tools.
function answerTo(parent) {
  if (!checkSettings()) return;
  stop('');
  const message = newMessage('assistant', parent, { model: models.current.id });
  addMessage(message);
  begin(message, false);
}

// Lets the model continue an answer that was cut or edited.
function continueAnswer(message) {
  if (!checkSettings()) return;
  stop('');
  message.note = message.error = '';
  redraw(message);
  input.focus(); // the pressed button is gone
  begin(message, true);
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
  clearNotice();
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

// An edited answer is another version, with which the conversation can go on.
function editAnswer({ parent, reasoning, model }, content) {
  stop('');
  const message = newMessage('assistant', parent, { content, reasoning, model, note: 'edited' });
  addMessage(message);
  save(chat, [message]);
  showPath();
  input.focus();
  return true;
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

// Keys and buttons

// Escape closes one thing: the actions of a chat, the answer in progress, or a sheet.
function onKey(event) {
  if (event.key !== 'Escape' || list.closeActions()) return;
  if (jobs.has(chat.id)) return stop();
  closeSheet();
}

function startSearch() {
  $('search').addEventListener('input', showList);
  $('search').addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || $('search').value === '') return;
    event.stopPropagation();
    event.preventDefault();
    $('search').value = '';
    showList();
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

function start() {
  startSettings((settings) => {
    takeSettings(settings);
    storeSettings();
  });
  startKey(() => {
    models.refresh();
    restartPanel();
    input.focus();
  });
  const restartPanel = startPanel(() => models.refresh());
  startFiles(attachments, input);
  startSheets();
  startSearch();
  startChats();
  models.refresh();
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', () => {
    input.focus();
    stop();
  });
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
