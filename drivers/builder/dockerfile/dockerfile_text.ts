// Parses Dockerfiles into instructions with line numbers (docs.docker.com/reference/dockerfile, "Format"). Continuation
// lines are joined; comments and empty lines within them are skipped.

export interface HereDocument {
  /** Delimiter, which is also the name of the file created by COPY. */
  name: string;
  /** `<<"EOF"`: variables are not expanded. */
  isQuoted: boolean;
  /** Lines with their ends; for `<<-EOF` without leading tabs. */
  text: string;
}

export interface Instruction {
  /** Number of the first line, from 1. */
  line: number;
  /** In upper case. */
  name: string;
  /** The text after the name, on one line. */
  rest: string;
  /** All lines, unmodified. */
  source: string;
  documents: HereDocument[];
}

/** Comments and empty lines between instructions are skipped. */
export function parseDockerfile(text: string): Instruction[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const escape = escapeOf(lines);
  const found: Instruction[] = [];
  for (let at = 0; at < lines.length;) {
    if (isIgnored(lines[at] ?? '')) {
      at += 1;
      continue;
    }
    const { joined, next } = joinLines(lines, at, escape);
    const [, name = '', rest = ''] = /^\s*(\S+)\s*([^]*)$/.exec(joined) ?? [];
    const { documents, end } = readDocuments(lines, next, name.toUpperCase(), rest);
    const source = lines.slice(at, end).join('\n');
    found.push({ line: at + 1, name: name.toUpperCase(), rest: rest.trim(), source, documents });
    at = end;
  }
  return found;
}

/** Splits into words; quoted parts stay together, including the quotes. */
export function wordsOf(text: string): string[] {
  return text.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\]|["'\\])+/g) ?? [];
}

/** Splits leading options (`--mount=…`) from the rest. */
export function optionsOf(rest: string): { options: string[]; command: string } {
  const options: string[] = [];
  let command = rest;
  for (let next = /^(--[a-z]\S*)\s*/.exec(command); next; next = /^(--[a-z]\S*)\s*/.exec(command)) {
    options.push(next[1] ?? '');
    command = command.slice(next[0].length);
  }
  return { options, command };
}

/** The parser directive `# escape=` in the first lines. */
function escapeOf(lines: readonly string[]): string {
  for (const line of lines) {
    const [, name, value] = /^\s*#\s*([a-z]+)\s*=\s*(\S+)\s*$/i.exec(line) ?? [];
    if (name === undefined) break;
    if (name.toLowerCase() === 'escape' && value === '`') return '`';
  }
  return '\\';
}

function isIgnored(line: string): boolean {
  return /^\s*(#|$)/.test(line);
}

function joinLines(lines: readonly string[], from: number, escape: string): { joined: string; next: number } {
  const continued = escape === '`' ? /`[ \t]*$/ : /\\[ \t]*$/;
  let joined = '';
  let next = from;
  while (next < lines.length) {
    const line = lines[next] ?? '';
    next += 1;
    if (next > from + 1 && isIgnored(line)) continue;
    joined += line.replace(continued, '');
    if (!continued.test(line)) break;
  }
  return { joined, next };
}

const MARK = /(?:^|[^<])<<(-?)(["']?)([A-Za-z_][\w.-]*)\2/g;

function readDocuments(
  lines: readonly string[],
  from: number,
  name: string,
  rest: string,
): { documents: HereDocument[]; end: number } {
  const none = { documents: [], end: from };
  if (!['RUN', 'COPY', 'ADD'].includes(name)) return none;
  const documents: HereDocument[] = [];
  let end = from;
  for (const [, dash, quote, delimiter = ''] of rest.matchAll(MARK)) {
    const shown = lines.slice(end).map((line) => (dash === '-' ? line.replace(/^\t+/, '') : line));
    const last = shown.indexOf(delimiter);
    // Without a closing delimiter it is not a here-document.
    if (last < 0) return none;
    const text = shown.slice(0, last).map((line) => `${line}\n`);
    documents.push({ name: delimiter, isQuoted: quote !== '', text: text.join('') });
    end += last + 1;
  }
  return { documents, end };
}
