// The sheets: beside the chat on wide screens, over it on narrow ones.
import { clearNotice } from './dom.js';

const kSheets = ['chats', 'side'];

const $ = (id) => document.getElementById(id);

// Shows one sheet, or none for ''.
export function showSheet(shown) {
  for (const id of kSheets) {
    $(id).classList.toggle('shown', id === shown);
    $(`${id}-toggle`).setAttribute('aria-expanded', String(id === shown));
  }
  if (shown === '') return;
  clearNotice(); // it would cover a part of the sheet
  $(shown).focus();
}

function shownSheet() {
  return kSheets.find((id) => $(id).classList.contains('shown')) ?? '';
}

// Closes the shown sheet, if there is one.
export function closeSheet() {
  const sheet = shownSheet();
  if (sheet === '') return;
  showSheet('');
  $(`${sheet}-toggle`).focus();
}

export function startSheets() {
  for (const id of kSheets) {
    $(`${id}-toggle`).addEventListener('click', () => showSheet(shownSheet() === id ? '' : id));
  }
}
