// The two things that several modules do to the document.

// element('a', { href: '/' }, 'text', node): properties, then children. Text becomes a text node,
// never markup: the page has no other way to show a string.
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

// Browsers give navigator.clipboard to pages from https or localhost alone; a server in the own
// network is often reached by plain http.
async function writeClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = element('textarea', { className: 'visually-hidden', value: text });
  document.body.append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  if (!copied) throw new Error('the browser did not copy');
}

// A button that copies what `text()` is when it is pressed, and says so for a moment.
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

// Said by screen readers, seen by nobody.
export function announce(text) {
  document.getElementById('announcer').textContent = text;
}
