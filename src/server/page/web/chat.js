// The conversation: its messages, the response in progress, and the keys and buttons.
import { fetchModel, ServerError, streamChat } from './api.js';
import { announce } from './dom.js';
import { AnswerView, questionView } from './message.js';
import { startPanel } from './panel.js';
import { samplingFields, settingsAreValid, startSettings, systemPrompt } from './settings.js';

const $ = (id) => document.getElementById(id);
const log = $('log');
const input = $('input');
const kNearEnd = 64; // pixels from the end within which the view follows new text

let model = { id: '' };
let turns = []; // { question, answer, view }; answer is '' if there is none yet, or if it failed
let abort = null; // aborts the response in progress

// Returns the messages for the model. Omits a question without an answer once there is a later
// question, because many templates require alternating roles.
export function requestMessages(allTurns, system) {
  const messages = system ? [{ role: 'system', content: system }] : [];
  allTurns.forEach(({ question, answer }, i) => {
    const isLast = i === allTurns.length - 1;
    if (!isLast && answer === '') return;
    messages.push({ role: 'user', content: question });
    if (!isLast) messages.push({ role: 'assistant', content: answer });
  });
  return messages;
}

let follows = true; // whether the view follows new text; false once the reader scrolls up

function scrollToEnd() {
  if (follows) log.scrollTop = log.scrollHeight;
}

function setWorking(isWorking) {
  $('send').hidden = isWorking;
  $('stop').hidden = !isWorking;
  if (!isWorking && document.activeElement === document.body) input.focus(); // Stop had the focus
}

function noteOf(finishReason) {
  return finishReason === 'length' ? 'cut off at the limit of tokens' : '';
}

// Fills `view` from the server; returns why the answer ended.
async function receive(view, timing, signal) {
  const messages = requestMessages(turns, systemPrompt());
  let finishReason = '';
  for await (const chunk of streamChat({ model: model.id, messages, ...samplingFields() }, signal)) {
    timing.numTokens = chunk.usage?.completion_tokens ?? timing.numTokens;
    const choice = chunk.choices?.[0];
    if (!choice) continue;
    finishReason = choice.finish_reason ?? finishReason;
    const { content, reasoning_content: reasoning } = choice.delta;
    if (!content && !reasoning) continue;
    timing.lastMs = performance.now();
    timing.firstMs ||= timing.lastMs;
    view.add(choice.delta);
  }
  return finishReason;
}

async function answerLast() {
  const turn = turns.at(-1);
  const view = new AnswerView(model.id, regenerate);
  const timing = { numTokens: 0, startMs: performance.now(), firstMs: 0, lastMs: 0 };
  const own = new AbortController();
  turn.view = view;
  turn.answer = '';
  abort = own;
  follows = true;
  log.append(view.root);
  scrollToEnd();
  setWorking(true);
  announce('Answering');
  let note = '';
  try {
    note = noteOf(await receive(view, timing, own.signal));
    announce('Answer complete');
  } catch (error) {
    if (error.name === 'AbortError') {
      note = 'stopped';
      announce('Stopped');
    } else {
      if (!(error instanceof ServerError)) console.error(error);
      view.fail(error instanceof ServerError ? error.message : 'The page failed; see its console.');
    }
  }
  view.finish(timing, note);
  turn.answer = view.content;
  // A new conversation may have started meanwhile.
  if (abort !== own) return;
  abort = null;
  setWorking(false);
}

function send() {
  const question = input.value.trim();
  if (question === '' || abort || !settingsAreValid()) return;
  $('welcome').hidden = true;
  turns.at(-1)?.view.freeze();
  turns.push({ question, answer: '', view: null });
  log.append(questionView(question));
  input.value = '';
  fitInput();
  input.focus(); // the pressed button is about to be removed
  answerLast();
}

function regenerate() {
  if (abort || !settingsAreValid()) return;
  turns.at(-1).view.root.remove();
  input.focus();
  answerLast();
}

function stop() {
  abort?.abort();
}

function newChat() {
  stop();
  abort = null;
  turns = [];
  log.querySelectorAll('article').forEach((article) => article.remove());
  $('welcome').hidden = false;
  setWorking(false);
  input.focus();
  announce('New chat');
}

function fitInput() {
  input.style.height = 'auto';
  input.style.height = `${input.scrollHeight}px`;
}

function onInputKey(event) {
  // Ignores an Enter that only ends a word in an input method.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
}

function showSide(isShown) {
  $('side').classList.toggle('shown', isShown);
  $('side-toggle').setAttribute('aria-expanded', String(isShown));
  if (isShown) $('side').focus();
}

function onKey(event) {
  if (event.key !== 'Escape') return;
  if (abort) return stop();
  if (!$('side').classList.contains('shown')) return;
  showSide(false);
  $('side-toggle').focus();
}

async function showModel() {
  try {
    model = await fetchModel();
    $('model').textContent = model.id;
    const context = model.max_model_len;
    $('context').textContent = context ? `${context.toLocaleString('en')} tokens of context` : '';
    document.title = `${model.id} · Quire`;
    // The example questions suit the embedded model.
    $('examples').hidden = model.root !== $('examples').dataset.model;
  } catch (error) {
    $('model').textContent = error.message;
  }
}

function start() {
  startSettings();
  startPanel();
  showModel();
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', () => {
    input.focus();
    stop();
  });
  $('new-chat').addEventListener('click', newChat);
  $('side-toggle').addEventListener('click', () => {
    showSide($('side-toggle').getAttribute('aria-expanded') !== 'true');
  });
  $('examples').addEventListener('click', (event) => {
    if (event.target.nodeName !== 'BUTTON' || abort) return;
    input.value = event.target.textContent.trim();
    send();
  });
  input.addEventListener('input', fitInput);
  input.addEventListener('keydown', onInputKey);
  document.addEventListener('keydown', onKey);
  log.addEventListener('grow', scrollToEnd);
  log.addEventListener('scroll', () => {
    follows = log.scrollHeight - log.scrollTop - log.clientHeight < kNearEnd;
  });
  input.focus();
}

start();
