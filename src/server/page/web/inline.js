// Converts Markdown inside a paragraph to nodes. Text ends up only in text nodes, with one
// exception: the href of a link, and only for http and https.
import { element } from './dom.js';
import { formulaNode } from './formula.js';

const kMaxDepth = 6;
const kMaxLabel = 1000;
const kMaxUrl = 2048;
const kMaxFormulas = 300; // per text; further ones are shown as the model wrote them
const kPunctuation = /[!-/:-@[-`{-~]/;
const kBareUrl = /https?:\/\/[^\s<>"'`)\]}]+/y;

const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);
const isSpace = (c) => c === undefined || /\s/.test(c);
const isPunctuation = (c) => c !== undefined && kPunctuation.test(c);

function runLength(text, at) {
  let end = at;
  while (text[end] === text[at]) ++end;
  return end - at;
}

// Returns whether a run of marks between these two characters can open emphasis (with the arguments
// swapped: close it), by CommonMark's flanking rule. Unlike CommonMark, `*` inside words is plain
// too: a model that writes 8*6=48 and 48*2=96 means to multiply.
function flanks(outer, inner) {
  if (isSpace(inner) || (isWord(outer) && isWord(inner))) return false;
  return !isPunctuation(inner) || isSpace(outer) || isPunctuation(outer);
}

// Returns the index of the `length` marks that close the emphasis that begins at `from`, or -1.
function findCloser(text, mark, length, from) {
  for (let at = text.indexOf(mark, from); at >= 0; at = text.indexOf(mark, at)) {
    const run = runLength(text, at);
    const fits = run === length || run > 2;
    if (fits && at > from && text[at - 1] !== '\\' && flanks(text[at + run], text[at - 1])) {
      return at + run - length; // the last marks of a longer run, so that ***both*** nests
    }
    at += run;
  }
  return -1;
}

export function safeUrl(text) {
  if (text.length > kMaxUrl || !/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}

function link(url, ...children) {
  return element('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, ...children);
}

// Parses [label](url "title") at text[at]. Returns null if there is none or if its address is not
// safe; the text is then shown as the model wrote it.
function parseLink(text, at) {
  let depth = 0;
  let end = at;
  for (; end < text.length && end - at < kMaxLabel; ++end) {
    if (text[end] === '[') ++depth;
    if (text[end] === ']' && --depth === 0) break;
  }
  if (depth !== 0 || text[end + 1] !== '(') return null;
  const target = /^\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)?)>?(?:\s+"[^"]*")?\s*\)/
    .exec(text.slice(end + 1, end + 1 + kMaxUrl));
  const url = target && safeUrl(target[1]);
  return url && { url, label: text.slice(at + 1, end), end: end + 1 + target[0].length };
}

// The marks that enclose a formula.
const kFormulas = [
  { open: '\\(', close: '\\)', isDisplay: false },
  { open: '\\[', close: '\\]', isDisplay: true },
  { open: '$$', close: '$$', isDisplay: true },
  { open: '$', close: '$', isDisplay: false },
];

