// The list of chats. It reports the reader's actions to `on`, whose functions take a chat's id.
import { button, element } from './dom.js';

export class ChatList {
  #root;
  #on;
  #opened = ''; // the chat whose actions are shown
  #renamed = ''; // the chat whose title is being edited
  #chats = [];
  #current = '';

  constructor(root, on) {
    this.#root = root;
    this.#on = on;
  }

  // `chats` as ChatStore.list() returns them, with isAnswering.
  show(chats, current) {
    this.#chats = chats;
    this.#current = current;
    if (this.#renamed === '') this.#draw();
  }

  // Keeps the focus at the same control of the same chat.
  #draw() {
    const focused = document.activeElement;
    const key = this.#root.contains(focused) ? focused.dataset.key : undefined;
    this.#root.replaceChildren(...this.#chats.map((chat) => this.#row(chat)));
    if (key) this.#focus(key);
  }

  #focus(key) {
    this.#root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  }

  #row(chat) {
    const { id, title } = chat;
    if (id === this.#renamed) return element('li', {}, this.#renameForm(chat));
    const isOpened = id === this.#opened;
    const open = button(title, () => this.#on.open(id), { className: 'title', title });
    open.dataset.key = `${id}.open`;
    if (id === this.#current) open.setAttribute('aria-current', 'true');
    const more = button('⋯', () => this.#toggle(id),
      { 'aria-label': `Actions for ${title}`, 'aria-expanded': String(isOpened) });
    more.dataset.key = `${id}.more`;
    const state = chat.isAnswering ? 'answering' : chat.isSaved ? '' : 'not saved';
    const row = element('li', {}, open, element('small', {}, state), more);
    if (isOpened) row.append(this.#actions(chat));
    return row;
  }

  #actions({ id, title }) {
    const action = (label, run) => {
      const node = button(label, run, { 'aria-label': `${label} ${title}` });
      node.dataset.key = `${id}.${label}`;
      return node;
    };
    return element('div', { className: 'actions' },
      action('Rename', () => this.#rename(id)),
      action('Markdown', () => this.#on.exportMarkdown(id)),
      action('JSON', () => this.#on.exportJson(id)),
      action('Delete', () => this.#on.remove(id)));
  }

  // Closes the actions of a chat; returns whether they were visible.
  closeActions() {
    const id = this.#opened;
    if (id === '' || !this.#root.checkVisibility()) return false;
    this.#toggle(id);
    this.#focus(`${id}.more`);
    return true;
  }

  #toggle(id) {
    this.#opened = this.#opened === id ? '' : id;
    this.#draw();
  }

  #rename(id) {
    this.#renamed = id;
    this.#draw();
    this.#root.querySelector('input').select();
  }

  #renameForm({ id, title }) {
    const field = element('input', { value: title, maxLength: 200 });
    field.ariaLabel = `Title of ${title}`;
    let isDone = false;
    const finish = (newTitle) => {
      if (isDone) return; // removing the field takes its focus, which finishes again
      isDone = true;
      this.#renamed = '';
      if (newTitle !== '' && newTitle !== title) this.#on.rename(id, newTitle);
      this.#draw();
      this.#focus(`${id}.more`);
    };
    field.addEventListener('blur', () => finish(field.value.trim()));
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== 'Escape') return;
      if (event.isComposing) return;
      event.stopPropagation();
      event.preventDefault(); // Enter would press the button that gets the focus
      finish(event.key === 'Enter' ? field.value.trim() : '');
    });
    return field;
  }
}
