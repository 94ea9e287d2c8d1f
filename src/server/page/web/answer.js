// Shows the answers of a chat; see message.js.
import { indented } from './conversation.js';
import { button, copyButton, element } from './dom.js';
import { MarkdownView } from './markdown.js';
import { count, kJoin, MessageView, QuestionView, ResultsView, textRegion } from './message.js';

const kTickMs = 100; // of the clock that runs until the first token
const kLeastStreamMs = 50; // a speed over a shorter time is noise

function seconds(ms) {
  return ms < 1000 ? `${Math.round(ms)}${kJoin}ms` : `${(ms / 1000).toFixed(1)}${kJoin}s`;
}

// Returns "142 tokens · 96 tokens/s · first after 31 ms", without the parts that are unknown.
export function timingText({ numTokens, waitMs, streamMs, streamTokens }) {
  const parts = [];
  if (numTokens > 0) parts.push(count(numTokens, 'token'));
  if (streamTokens > 0 && streamMs >= kLeastStreamMs) {
    parts.push(`${count((1000 * streamTokens) / streamMs, 'token')}/s`);
  }
  if (waitMs > 0) parts.push(`first after ${seconds(waitMs)}`);
  return parts.join(' · ');
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
    this.goOn = button('Continue', () => on.goOn(message));
    this.edit = button('Edit', () => this.openForm(this.body, 'Save', (text) =>
      text !== '' && on.editAnswer(message, text)));
    this.leftOut = element('p', { className: 'left-out', role: 'note', hidden: true });
    this.notes = element('p', { className: 'notes' });
    this.footer.append(this.notes, this.goOn, this.copy, this.edit, this.again, this.remove);
    this.root.append(this.leftOut, this.body, this.callList, this.footer);
    if (this.#isRunning) {
      // Screen readers read the answer once it is complete.
      this.root.setAttribute('aria-live', 'polite');
      this.root.setAttribute('aria-busy', 'true');
      this.#clock = setInterval(() => this.#tick(), kTickMs);
    }
    this.#draw();
    if (!this.#isRunning) this.#end({});
  }

  // Called when the message has changed; draws it in the next frame.
  changed() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  // Called when the message is complete.
  finish() {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#draw();
    this.#end({ role: 'alert' });
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { content, reasoning, calls, leftOut } = this.message;
    this.leftOut.hidden = leftOut === 0;
    this.leftOut.textContent = leftOut === 0 ? '' : 'The context was full: the model did not get ' +
      `the first ${count(leftOut, 'message')} of this chat for this answer.`;
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
    const doing = this.on.isLoading(this.message) ? 'loading the model…' : 'waiting';
    const waiting = isWaiting ? `${doing} ${seconds(performance.now() - this.startMs)}` : '';
    this.notes.textContent = [timingText(timing), waiting, note].filter(Boolean).join(' · ');
    for (const node of [this.copy, this.again, this.remove, this.edit, this.goOn]) {
      node.hidden = this.#isRunning;
    }
  }

  // `errorProperties` are those of the error's element: a new error is an alert, a stored one is
  // not.
  #end(errorProperties) {
    const { error, content, calls } = this.message;
    if (error) {
      this.footer.before(element('p', { className: 'error', ...errorProperties }, error));
      this.again.textContent = 'Try again';
    }
    this.copy.hidden = content === '';
    this.edit.hidden = content === '' || calls.length > 0;
    this.goOn.hidden = true; // until setAnswerable() says that this is the last message
    this.root.removeAttribute('aria-busy');
    if (calls.length === 0) return;
    this.results = resultsForm(calls, (results) => this.on.sendResults(this.message, results));
    this.footer.after(this.results);
    this.setAnswerable(false);
  }

  // Shows a note if `before`, the model of the answer before this one, is another; '': no earlier
  // answer.
  setModelBefore(before) {
    const { model } = this.message;
    this.otherModel?.remove();
    if (before === '' || model === '' || before === model) return;
    this.otherModel = element('p', { className: 'left-out', role: 'note' },
      `This answer is of the model ${model}, the one before of ${before}.`);
    this.root.prepend(this.otherModel);
  }

  // Offers to enter the results of tool calls, or to continue an answer that was cut or edited.
  setAnswerable(isAnswerable) {
    const { content, calls, note, error } = this.message;
    if (this.results) this.results.hidden = !isAnswerable;
    this.goOn.hidden = !isAnswerable || content === '' || calls.length > 0 || !(note || error);
  }
}

// Returns the view of a message; `startMs` as for AnswerView.
export function messageView(message, on, startMs) {
  if (message.role === 'assistant') return new AnswerView(message, on, startMs);
  return message.role === 'user' ? new QuestionView(message, on) : new ResultsView(message, on);
}