// Returns whether `$` at these indexes enclose a formula, by the rules of Pandoc and GitHub, so that
// "$5 and $10" and "$HOME/$USER" are none. Neither are amounts within prose, "$5 million or 6$".
function isDollarFormula(text, open, close) {
  const tex = text.slice(open + 1, close);
  const isProse = /^[\d.,]+(?: .*)? [a-z]{2}/i.test(tex) && !/[\\^_{]/.test(tex);
  return !isProse && !isWord(text[open - 1]) && !isWord(text[close + 1]) && !isSpace(tex[0]) &&
    !isSpace(tex.at(-1)) && !tex.includes('`');
}

class InlineParser {
  constructor(parent, text, depth, inLink) {
    this.parent = parent;
    this.text = text;
    this.depth = depth;
    this.inLink = inLink; // true: parse no links, since links do not nest
    this.plain = '';
    this.unclosed = new Set(); // marks known to have no closer from here on
    this.closers = new Map(); // by closing mark of formulas: the index of the next one
    this.numFormulas = 0;
  }

  flush() {
    if (this.plain !== '') this.parent.append(this.plain);
    this.plain = '';
  }

  push(node) {
    this.flush();
    this.parent.append(node);
  }

  nested(node, text, inLink = this.inLink) {
    new InlineParser(node, text, this.depth + 1, inLink).run();
    this.push(node);
  }

  // Each method takes the index of its first character, and returns the index after its last one,
  // or -1 if the text is plain.
  code(at) {
    const run = runLength(this.text, at);
    for (let end = at + run; (end = this.text.indexOf('`', end)) >= 0;) {
      const closing = runLength(this.text, end);
      if (closing === run) {
        this.push(element('code', {}, this.text.slice(at + run, end).trim()));
        return end + run;
      }
      end += closing;
    }
    this.plain += '`'.repeat(run);
    return at + run;
  }

  // Returns the index of the next closing mark of a formula, or Infinity. Searches for each mark
  // once.
  closer(mark, from) {
    let at = this.closers.get(mark) ?? -1;
    if (at < from) {
      at = this.text.indexOf(mark, from);
      // In TeX, \\ begins a line and \$ is a dollar.
      while (at > 0 && this.text[at - 1] === '\\' && !this.isEscaped(at - 1)) {
        at = this.text.indexOf(mark, at + 1);
      }
      if (at < 0) at = Infinity;
      this.closers.set(mark, at);
    }
    return at;
  }

  // Whether the backslash at this index is itself escaped.
  isEscaped(at) {
    let begin = at;
    while (this.text[begin - 1] === '\\') --begin;
    return (at - begin) % 2 === 1;
  }

  formula(at) {
    const marks = kFormulas.find(({ open }) => this.text.startsWith(open, at));
    if (!marks) return -1;
    const { open, close, isDisplay } = marks;
    const end = this.numFormulas < kMaxFormulas ? this.closer(close, at + open.length) : Infinity;
    if (end < Infinity && (open !== '$' || isDollarFormula(this.text, at, end))) {
      const after = end + close.length;
      ++this.numFormulas;
      this.push(formulaNode(this.text.slice(at, after), this.text.slice(at + open.length, end),
        isDisplay));
      return after;
    }
    this.plain += open; // as the model wrote it
    return at + open.length;
  }

  emphasis(at) {
    const mark = this.text[at];
    const run = runLength(this.text, at);
    if (flanks(this.text[at - 1], this.text[at + run])) {
      const length = mark === '~' ? 2 : Math.min(run, 2);
      const key = mark + length;
      if (run >= length && this.depth < kMaxDepth && !this.unclosed.has(key)) {
        const end = findCloser(this.text, mark, length, at + length);
        if (end >= 0) {
          const tag = mark === '~' ? 'del' : length === 2 ? 'strong' : 'em';
          this.nested(element(tag), this.text.slice(at + length, end));
          return end + length;
        }
        this.unclosed.add(key);
      }
    }
    this.plain += this.text.slice(at, at + run);
    return at + run;
  }

  labelled(at) {
    const found = this.inLink || this.depth >= kMaxDepth ? null : parseLink(this.text, at);
    if (!found) return -1;
    this.nested(link(found.url), found.label, true);
    return found.end;
  }

  bareUrl(at) {
    if (this.inLink || isWord(this.text[at - 1])) return -1;
    kBareUrl.lastIndex = at;
    const found = kBareUrl.exec(this.text)?.[0].replace(/[.,;:!?*_~]{1,8}$/, '');
    const url = found && safeUrl(found);
    if (!url) return -1;
    this.push(link(url, found));
    return at + found.length;
  }

  step(at) {
    const c = this.text[at];
    if (c === '$' || c === '\\') {
      const after = this.formula(at);
      if (after >= 0) return after;
    }
    if (c === '\\' && /[)\]]/.test(this.text[at + 1])) return -1; // closes no formula
    if (c === '\\' && kPunctuation.test(this.text[at + 1] ?? '')) {
      this.plain += this.text[at + 1];
      return at + 2;
    }
    if (c === '\n') {
      this.push(element('br'));
      return at + 1;
    }
    if (c === '`') return this.code(at);
    if (c === '*' || c === '_' || c === '~') return this.emphasis(at);
    if (c === '[') return this.labelled(at);
    if (c === 'h') return this.bareUrl(at);
    return -1;
  }

  run() {
    for (let at = 0; at < this.text.length;) {
      const next = this.step(at);
      if (next < 0) this.plain += this.text[at];
      at = next < 0 ? at + 1 : next;
    }
    this.flush();
  }
}

// Appends the nodes of `text` to `parent`.
export function appendInline(parent, text) {
  new InlineParser(parent, text, 0, false).run();
}
