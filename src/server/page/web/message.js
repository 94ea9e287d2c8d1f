// Shows the messages of a chat; independent of where they come from. A view reports what its
// reader does to `on`, whose functions take the view's message first.
import { indented } from './conversation.js';
import { button, copyButton, element } from './dom.js';
import { MarkdownView } from './markdown.js';

const kTickMs = 100; // of the clock that runs until the first token

// A number and its unit stay on one line.
const kJoin = '\u00a0';

function seconds(ms) {
  return ms < 1000 ? `${Math.round(ms)}${kJoin}ms` : `${(ms / 1000).toFixed(1)}${kJoin}s`;
}

export function count(number, unit) {
  const plural = Math.round(number) === 1 ? unit : `${unit}s`;
  return `${Math.round(number).toLocaleString('en')}${kJoin}${plural}`;
}

// Returns "142 tokens · 96 tokens/s · first after 31 ms", without the parts that are unknown.
export function timingText({ numTokens, waitMs, streamMs }) {
  const parts = [];
  if (numTokens > 0) parts.push(count(numTokens, 'token'));
  if (numTokens > 1 && streamMs > 0) {
    parts.push(`${count((1000 * (numTokens - 1)) / streamMs, 'token')}/s`);
  }
  if (waitMs > 0) parts.push(`first after ${seconds(waitMs)}`);
  return parts.join(' · ');
}

// Shows "‹ 2/3 ›" if a message has several versions.
class VersionPicker {
  #back;
  #forth;
  #label = element('span', { role: 'img' });

