// What the terminal is like: width, colours, questions. Texts of others are cleaned before they reach it.
import * as readline from 'node:readline';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice, setOverwritten, silentSince } from './notice';

export const isTerminal = (): boolean => process.stdout.isTTY === true;
/** Whether a person can be asked. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;
/** Progress that overwrites itself is for people, not for the logs of CI. */
const showsProgress = (): boolean => process.stderr.isTTY === true && !process.env.CI;

/** Columns of the terminal; 80 where it does not say. */
export const columns = (): number => Math.max(20, process.stdout.columns || Number(process.env.COLUMNS) || 80);

type Colour = 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'dim' | 'bold';
const CODES: Record<Colour, number> = {
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  dim: 2,
  bold: 1,
};

/** Colours the text where the stream is a terminal and nobody has set NO_COLOR (https://no-color.org). */
export function colour(text: string, name: Colour, stream: { isTTY?: boolean } = process.stdout): string {
  if (!stream.isTTY || process.env.NO_COLOR || process.env.TERM === 'dumb') return text;
  return `\x1b[${CODES[name]}m${text}\x1b[0m`;
}

const STATE_COLOURS: [Colour, RegExp][] = [
  [
    'green',
    /^(?:active|available|completed|create|enabled|healthy|in_use|issued|ok|running|succeeded|valid|verified)$/,
  ],
  ['red', /^(?:crashed|delete|error|expired|failed|lost|replace|timed_out|unhealthy)$/],
  ['dim', /^(?:canceled|deleted|disabled|none|skipped|stopped|superseded)$/],
];

/** A status in its colour: what is well, what is not, what is over, and, in yellow, what is under way. */
export function colourState(text: string): string {
  const state = text.trim();
  if (!/^[a-z_]+$/.test(state)) return text;
  return colour(text, STATE_COLOURS.find(([, pattern]) => pattern.test(state))?.[0] ?? 'yellow');
}

/** Without what moves the cursor or changes the terminal: lines of logs and names come from others. */
export function clean(text: string): string {
  return text.replace(
    /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g,
    '',
  );
}

/** Asks for a line. @throws Failure where nobody can be asked */
export function ask(question: string): Promise<string> {
  requireTerminal(question);
  const lines = readline.createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  return new Promise((resolve, reject) => {
    lines.once('SIGINT', () => lines.close());
    lines.once('close', () => reject(new Failure('Nothing was done.', EXIT.interrupted)));
    lines.question(question, (answer) => {
      resolve(answer.trim());
      lines.close();
    });
  });
}

/** Asks for a line that is not shown. */
export function askSecret(question: string): Promise<string> {
  requireTerminal(question);
  const { stdin } = process;
  // First, or what is typed at once is shown.
  stdin.setRawMode(true);
  process.stderr.write(question);
  stdin.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    let text = '';
    const end = (): void => {
      stdin.setRawMode(false);
      stdin.pause();
      stdin.removeListener('data', read);
      process.stderr.write('\n');
    };
    const read = (part: string): void => {
      for (const character of part) {
        if (character === '\r' || character === '\n') return (end(), resolve(text));
        if (character === '\x03' || character === '\x04')
          return (end(), reject(new Failure('Nothing was done.', EXIT.interrupted)));
        text = character === '\x7f' || character === '\b' ? text.slice(0, -1) : text + character;
      }
    };
    stdin.on('data', read);
    stdin.resume();
  });
}

function requireTerminal(question: string): void {
  if (canAsk()) return;
  throw usageFailure(`"${question.trim()}" cannot be asked without a terminal.`, 'Pass what is asked for as a flag.');
}

/** Goes on after `y`, and with `--yes` without a question. */
export async function confirm(question: string, flags: { yes?: boolean | undefined }): Promise<void> {
  if (flags.yes) return;
  if (!canAsk()) throw usageFailure('This needs a confirmation.', 'Pass --yes to go on without a question.');
  if (!/^y(es)?$/i.test(await ask(`${question} [y/N] `))) throw new Failure('Nothing was done.');
}

/** Goes on where the person enters the name of what will be lost; `--yes` answers too. */
export async function confirmByName(what: string, name: string, flags: { yes?: boolean | undefined }): Promise<void> {
  if (flags.yes) return;
  if (!canAsk()) throw usageFailure(`${what} Pass --yes to go on.`);
  if ((await ask(`${what}\nEnter ${name} to go on: `)) !== name)
    throw new Failure('The name does not match. Nothing was done.');
}

/** Reads standard input to its end. */
export async function readStandardInput(): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

const QUIET_MS = 30_000;

export interface Progress {
  update(text: string): void;
  stop(): void;
}

/**
 * Shows the elapsed time while something goes on: on a terminal in a line that moves; elsewhere, as in the log of CI,
 * in a line of its own when nothing was written for half a minute.
 */
export function startProgress(text: string): Progress {
  const began = Date.now();
  let shown = text;
  const line = (): string => `${shown} ${Math.round((Date.now() - began) / 1000)} s`;
  if (!showsProgress()) {
    const timer = setInterval(() => silentSince() >= QUIET_MS && notice(`… ${line()}`), QUIET_MS / 6);
    return { update: (next) => void (shown = next), stop: () => clearInterval(timer) };
  }
  const draw = (): void => void process.stderr.write(`\r\x1b[K${line().slice(0, Math.max(10, columns() - 1))}`);
  const timer = setInterval(draw, 500);
  setOverwritten(true);
  return {
    update(next) {
      shown = next;
      draw();
    },
    stop() {
      clearInterval(timer);
      setOverwritten(false);
      process.stderr.write('\r\x1b[K');
    },
  };
}
