// Converts Markdown to nodes, block by block. It supports only what language models write, and no
// HTML (see inline.js). While a text grows, only changed blocks are rebuilt.
import { copyButton, element } from './dom.js';
import { formulaNode } from './formula.js';
import { codeNodes } from './highlight.js';
import { appendInline } from './inline.js';

const kMaxDepth = 8;
const kMaxParagraph = 50_000; // characters; a longer one is shown as plain text
const kFence = /^(\s*)(`{3,}|~{3,})(.*)$/;
const kHeading = /^ {0,3}(#{1,6})\s(.*)$/;
const kRule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const kQuote = /^ {0,3}> ?(.*)$/;
const kItem = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)/;
const kFormulaBegin = /^\s*(\$\$|\\\[|\\begin\{([a-zA-Z]{1,20}\*?)\})/;
const kTask = /^\[([ xX])\]\s+(?=\S)/;
const kDelimiterRow = /^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$/;

const isBlank = (line) => line.trim() === '';
const indentOf = (line) => line.length - line.trimStart().length;

function beginsBlock(line) {
  return kFence.test(line) || kHeading.test(line) || kRule.test(line) || kQuote.test(line) ||
    kItem.test(line) || kFormulaBegin.test(line);
}

// Each of these functions reads one block at lines[at] and returns { node, end }, or null if the
// block is of another kind.
function readCode(lines, at) {
  const open = kFence.exec(lines[at]);
  if (!open || open[3].includes('`')) return null;
  const isClosing = (line) => line.trim().startsWith(open[2]) && /^(`+|~+)$/.test(line.trim());
  let end = at + 1;
  while (end < lines.length && !isClosing(lines[end])) ++end;
  const text = lines.slice(at + 1, end)
    .map((line) => line.slice(Math.min(indentOf(line), open[1].length))).join('\n');
  const language = open[3].trim().split(/\s/)[0];
  const node = element('figure', { className: 'code' },
    element('figcaption', {}, element('span', {}, language || 'code'),
      copyButton('Copy code', () => text)),
    element('pre', { tabIndex: 0, role: 'region', 'aria-label': `${language} code`.trim() },
      element('code', {}, ...codeNodes(text, language))));
  return { node, end: end + 1 };
}

// Reads a formula that has lines of its own. A blank line ends it, as in TeX, so that an unclosed
// one does not take the rest of the text; it is shown as the model wrote it.
function readFormula(lines, at) {
  const open = kFormulaBegin.exec(lines[at]);
  if (!open) return null;
  const [, mark, environment] = open;
  const close = environment ? `\\end{${environment}}` : mark === '$$' ? '$$' : '\\]';
  let end = at;
  let begin = open[0].length; // in the line, after the mark
  while (end < lines.length && !isBlank(lines[end]) && !lines[end].includes(close, begin)) {
    ++end;
    begin = 0;
  }
  if (end === lines.length || isBlank(lines[end])) {
    return { node: element('p', { className: 'source' }, lines.slice(at, end).join('\n')), end };
  }
  const last = lines[end].trimEnd().replace(/[.,;]$/, '');
  if (last.indexOf(close, begin) + close.length < last.length) return null; // a text follows
  const source = lines.slice(at, end + 1).join('\n').trim();
  const inner = source.slice(mark.length, source.lastIndexOf(close));
  const node = element('p', {}, formulaNode(source, environment ? source : inner, true));
  return { node, end: end + 1 };
}

// Headings of a response rank below the page's own headings.
function readHeading(lines, at) {
  const found = kHeading.exec(lines[at]);
  if (!found) return null;
  const node = element(`h${Math.min(6, found[1].length + 2)}`);
  appendInline(node, found[2].trim());
  return { node, end: at + 1 };
}

function readRule(lines, at) {
  return kRule.test(lines[at]) ? { node: element('hr'), end: at + 1 } : null;
}

function readQuote(lines, at, depth) {
  if (!kQuote.test(lines[at])) return null;
  let end = at;
  while (end < lines.length && kQuote.test(lines[end])) ++end;
  const node = element('blockquote');
  const inner = lines.slice(at, end).map((line) => kQuote.exec(line)[1]);
  node.append(...blockNodes(inner, depth + 1));
  return { node, end };
}

// Reads the lines of one list item without their indent. Two spaces are enough for a line to belong
// to the item: models indent by two, three or four with any marker.
function readItem(lines, at, marker) {
  const indent = marker[1].length;
  const inner = [lines[at].slice(marker[0].length)];
  let end = at + 1;
  for (; end < lines.length; ++end) {
    const line = lines[end];
    const next = lines[end + 1];
    if (isBlank(line)) {
      if (next === undefined || isBlank(next) || indentOf(next) < indent + 2) break;
    } else if (indentOf(line) < indent + 2 && (beginsBlock(line) || isBlank(lines[end - 1]))) {
      break;
    }
    inner.push(line.slice(Math.min(indentOf(line), marker[0].length)));
  }
  return { inner, end };
}

// Returns the box of an item that began with "[ ]" or "[x]".
function taskBox(task) {
  if (!task) return [];
  const checked = task[1] !== ' ';
  return [element('input', { type: 'checkbox', checked, disabled: true,
    'aria-label': checked ? 'Done' : 'To do' })];
}

function readList(lines, at, depth) {
  const first = kItem.exec(lines[at]);
  if (!first) return null;
  const kind = first[2].at(-1);
  const isOrdered = kind === '.' || kind === ')';
  const node = element(isOrdered ? 'ol' : 'ul');
  if (isOrdered) node.start = Number.parseInt(first[2], 10);
  for (;;) {
    const marker = lines[at] === undefined ? null : kItem.exec(lines[at]);
    if (!marker || marker[2].at(-1) !== kind || marker[1].length > first[1].length + 1) break;
    const { inner, end } = readItem(lines, at, marker);
    const item = element('li');
    const task = kTask.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(task[0].length);
    const blocks = blockNodes(inner, depth + 1);
    // A tight item has its text directly, without a paragraph.
    if (blocks[0]?.nodeName === 'P') blocks.splice(0, 1, ...blocks[0].childNodes);
    item.append(...taskBox(task), ...blocks);
    node.append(item);
    const isLoose = isBlank(lines[end] ?? 'x') && kItem.test(lines[end + 1] ?? '');
    at = isLoose ? end + 1 : end;
  }
  return { node, end: at };
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function row(tag, texts, alignments) {
  const node = element('tr');
  texts.forEach((text, i) => {
    const className = alignments[i] ?? '';
    const cell = node.appendChild(element(tag, className ? { className } : {}));
    appendInline(cell, text);
  });
  return node;
}

// Returns the class of a column by its cell of the delimiter row: ":-", ":-:" or "-:".
function alignmentOf(cell) {
  if (!cell.endsWith(':')) return '';
  return cell.startsWith(':') ? 'centre' : 'right';
}

function readTable(lines, at) {
  const isTable = lines[at].includes('|') && lines[at + 1]?.includes('|') &&
    kDelimiterRow.test(lines[at + 1]);
  if (!isTable) return null;
  const head = cells(lines[at]);
  const alignments = cells(lines[at + 1]).map(alignmentOf);
  const body = element('tbody');
  let end = at + 2;
  for (; end < lines.length && lines[end].includes('|'); ++end) {
    body.append(row('td', cells(lines[end]).slice(0, head.length), alignments));
  }
  const table = element('table', {}, element('thead', {}, row('th', head, alignments)), body);
  return { node: element('div', { className: 'table', tabIndex: 0 }, table), end };
}

function readParagraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !beginsBlock(lines[end])) ++end;
  const node = element('p');
  const text = lines.slice(at, end).map((line) => line.trim()).join('\n');
  if (text.length > kMaxParagraph) {
    node.textContent = text;
  } else {
    appendInline(node, text);
  }
  return { node, end };
}

const kReaders = [readCode, readFormula, readHeading, readRule, readQuote, readList, readTable];

function readBlock(lines, at, depth) {
  for (const read of depth < kMaxDepth ? kReaders : []) {
    const block = read(lines, at, depth);
    if (block) return block;
  }
  return readParagraph(lines, at);
}

function blockNodes(lines, depth) {
  const nodes = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      ++at;
      continue;
    }
    const { node, end } = readBlock(lines, at, depth);
    nodes.push(node);
    at = end;
  }
  return nodes;
}

// Shows a growing text below `root`.
export class MarkdownView {
  #blocks = []; // { node, end }; `end` is the index of the line after the block
  #lines = [];

  constructor(root) {
    this.root = root;
  }

  update(text) {
    const lines = text.replaceAll('\r', '').split('\n');
    let same = 0;
    while (same < this.#lines.length && this.#lines[same] === lines[same]) ++same;
    // A block's end depends on up to two lines after it.
    const keep = this.#blocks.filter((block) => block.end + 1 < same);
    for (const block of this.#blocks.slice(keep.length)) block.node.remove();
    for (let at = keep.at(-1)?.end ?? 0; at < lines.length;) {
      if (isBlank(lines[at])) {
        ++at;
        continue;
      }
      const { node, end } = readBlock(lines, at, 0);
      this.root.append(node);
      keep.push({ node, end });
      at = end;
    }
    this.#blocks = keep;
    this.#lines = lines;
  }
}
