// Whether the commands of `svc` that pages show are commands that it has.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../runner/repository';

/** What is wrong with a command by the help of `svc`, and by the operations of the contract; empty if nothing. */
export function faultsOfCommand(text: string): string[] {
  const words = wordsOf(text, (word) => word);
  const end = words.indexOf('--');
  const [own, behind] = end < 0 ? [words, []] : [words.slice(0, end), words.slice(end + 1)];
  const section = sectionOf(own);
  if (!section) return [`${text}: no such command`];
  const rest = own.slice(section.words);
  const flags = rest.filter((word) => /^--?\w/.test(word));
  const given = rest.filter((word, index) => !word.startsWith('-') && !takesValue(rest[index - 1]));
  const missing = section.required - given.length - behind.length;
  return [
    ...(missing > 0 ? [`${text}: ${missing} arguments are missing`] : []),
    ...flags.filter((flag) => !section.help.includes(`${flag}`)).map((flag) => `${text}: ${flag} is not taken`),
  ];
}

/** The words of a command, as a shell gives them to the program. */
export function wordsOf(text: string, read = (word: string) => word.replaceAll("'", '')): string[] {
  return (text.match(/(?:'[^']*'|[^\s'])+/g) ?? []).map(read);
}

const SWITCHES = ['--follow', '--create', '--list', '--values'];
const takesValue = (word: string | undefined): boolean =>
  word !== undefined && word.startsWith('--') && !SWITCHES.includes(word);

interface Section {
  /** How many words the command itself has. */
  words: number;
  required: number;
  help: string;
}

function sectionOf(words: readonly string[]): Section | null {
  if (words[1] === 'api') return operationSection(words[2] ?? '');
  const help = readFileSync(path.join(ROOT, 'clients/cli/HELP.md'), 'utf8');
  for (const count of [3, 2]) {
    const title = `## ${words.slice(0, count).join(' ')}\n`;
    const found = help.split(/(?=^## )/m).find((section) => section.startsWith(title));
    if (!found) continue;
    const usage = found.split('\n').find((line) => line.startsWith('  svc')) ?? '';
    return { words: count, required: usage.match(/<\w+>/g)?.length ?? 0, help: found };
  }
  return null;
}

/** `svc api <operation> <ids of its path>`. */
function operationSection(name: string): Section | null {
  const flags = '--field --project --follow --list';
  if (name === '--list') return { words: 2, required: 0, help: flags };
  for (const file of ['operations.tsv', 'extensions.tsv']) {
    const rows = readFileSync(path.join(ROOT, 'docs/contract', file), 'utf8')
      .trim()
      .split('\n');
    const row = rows.map((line) => line.split('\t')).find(([, id]) => id === name);
    if (row) return { words: 3, required: row.join(' ').match(/\{\w+\}/g)?.length ?? 0, help: flags };
  }
  return null;
}
