// DOM helpers that several modules share.

// Makes an element: element('a', { href: '/' }, 'text', node) takes properties, then children.
// Strings become text nodes, never markup; the page shows strings in no other way.
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role') {
      node.setAttribute(name, value);
    } else {
      node[name] = value;
    }
  }
  node.append(...children);
  return node;
}

export function button(text, onClick, properties = {}) {
  const node = element('button', { type: 'button', className: 'quiet', ...properties }, text);
  node.addEventListener('click', onClick);
  return node;
}

// Browsers provide navigator.clipboard only to pages from https or localhost; a server in a local
// network is often reached over plain http.
async function writeClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = element('textarea', { className: 'visually-hidden', value: text });
  document.body.append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  if (!copied) throw new Error('the browser did not copy');
}

// Makes a button that copies the result of text() when it is pressed, and confirms that for a
// moment.
export function copyButton(label, text) {
  const node = button('Copy', async () => {
    try {
      await writeClipboard(text());
      node.textContent = 'Copied';
    } catch {
      node.textContent = 'Not allowed';
    }
    node.focus();
    announce(node.textContent);
    setTimeout(() => { node.textContent = 'Copy'; }, 1500);
  }, { 'aria-label': label });
  return node;
}

// Offers a text as a file for download.
export function download(name, type, text) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  element('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser may ask where to put the file
}

// Announces a text to screen readers without showing it.
export function announce(text) {
  document.getElementById('announcer').textContent = text;
}

const kNoticeMs = 15_000; // of a notice that offers to undo something
let noticeTimer = 0;

export function clearNotice() {
  clearTimeout(noticeTimer);
  document.getElementById('notice').replaceChildren();
}

// Removes the notice, but waits while the pointer or the focus is at its buttons.
function expireNotice() {
  if (document.getElementById('notice').matches(':hover, :focus-within')) {
    noticeTimer = setTimeout(expireNotice, kNoticeMs);
  } else {
    clearNotice();
  }
}

// Shows a text above the message field until it is dismissed or replaced, or the reader goes on to
// another chat, a sheet or a message. `action` is { label, run } or null: a button, which also
// dismisses the notice; such a notice disappears after 15 s.
export function showNotice(text, action = null) {
  clearNotice();
  const root = document.getElementById('notice');
  const dismiss = () => {
    clearNotice();
    document.getElementById('input').focus();
  };
  const buttons = [button('Dismiss', dismiss)];
  if (action) {
    buttons.unshift(button(action.label, () => {
      dismiss();
      action.run();
    }));
    noticeTimer = setTimeout(expireNotice, kNoticeMs);
  }
  root.replaceChildren(element('p', {}, text), ...buttons);
}
