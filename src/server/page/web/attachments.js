// Files that a message carries as text: chosen, dropped or pasted, and shown as chips until the
// message is sent.
import { button, element, showNotice } from './dom.js';
import { count } from './message.js';

// An assumed upper bound. A file that exceeds the context even by this bound is not read at all.
const kMaxBytesPerToken = 32;

// Returns { name, text, numTokens }. Throws an Error whose message says why the file is refused.
async function readFile(file, maxTokens, countText) {
  const { name } = file;
  if (file.size > kMaxBytesPerToken * maxTokens) {
    throw new Error(`${name} has ${count(file.size, 'byte')}, which is too long for the model's ` +
      `context of ${count(maxTokens, 'token')}.`);
  }
  const bytes = await file.arrayBuffer().catch(() => {
    throw new Error(`${name} cannot be read.`); // a folder, or a file that was removed
  });
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${name} is not text in UTF-8; only text can be attached.`);
  }
  if (text.includes('\0')) throw new Error(`${name} is not text; only text can be attached.`);
  return { name, text, numTokens: text === '' ? 0 : await countText(text) };
}

export class Attachments {
  #root;
  #maxTokens;
  #countText;
  #files = []; // { name, text, numTokens } of files that are read, { name } of others
  #onChange;

  // maxTokens() returns the length of the model's context in tokens, and countText(text) a promise
  // of the text's number of tokens. onChange() is called when the reader removes a file.
  constructor(root, maxTokens, countText, onChange) {
    this.#root = root;
    this.#maxTokens = maxTokens;
    this.#countText = countText;
    this.#onChange = onChange;
  }

  get isReading() {
    return this.#files.some((file) => file.text === undefined);
  }

  get isEmpty() {
    return this.#files.length === 0;
  }

  async add(files) {
    const problems = await Promise.all([...files].map((file) => this.#addOne(file)));
    const texts = problems.filter(Boolean);
    if (texts.length > 0) showNotice(texts.join(' '));
  }

  // Adds a file. Returns why it is refused, or ''.
  async #addOne(file) {
    const own = { name: file.name };
    this.#files.push(own);
    this.#show();
    let problem = '';
    try {
      const read = await readFile(file, this.#maxTokens(), this.#countText);
      const others = this.#files.reduce((sum, { numTokens = 0 }) => sum + numTokens, 0);
      if (others + read.numTokens > this.#maxTokens()) {
        throw new Error(`${read.name} has ${count(read.numTokens, 'token')}; with it the files ` +
          `exceed the model's context of ${count(this.#maxTokens(), 'token')}.`);
      }
      Object.assign(own, read);
    } catch (error) {
      problem = error.message;
      this.#files = this.#files.filter((other) => other !== own);
    }
    this.#show();
    return problem;
  }

  // Returns the files, and removes them from the list.
  take() {
    const files = this.#files;
    this.#files = [];
    this.#show();
    return files;
  }

  #remove(file) {
    this.#files = this.#files.filter((other) => other !== file);
    this.#show();
    this.#onChange();
  }

  #show() {
    this.#root.replaceChildren(...this.#files.map((file) => {
      const size = file.text === undefined ? 'reading' : count(file.numTokens, 'token');
      return element('li', {}, element('span', {}, `${file.name} · ${size}`),
        button('×', () => this.#remove(file), { 'aria-label': `Remove ${file.name}` }));
    }));
  }
}

// Lets the reader choose, drop and paste files for the message field `input`.
export function startFiles(attachments, input) {
  const composer = document.getElementById('composer');
  const chooser = document.getElementById('file-input');
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files');
  document.getElementById('attach').addEventListener('click', () => chooser.click());
  chooser.addEventListener('change', () => {
    attachments.add(chooser.files);
    chooser.value = ''; // so that the same file can be chosen again
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
