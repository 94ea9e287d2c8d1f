// Shows the questions of a chat and the results of tools; answer.js shows the answers. A view
// reports the reader's actions to `on`, whose functions take the view's message first.
import { indented } from './conversation.js';
import { button, element } from './dom.js';

// A number and its unit stay on one line.
export const kJoin = '\u00a0';

export function count(number, unit) {
  const plural = Math.round(number) === 1 ? unit : `${unit}s`;
  return `${Math.round(number).toLocaleString('en')}${kJoin}${plural}`;
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

export class MessageView {
  constructor(message, on, className, label) {
    this.message = message;
    this.on = on;
    this.versions = new VersionPicker((step) => on.step(message, step));
    this.remove = button('Delete', () => on.remove(message));
    // Changes of a footer (a running clock, a button's "Copied") are not announced.
    this.footer = element('footer', { 'aria-live': 'off' }, this.versions.root);
    this.root = element('article', { className, 'aria-label': label });
  }

  // Opens a field with the message's text in the place of `body`. submit(text) returns whether the
  // text was taken.
  openForm(body, label, submit) {
    const field = element('textarea', { 'aria-label': 'Edited message' });
    field.value = this.message.content;
    const close = () => {
      form.remove();
      body.hidden = this.message.content === '';
      this.footer.hidden = false;
      if (this.root.isConnected) this.edit.focus();
    };
    const send = () => {
      if (submit(field.value.trim())) close();
    };
    const form = element('form', { className: 'edit' }, field,
      button(label, send, { className: 'primary' }), button('Cancel', close));
    form.addEventListener('submit', (event) => event.preventDefault());
    field.addEventListener('input', () => fitHeight(field));
    field.addEventListener('keydown', (event) => {
      if (!isSendKey(event) && event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation(); // so that Escape does not stop an answer too
      if (event.key === 'Escape') return close();
      send();
    });
    body.hidden = this.footer.hidden = true;
    body.after(form);
    fitHeight(field);
    field.focus();
  }
}

// Makes a text that scrolls, by the keyboard too.
export function textRegion(label, text) {
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

// Makes the field as high as its text.
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
  constructor(message, on) {
    super(message, on, 'question', 'You');
    this.text = element('p', { className: 'text', hidden: message.content === '' },
      message.content);
    this.edit = button('Edit', () => this.openForm(this.text, 'Send', (text) =>
      (text !== '' || message.files.length > 0) && on.edit(message, text)));
    this.answer = button('Answer', () => on.answer(message));
    this.footer.append(this.answer, this.edit, this.remove);
    this.root.append(...message.files.map(fileView), this.text, this.footer);
    this.setAnswerable(false);
  }

  // Offers an answer if there is none, because the page was closed, for example.
  setAnswerable(isAnswerable) {
    this.answer.hidden = !isAnswerable;
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