  constructor(step) {
    this.#back = button('‹', () => step(-1), { 'aria-label': 'Earlier version' });
    this.#forth = button('›', () => step(1), { 'aria-label': 'Later version' });
    this.root = element('span', { className: 'versions', role: 'group', 'aria-label': 'Versions' },
      this.#back, this.#label, this.#forth);
    this.show(0, 1);
  }

  show(index, total) {
    this.root.hidden = total < 2;
    this.#label.textContent = `${index + 1}/${total}`;
    this.#label.setAttribute('aria-label', `Version ${index + 1} of ${total}`);
    this.#back.disabled = index === 0;
    this.#forth.disabled = index + 1 === total;
  }

  // Focuses the button of a step, or the other one if that step is not possible any more.
  focus(step) {
    const [wanted, other] = step < 0 ? [this.#back, this.#forth] : [this.#forth, this.#back];
    (wanted.disabled ? other : wanted).focus();
  }
}

class MessageView {
  constructor(message, on, className, label) {
    this.message = message;
    this.on = on;
    this.versions = new VersionPicker((step) => on.step(message, step));
    // Changes of a footer (a running clock, a button's "Copied") are not announced.
    this.footer = element('footer', { 'aria-live': 'off' }, this.versions.root);
    this.root = element('article', { className, 'aria-label': label });
  }
}

// Scrolls, by the keyboard too.
function textRegion(label, text) {
  return element('pre', { tabIndex: 0, role: 'region', 'aria-label': label }, text);
}

function foldedText(summary, label, text) {
  return element('details', { className: 'file' }, element('summary', {}, summary),
    textRegion(label, text));
}

function fileView({ name, text, numTokens }) {
  const size = numTokens > 0 ? ` · ${count(numTokens, 'token')}` : '';
  return foldedText(`${name}${size}`, `Text of ${name}`, text);
}

// The field grows with its text.
export function fitHeight(field) {
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`;
}

// Returns whether this key press sends a text. Ignores an Enter that only ends a word in an input
// method.
export function isSendKey(event) {
  return event.key === 'Enter' && !event.shiftKey && !event.isComposing;
}

export class QuestionView extends MessageView {
  #form = null;

  constructor(message, on) {
    super(message, on, 'question', 'You');
    this.text = element('p', { className: 'text', hidden: message.content === '' },
      message.content);
    this.edit = button('Edit', () => this.#openForm());
    this.answer = button('Answer', () => on.answer(message));
    this.footer.append(this.answer, this.edit);
    this.root.append(...message.files.map(fileView), this.text, this.footer);
    this.setAnswerable(false);
  }

  // Offers an answer if there is none, because the page was closed, for example.
  setAnswerable(isAnswerable) {
    this.answer.hidden = !isAnswerable;
  }

  #openForm() {
    const field = element('textarea', { 'aria-label': 'Edited message' });
    field.value = this.message.content;
    this.#form = element('form', { className: 'edit' }, field,
      button('Send', () => this.#submit(field.value), { className: 'primary' }),
      button('Cancel', () => this.#closeForm()));
    this.#form.addEventListener('submit', (event) => event.preventDefault());
    field.addEventListener('input', () => fitHeight(field));
    field.addEventListener('keydown', (event) => {
      if (!isSendKey(event) && event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation(); // so that Escape does not stop an answer too
      if (event.key === 'Escape') return this.#closeForm();
      this.#submit(field.value);
    });
    this.text.hidden = this.footer.hidden = true;
    this.root.append(this.#form);
    fitHeight(field);
    field.focus();
  }

  #submit(text) {
    if (text.trim() === '' && this.message.files.length === 0) return;
    if (this.on.edit(this.message, text.trim())) this.#closeForm();
  }

  #closeForm() {
    this.#form.remove();
    this.text.hidden = this.message.content === '';
    this.footer.hidden = false;
    if (this.root.isConnected) this.edit.focus();
  }
}

function callView(call) {
  return element('figure', { className: 'call' },
    element('figcaption', {}, 'Calls ', element('code', {}, call.name)),
    textRegion(`Arguments of ${call.name}`, indented(call.arguments)));
}

// Asks for the results of tool calls, which the page does not run.
function resultsForm(calls, onSend) {
  const fields = calls.map((call) => element('textarea', { rows: 2 }));
  const labels = calls.map((call, i) =>
    element('label', {}, `Result of ${call.name}`, fields[i]));
  const send = button('Send results', () => onSend(calls.map(({ id, name }, i) =>
    ({ id, name, content: fields[i].value }))), { className: 'primary' });
  const form = element('form', { className: 'edit' }, ...labels, send);
  form.addEventListener('submit', (event) => event.preventDefault());
  return form;
}

// Shows an answer that may still grow. Draws at most once per frame, however many tokens arrive.
export class AnswerView extends MessageView {
  #frame = 0;
  #clock = 0;
  #isRunning;

  // `startMs` is the time of the request (performance.now) if the answer is still being received.
  constructor(message, on, startMs) {
    super(message, on, 'answer', message.model || 'Answer');
    this.#isRunning = startMs !== undefined;
    this.startMs = startMs;
    this.body = element('div', { className: 'prose' });
    this.markdown = new MarkdownView(this.body);
    this.callList = element('div');
    this.again = button('Regenerate', () => on.regenerate(message));
    this.copy = copyButton('Copy answer', () => message.content);
    this.notes = element('p', { className: 'notes' });
    this.footer.append(this.notes, this.copy, this.again);
    this.root.append(this.body, this.callList, this.footer);
    if (this.#isRunning) {
      // Screen readers read the answer once it is complete.
      this.root.setAttribute('aria-live', 'polite');
      this.root.setAttribute('aria-busy', 'true');
      this.#clock = setInterval(() => this.#tick(), kTickMs);
    }
    this.#draw();
    if (!this.#isRunning) this.#end({});
  }

  // The message has changed.
  changed() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  // The message is complete.
  finish() {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#draw();
    this.#end({ role: 'alert' });
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { content, reasoning, calls } = this.message;
    if (reasoning) this.#drawReasoning(reasoning, content === '' && calls.length === 0);
    this.markdown.update(content);
    this.callList.replaceChildren(...calls.map(callView));
    this.#drawNotes();
    this.root.dispatchEvent(new Event('grow', { bubbles: true }));
  }

  // Reasoning is open while nothing else is there, and folded afterwards.
  #drawReasoning(text, isAll) {
    if (!this.thought) {
      this.thought = element('div', { className: 'thought' });
      this.thoughts = element('details', { className: 'reasoning', open: this.#isRunning && isAll },
        element('summary', {}, 'Reasoning'), this.thought);
      this.body.before(this.thoughts);
      this.isFolded = !isAll;
    } else if (!isAll && !this.isFolded) {
      this.thoughts.open = false;
      this.isFolded = true;
    }
    this.thought.textContent = text.trim();
  }

  // The clock stops at the first token, and when another chat is shown.
  #tick() {
    const isWaiting = this.#isRunning && this.message.timing.waitMs === 0;
    if (!isWaiting || !this.root.isConnected) return clearInterval(this.#clock);
    this.#drawNotes();
  }

  #drawNotes() {
    const { timing, note } = this.message;
    const isWaiting = this.#isRunning && timing.waitMs === 0;
    const waiting = isWaiting ? `waiting ${seconds(performance.now() - this.startMs)}` : '';
    this.notes.textContent = [timingText(timing), waiting, note].filter(Boolean).join(' · ');
    this.copy.hidden = this.again.hidden = this.#isRunning;
  }

  // Only a new error is an alert.
  #end(errorProperties) {
    const { error, content, calls } = this.message;
    if (error) {
      this.footer.before(element('p', { className: 'error', ...errorProperties }, error));
      this.again.textContent = 'Try again';
    }
    this.copy.hidden = content === '';
    this.root.removeAttribute('aria-busy');
    if (calls.length === 0) return;
    this.results = resultsForm(calls, (results) => this.on.sendResults(this.message, results));
    this.footer.after(this.results);
    this.setAnswerable(false);
  }

  // Offers to enter the results of tool calls.
  setAnswerable(isAnswerable) {
    if (this.results) this.results.hidden = !isAnswerable;
  }
}

export class ResultsView extends MessageView {
  constructor(message, on) {
    super(message, on, 'results', 'Results of tools');
    this.answer = button('Answer', () => on.answer(message));
    this.footer.append(this.answer);
    this.root.append(...message.results.map(({ name, content }) =>
      foldedText(`Result of ${name}`, `Text of the result of ${name}`, indented(content))),
    this.footer);
    this.setAnswerable(false);
  }

  setAnswerable(isAnswerable) {
    this.answer.hidden = !isAnswerable;
  }
}

// Returns the view of a message; `startMs` as for AnswerView.
export function messageView(message, on, startMs) {
  if (message.role === 'assistant') return new AnswerView(message, on, startMs);
  return message.role === 'user' ? new QuestionView(message, on) : new ResultsView(message, on);
}
