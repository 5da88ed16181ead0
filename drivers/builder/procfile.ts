// A Procfile: one process type a line, `type: command`. `release` is what runs once before a new version serves.
import { limits } from '../../core/limits';
import { BuildError } from '../builder';

export interface Procfile {
  processes: Record<string, string>;
  release_command: string | null;
}

const commandMax = 2000;

/** @throws BuildError that names the line */
export function readProcfile(text: string): Procfile {
  const found = new Map<string, string>();
  text.split(/\r?\n/).forEach((line, i) => {
    if (/^\s*(#.*)?$/.test(line)) return;
    const [type, command] = entry(line, i + 1);
    if (found.has(type)) throw wrong(i + 1, `the process type ${type} stands there twice`);
    found.set(type, command);
  });
  const { release = null, ...processes } = Object.fromEntries(found);
  if (found.size === 0)
    throw new BuildError('The Procfile is empty. Write a line like `web: node server.js` into it, or remove it.');
  if (found.size > limits.processesPerApplication)
    throw new BuildError(`The Procfile has more than ${limits.processesPerApplication} process types.`);
  return { processes, release_command: release };
}

function entry(line: string, number: number): [type: string, command: string] {
  const [, type = '', command = ''] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
  if (type === '') throw wrong(number, `${JSON.stringify(line.slice(0, 60))} is not of the form \`type: command\``);
  if (!/^[a-z][a-z0-9_-]{0,29}$/.test(type))
    throw wrong(
      number,
      `the process type ${JSON.stringify(type.slice(0, 60))} must be lower-case letters, digits, - and _, 30 at most, and begin with a letter`,
    );
  if (command === '') throw wrong(number, `the process type ${type} has no command`);
  if (command.length > commandMax || /\p{Cc}/u.test(command.replaceAll('\t', ' ')))
    throw wrong(
      number,
      `the command of ${type} is longer than ${commandMax} characters or has control characters in it`,
    );
  return [type, command];
}

function wrong(line: number, what: string): BuildError {
  return new BuildError(`Procfile, line ${line}: ${what}.`);
}
