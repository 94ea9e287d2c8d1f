// The models that the server lists, the chosen one, and its limits. They can change while the page
// is open: a server restarts with another model, or loads and unloads several.
import { fetchModels } from './api.js';
import { element } from './dom.js';

const kRefreshMs = 1000; // while an answer waits for a model that is being loaded

// A server of one model states no status.
const stateOf = ({ status }) => (typeof status?.value === 'string' ? status.value : 'loaded');

export class Models {
  #list = [];
  #wanted = ''; // the choice of the shown chat; '' leaves it to the page
  #chooser = document.getElementById('models');
  #name = document.getElementById('model');
  #context = document.getElementById('context');
  #onChange;
  #timer = 0;
  #requests = Promise.resolve(); // settles when all requests so far have ended

  // onChange() is called when the current model or its limits may have changed, and
  // onChoose(id) when the reader chooses a model.
  constructor(onChange, onChoose) {
    this.#onChange = onChange;
    this.#chooser.addEventListener('pointerdown', () => this.refresh());
    this.#chooser.addEventListener('change', () => onChoose(this.#chooser.value));
  }

  // The model that answers; its id is '' until the server has listed one.
  get current() {
    return this.#list.find(({ id }) => id === this.#wanted) ??
      this.#list.find((model) => stateOf(model) === 'loaded') ??
      this.#list.find((model) => stateOf(model) !== 'failed') ?? this.#list[0] ?? { id: '' };
  }

  // Returns the length of the current model's context in tokens, or 0 if it is not known.
  get contextTokens() {
    const length = this.current.max_model_len;
    return Number.isSafeInteger(length) && length > 0 ? length : 0;
  }

  // Returns the value that the server uses where a request gives none, or undefined.
  defaultOf(setting) {
    const value = this.current.sampling_defaults?.[setting];
    return typeof value === 'number' ? value : undefined;
  }

  // Returns 'loaded', 'loading', 'unloaded' or 'failed'.
  stateOf(id) {
    const model = this.#list.find((one) => one.id === id);
    return model ? stateOf(model) : 'loaded';
  }

  // Selects the model of a chat.
  want(id) {
    this.#wanted = id;
    this.#show();
  }

  // Asks the server, after the requests in progress: the key may have changed since they were sent.
  refresh() {
    this.#requests = this.#requests.then(() => this.#fetch());
    return this.#requests;
  }

  async #fetch() {
    try {
      this.#list = await fetchModels();
      this.#show();
    } catch (error) {
      // The form for the key says what is missing.
      if (this.#list.length === 0) this.#name.textContent = error.status === 401 ? '' : error.message;
    }
    this.#onChange();
  }

  // Follows the model's state while isWaiting() is true.
  follow(isWaiting) {
    clearTimeout(this.#timer);
    if (this.stateOf(this.current.id) === 'loaded' || !isWaiting()) return;
    this.#timer = setTimeout(async () => {
      await this.refresh();
      this.follow(isWaiting);
    }, kRefreshMs);
  }

  #show() {
    const { id, root } = this.current;
    const isChoice = this.#list.length > 1;
    this.#chooser.hidden = !isChoice;
    this.#name.hidden = isChoice;
    this.#name.textContent = id;
    const texts = this.#list.map((model) => {
      const state = stateOf(model);
      return state === 'loaded' ? model.id : `${model.id} (${state})`;
    });
    // An open list keeps its options while they are right.
    const options = [...this.#chooser.options];
    if (options.length !== texts.length || options.some(({ text }, i) => text !== texts[i])) {
      this.#chooser.replaceChildren(...this.#list.map((model, i) =>
        element('option', { value: model.id }, texts[i])));
    }
    this.#chooser.value = id;
    const context = this.contextTokens;
    this.#context.textContent = context ? `${context.toLocaleString('en')} tokens of context` : '';
    // The example questions suit the embedded model.
    const examples = document.getElementById('examples');
    examples.hidden = root !== examples.dataset.model;
  }
}
