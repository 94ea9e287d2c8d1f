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
  const button = element('button', { type: 'button', className: 'quiet', 'aria-label': label });
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    try {
      await writeClipboard(text());
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed';
    }
    button.focus();
    announce(button.textContent);
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}

// Announces a text to screen readers without showing it.
export function announce(text) {
  document.getElementById('announcer').textContent = text;
}
