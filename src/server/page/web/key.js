// The field for the server's API key. It appears when the server refuses a request without a valid
// key.
import { useKey } from './api.js';

const kEntry = 'quire.key';

const form = document.getElementById('key-form');
const { key: field, remember } = form.elements;

// A browser can refuse storage (private windows); the key then lasts until the page is closed.
function storages() {
  try {
    return [window.sessionStorage, window.localStorage];
  } catch {
    return [];
  }
}

function store(key, isRemembered) {
  storages().forEach((storage, i) => {
    const isPlace = key !== '' && i === Number(isRemembered);
    try {
      if (isPlace) storage.setItem(kEntry, key);
      else storage.removeItem(kEntry);
    } catch {
      // The storage is full; see storages().
    }
  });
}

function showForm(sent) {
  document.getElementById('key-text').textContent = sent === ''
    ? 'This server needs an API key.' : 'The server refused this API key.';
  if (!form.hidden) return;
  form.hidden = false;
  field.focus();
}

// Calls onChange after each change of the key.
export function startKey(onChange) {
  const stored = storages().map((storage) => storage.getItem(kEntry)).find(Boolean) ?? '';
  const forget = document.getElementById('forget-key');
  let current = '';
  const take = (key) => {
    current = key;
    useKey(key);
    forget.hidden = key === '';
  };
  take(/^[\x21-\x7e]*$/.test(stored) ? stored : '');
  window.addEventListener('keyneeded', ({ detail: sent }) => {
    if (sent === current) showForm(sent); // not for a late response to an earlier key
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const key = field.value.trim();
    store(key, remember.checked);
    take(key);
    field.value = '';
    form.hidden = true;
    onChange();
  });
  forget.addEventListener('click', () => {
    store('', false);
    take('');
    onChange();
  });
}
