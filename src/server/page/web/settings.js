// The form of a chat's settings: sampling, system prompt and tools.
import { kFormSettings, stopTexts, toolsError } from './conversation.js';

const form = document.getElementById('settings');
const kMaxStops = 16;
const fields = kFormSettings.map((name) => form.elements[name]);

function validate() {
  const { stop, tools } = form.elements;
  tools.setCustomValidity(toolsError(tools.value));
  stop.setCustomValidity(stopTexts(stop.value).length > kMaxStops
    ? `There are more than ${kMaxStops} stop texts.` : '');
}

export function settingsAreValid() {
  return form.checkValidity();
}

// Lets the browser show the error next to the first field that has one.
export function reportSettings() {
  const field = fields.find((one) => !one.checkValidity());
  const fold = field?.closest('details');
  if (fold) fold.open = true;
  form.reportValidity();
}

// Shows the values that hold where a field is empty. defaultOf(name) returns the server's, or
// undefined if it states none.
export function showDefaults(defaultOf) {
  for (const field of fields) {
    if (field.dataset.fallback === undefined) continue;
    field.placeholder = String(defaultOf(field.name) ?? field.dataset.fallback);
  }
}

function currentSettings() {
  return Object.fromEntries(fields.map((field) =>
    // Spaces are a part of a stop text.
    [field.name, field.name === 'stop' ? field.value : field.value.trim()]));
}

// Returns the settings as the form takes them: without text in a field of numbers, for example.
export function showSettings(settings) {
  for (const field of fields) field.value = settings[field.name];
  validate();
  return currentSettings();
}

// Calls onChange with the settings after each change by the reader.
export function startSettings(onChange) {
  form.addEventListener('input', () => {
    validate();
    onChange(currentSettings());
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  document.getElementById('reset-settings').addEventListener('click', () => {
    for (const field of fields) field.value = '';
    validate();
    onChange(currentSettings());
  });
}
