// The sampling settings: form fields, stored in this browser. A request omits empty fields, so that
// the model's defaults apply.

const kKey = 'quire.settings';
const form = document.getElementById('settings');

function load() {
  try {
    return JSON.parse(localStorage.getItem(kKey)) ?? {};
  } catch {
    return {}; // no storage, or its content is invalid
  }
}

function save() {
  const values = Object.fromEntries([...form.elements].filter((field) => field.name)
    .map((field) => [field.name, field.value]));
  try {
    localStorage.setItem(kKey, JSON.stringify(values));
  } catch {
    // Without storage, the settings last until the page is closed.
  }
}

function fill(values) {
  for (const field of form.elements) {
    if (field.name) field.value = typeof values[field.name] === 'string' ? values[field.name] : '';
  }
}

// Returns false if a field is invalid; the browser then shows the error next to the field.
export function settingsAreValid() {
  return form.checkValidity() || form.reportValidity();
}

export function systemPrompt() {
  return form.elements.system.value.trim();
}

// Returns the settings as fields of a request.
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
