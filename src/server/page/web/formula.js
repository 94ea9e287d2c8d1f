// Shows formulas in TeX by KaTeX, which is loaded when the first formula appears. A formula that
// KaTeX does not accept is shown as the model wrote it.
import { element } from './dom.js';

const kMaxChars = 3000; // KaTeX makes about seven elements per character
const kMaxCached = 300;
const kRetryMs = 10_000; // after the script could not be loaded
const kOptions = {
  strict: 'ignore',
  trust: false, // no links, images, classes or styles
  maxExpand: 500,
  maxSize: 20, // em
  errorColor: 'currentColor',
};

let katex = null;
let loading = null;
// The nodes of formulas, by source. While a paragraph grows, its formulas are drawn anew.
const cache = new Map();

// Loads KaTeX. Afterwards the views show formulas at once.
export function loadKatex() {
  loading ??= (async () => {
    document.head.append(element('link', { rel: 'stylesheet', href: '/page/katex/katex.min.css' }));
    await import('/page/katex/katex.min.js');
    ({ katex } = globalThis);
  })().catch(() => {
    setTimeout(() => { loading = null; }, kRetryMs); // the server cannot be reached
  });
  return loading;
}

// Returns the node of a formula, or null if KaTeX does not accept it.
function rendered(tex, displayMode) {
  const key = `${displayMode} ${tex}`;
  if (!cache.has(key)) {
    if (cache.size >= kMaxCached) cache.delete(cache.keys().next().value);
    const node = element('span');
    try {
      katex.render(tex, node, { ...kOptions, displayMode });
      cache.set(key, node);
    } catch {
      cache.set(key, null); // not TeX that KaTeX accepts, or too deeply nested
    }
  }
  return cache.get(key)?.cloneNode(true) ?? null;
}

function draw(node, tex, isDisplay) {
  const formula = rendered(tex, isDisplay);
  if (!formula) return;
  node.classList.add('formula');
  node.replaceChildren(...formula.childNodes);
}

// Returns a node for the formula `tex`, which the model wrote as `source`.
export function formulaNode(source, tex, isDisplay) {
  const node = element('span', { className: isDisplay ? 'display' : '' }, source);
  if (tex.trim() === '' || tex.length > kMaxChars) return node;
  if (katex) {
    draw(node, tex, isDisplay);
  } else {
    loadKatex().then(() => {
      if (!katex || !node.isConnected) return;
      draw(node, tex, isDisplay);
      node.dispatchEvent(new Event('grow', { bubbles: true }));
    });
  }
  return node;
}
