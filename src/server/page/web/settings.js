// The form of a chat's settings: sampling, system prompt and tools.
import { kSettings, toolsError } from './conversation.js';

const form = document.getElementById('settings');
const fields = kSettings.map((name) => form.elements[name]);

function validate() {
  form.elements.tools.setCustomValidity(toolsError(form.elements.tools.value));
}

export function settingsAreValid() {
  return form.checkValidity();
}

// Lets the browser show the error next to the first field that has one.
export function reportSettings() {
  form.reportValidity();
}

function currentSettings() {
  return Object.fromEntries(fields.map((field) => [field.name, field.value.trim()]));
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
