// The text of a file of settings with those of `platform setup` in it. All other lines stay as they are.
import { parseEnv } from 'node:util';
import { SetupError } from './setup_error';

/** install.sh writes these two lines, too. */
const BEGIN = '# Written by `platform setup`, which replaces these lines:';
const END = '# End of what `platform setup` has written.';
const BLOCK = new RegExp(`^${escape(BEGIN)}\n[^]*?^${escape(END)}\n?`, 'm');
/** Values that need no quotes for Node's parser, nor for a shell. */
const PLAIN = /^[\w./:@,+-]+$/;

export interface Conflict {
  name: string;
  /** Of the operator's own line. */
  value: string;
  wanted: string;
}

export function readSettings(text: string): Record<string, string> {
  return parseEnv(text) as Record<string, string>;
}

/** Lines that the operator has written himself and that say otherwise. */
export function conflictsWith(text: string, wanted: Record<string, string>): Conflict[] {
  const own = readSettings(text.replace(BLOCK, ''));
  return Object.entries(wanted).flatMap(([name, value]) => {
    const found = own[name]?.trim();
    return found && found !== value ? [{ name, value: found, wanted: value }] : [];
  });
}

/**
 * Puts the settings into the block of `platform setup`, at its place or at the end. What the operator's own lines say
 * already is not repeated, and lines that say otherwise become comments.
 * @throws SetupError where the text would then mean something else: lines that cannot be told apart
 */
export function withSettings(text: string, wanted: Record<string, string>): string {
  const conflicts = conflictsWith(text, wanted).map(({ name }) => name);
  const others = text.replace(/\r\n/g, '\n').replace(BLOCK, PLACE);
  const own = commented(others, conflicts);
  const remaining = readSettings(own);
  const lines = Object.entries(wanted)
    .filter(([name, value]) => remaining[name]?.trim() !== value)
    .map(([name, value]) => `${name}=${PLAIN.test(value) ? value : JSON.stringify(value)}\n`);
  const block = lines.length ? `${BEGIN}\n${lines.join('')}${END}\n` : '';
  const changed = own.includes(PLACE) ? own.replace(PLACE, () => block) : `${endedLine(own)}${block}`;
  requireSame(changed, { ...withoutNames(readSettings(text.replace(BLOCK, '')), conflicts), ...wanted });
  return changed;
}

const PLACE = '# \0\n';

function commented(text: string, names: readonly string[]): string {
  return names.reduce(
    (lines, name) =>
      lines.replace(new RegExp(`^[ \\t]*(?:export[ \\t]+)?${name}[ \\t]*=`, 'gm'), (line) => `# ${line}`),
    text,
  );
}

function endedLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function withoutNames(settings: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !names.includes(name)));
}

function requireSame(text: string, expected: Record<string, string>): void {
  const found = readSettings(text);
  const wrong = Object.keys({ ...found, ...expected }).find((name) => found[name]?.trim() !== expected[name]?.trim());
  if (wrong === undefined) return;
  throw new SetupError(
    `The file of settings has lines of ${wrong} that cannot be changed safely, such as a value over several lines. ` +
      'Correct them by hand, then call this again.',
  );
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
