// The sampling settings: form fields, kept in this browser. An empty field is left out of the
// call, so that the model's own defaults hold.

const kKey = 'quire.settings';
const form = document.getElementById('settings');

function load() {
  try {
    return JSON.parse(localStorage.getItem(kKey)) ?? {};
  } catch {
    return {}; // no storage, or not ours
  }
}

function save() {
  const values = Object.fromEntries([...form.elements].filter((field) => field.name)
    .map((field) => [field.name, field.value]));
  try {
    localStorage.setItem(kKey, JSON.stringify(values));
  } catch {
    // Without storage the settings last as long as the page.
  }
}

function fill(values) {
  for (const field of form.elements) {
    if (field.name) field.value = typeof values[field.name] === 'string' ? values[field.name] : '';
  }
}

// False: a field holds what no call may have; the browser has said so beside it.
export function settingsAreValid() {
  return form.checkValidity() || form.reportValidity();
}

export function systemPrompt() {
  return form.elements.system.value.trim();
}

// The fields of a call that the settings make.
export function samplingFields() {
  const fields = {};
  for (const name of ['temperature', 'top_p', 'max_tokens', 'seed']) {
    const value = form.elements[name].value;
    if (value !== '') fields[name] = Number(value);
  }
  return fields;
}

export function startSettings() {
  fill(load());
  form.addEventListener('input', save);
  form.addEventListener('submit', (event) => event.preventDefault());
  document.getElementById('reset-settings').addEventListener('click', () => {
    fill({});
    save();
  });
}
