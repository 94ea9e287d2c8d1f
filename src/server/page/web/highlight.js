// Colours code by its lexical form: comments, strings, numbers, keywords and called functions. Each
// pattern takes time in proportion to the text that it matches.
import { element } from './dom.js';

const kMaxChars = 40_000; // longer code is shown without colours, because it is redrawn as it grows

const words = (text) => new Set(text.split(' '));
const kCLike = words(
  'auto bool break case catch char class const constexpr continue default delete do double ' +
  'else enum explicit extern false float for goto if inline int long namespace new nullptr ' +
  'operator private protected public return short signed sizeof static struct switch template ' +
  'this throw true try typedef typename union unsigned using virtual void volatile while ' +
  'abstract boolean byte extends final finally implements import instanceof interface null ' +
  'package super synchronized throws var async await base decimal foreach in is internal lock ' +
  'object out override params readonly ref sealed string yield');
const kScript = words(
  'as async await break case catch class const continue debugger default delete do else enum ' +
  'export extends false finally for from function get if implements import in instanceof ' +
  'interface let new null of private protected public readonly return set static super switch ' +
  'this throw true try type typeof undefined var void while yield');
const kGo = words(
  'break case chan const continue default defer else fallthrough false for func go goto if ' +
  'import interface map nil package range return select struct switch true type var');
const kRust = words(
  'as async await break const continue crate dyn else enum extern false fn for if impl in let ' +
  'loop match mod move mut pub ref return self static struct super trait true type unsafe use ' +
  'where while fun val var when object override func guard nil protocol extension init');
const kPython = words(
  'and as assert async await break case class continue def del elif else except False finally ' +
  'for from global if import in is lambda match None nonlocal not or pass raise return True ' +
  'try while with yield');
const kRuby = words(
  'alias and begin break case class def do else elsif end ensure false for if in module next ' +
  'nil not or redo rescue retry return self super then true undef unless until when while ' +
  'yield function library local repeat NULL TRUE FALSE my sub use foreach');
const kShell = words(
  'case do done elif else esac export fi for function if in local return select set then ' +
  'until while FROM RUN COPY ADD ENV CMD ENTRYPOINT WORKDIR ARG EXPOSE');
const kSql = words(
  'add all alter and as asc between by case column constraint create cross default delete ' +
  'desc distinct drop else end exists foreign from full group having if in index inner insert ' +
  'into is join key left like limit not null offset on or order outer primary references ' +
  'right select set table then union unique update values view when where with');
const kData = words('true false null yes no on off');

// A pattern also matches a part without its closing mark, because code is shown while it grows.
const kBlock = String.raw`\/\*[\s\S]*?(?:\*\/|$)`;
const kLine = String.raw`\/\/[^\n]*`;
const kHash = String.raw`#[^\n]*`;
const kDashes = String.raw`--[^\n]*`;
const kDouble = String.raw`"(?:[^"\\\n]|\\[\s\S])*"?`;
const kSingle = String.raw`'(?:[^'\\\n]|\\[\s\S])*'?`;
const kQuoted = String.raw`(?<!\w)${kSingle}`; // but not an apostrophe
const kBackticks = '`(?:[^`\\\\]|\\\\[\\s\\S])*`?';
const kTriple = String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)`;
const kCharacter = String.raw`'(?:[^'\\\n]|\\[^\n]{1,10})'`; // but not a lifetime
const kNumber = String.raw`\d[\w.]*`;
const kWord = String.raw`[\p{L}_$@][\p{L}\p{N}_$-]*`;

// Each alternative of the pattern is a named group: c, s, n or w (a word), which is a class of the
// style sheet too.
function language(names, comments, strings, keywords, more = {}) {
  const word = more.word ?? kWord.replace('-]', ']');
  const parts = [`(?<c>${comments.join('|') || '(?!)'})`, `(?<s>${strings.join('|')})`,
    `(?<n>${kNumber})`, `(?<w>${word})`];
  const { ignoresCase = false } = more;
  const entry = { pattern: new RegExp(parts.join('|'), 'gu'), keywords, ignoresCase };
  return names.split(' ').map((name) => [name, entry]);
}

const kLanguages = new Map([
  ...language('c h cpp c++ cc cxx hpp cuda cu java cs csharp c# dart objc glsl php scala groovy',
    [kLine, kBlock], [kDouble, kSingle], kCLike),
  ...language('js javascript jsx ts typescript tsx mjs', [kLine, kBlock],
    [kDouble, kSingle, kBackticks], kScript),
  ...language('go golang', [kLine, kBlock], [kDouble, kSingle, kBackticks], kGo),
  ...language('rust rs kotlin kt swift', [kLine, kBlock], [kDouble, kCharacter], kRust),
  ...language('python py python3', [kHash], [kTriple, kDouble, kSingle], kPython),
  ...language('ruby rb perl pl r elixir julia', [kHash], [kDouble, kSingle], kRuby),
  ...language('lua haskell hs', [kDashes], [kDouble, kQuoted], kRuby),
  ...language('sh bash shell zsh console dockerfile makefile make cmake',
    [String.raw`(?<![\w$])${kHash}`], [kDouble, kQuoted], kShell),
  ...language('yaml yml toml ini conf', [String.raw`(?<!\w)${kHash}`], [kDouble, kQuoted], kData,
    { word: kWord }),
  ...language('json jsonc json5', [kLine, kBlock], [kDouble], kData),
  ...language('sql mysql postgresql sqlite', [kDashes, kBlock], [kDouble, kSingle], kSql,
    { ignoresCase: true }),
  ...language('css scss less', [kBlock], [kDouble, kSingle], new Set(),
    { word: String.raw`(?<![\w-])[a-z-]{1,40}(?=\s{0,3}:)` }),
  ...language('html xml svg vue', [String.raw`<!--[\s\S]*?(?:-->|$)`], [kDouble], new Set(),
    { word: String.raw`(?<=<\/?)[A-Za-z][\w:.-]*` }),
]);

function classOf(match, text, { keywords, ignoresCase }) {
  const { c, s, n, w } = match.groups;
  if (c !== undefined) return 'c';
  if (s !== undefined) return 's';
  if (n !== undefined) return 'n';
  if (keywords.size === 0) return 'k'; // the name of an element, or a property
  if (keywords.has(ignoresCase ? w.toLowerCase() : w)) return 'k';
  return text[match.index + w.length] === '(' ? 'f' : '';
}

// Returns the code as nodes: text, and elements for the coloured parts.
export function codeNodes(text, name) {
  const language = kLanguages.get(name.toLowerCase());
  if (!language || text.length > kMaxChars) return [text];
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(language.pattern)) {
    const className = classOf(match, text, language);
    if (className === '') continue;
    if (match.index > end) nodes.push(text.slice(end, match.index));
    nodes.push(element('span', { className }, match[0]));
    end = match.index + match[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}
