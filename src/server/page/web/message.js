// Shows a question and its answer; independent of where they come from.
import { copyButton, element } from './dom.js';
import { MarkdownView } from './markdown.js';

export function questionView(text) {
  return element('article', { className: 'question', 'aria-label': 'You' }, element('p', {}, text));
}

// A number and its unit stay on one line.
const kJoin = '\u00a0';

function seconds(ms) {
  return ms < 1000 ? `${Math.round(ms)}${kJoin}ms` : `${(ms / 1000).toFixed(1)}${kJoin}s`;
}

function count(number, unit) {
  return `${Math.round(number).toLocaleString('en')}${kJoin}${unit}`;
}

// Returns "142 tokens · 96 tokens/s · first after 31 ms", without the parts that are unknown.
export function timingText({ numTokens, startMs, firstMs, lastMs }) {
  const parts = [];
  if (numTokens > 0) parts.push(count(numTokens, numTokens === 1 ? 'token' : 'tokens'));
  if (numTokens > 1 && lastMs > firstMs) {
    parts.push(count((1000 * (numTokens - 1)) / (lastMs - firstMs), 'tokens/s'));
  }
  if (firstMs > 0) parts.push(`first after ${seconds(firstMs - startMs)}`);
  return parts.join(' · ');
}

// Shows an answer that grows. Draws at most once per frame, however many tokens arrive.
export class AnswerView {
  #reasoning = '';
  #content = '';
  #frame = 0;

  constructor(modelName, onRegenerate) {
    this.body = element('div', { className: 'prose' });
    this.markdown = new MarkdownView(this.body);
    this.notes = element('p', { className: 'notes' });
    this.again = element('button', { type: 'button', className: 'quiet' }, 'Regenerate');
    this.again.addEventListener('click', onRegenerate);
    this.copy = copyButton('Copy answer', () => this.#content);
    this.footer = element('footer', { hidden: true }, this.notes, this.copy, this.again);
    this.root = element('article', { className: 'answer', 'aria-label': modelName },
      this.body, this.footer);
    // Makes screen readers wait for the complete answer.
    this.root.setAttribute('aria-busy', 'true');
  }

  add({ reasoning_content: reasoning, content }) {
    if (reasoning) this.#addReasoning(reasoning);
    if (content) {
      if (this.#content === '' && this.thoughts) this.thoughts.open = false;
      this.#content += content;
    }
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #addReasoning(text) {
    if (!this.thoughts) {
      this.thought = element('div', { className: 'thought' });
      this.thoughts = element('details', { className: 'reasoning', open: true },
        element('summary', {}, 'Reasoning'), this.thought);
      this.body.before(this.thoughts);
    }
    this.#reasoning += text;
  }

  #draw() {
    this.#frame = 0;
    if (this.thought) this.thought.textContent = this.#reasoning.trim();
    this.markdown.update(this.#content);
    this.root.dispatchEvent(new Event('grow', { bubbles: true }));
  }

  get content() {
    return this.#content;
  }

  // Ends the answer. `note` is the reason why it ended, if that is worth showing.
  finish(timing, note) {
    cancelAnimationFrame(this.#frame);
    this.notes.textContent = [timingText(timing), note].filter(Boolean).join(' · ');
    this.copy.hidden = this.#content === '';
    this.footer.hidden = false;
    this.root.removeAttribute('aria-busy');
    this.#draw();
  }

  fail(message) {
    this.footer.before(element('p', { className: 'error', role: 'alert' }, message));
    this.again.textContent = 'Try again';
  }

  // Removes the regenerate button, because only the last answer can be regenerated.
  freeze() {
    this.again.remove();
  }
}
