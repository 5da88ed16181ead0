// A Procfile: one process type per line, `type: command`. `release` runs once before a new version serves requests.
import { limits } from '../../core/limits';
import { BuildError } from '../builder';

export interface Procfile {
  processes: Record<string, string>;
  release_command: string | null;
}

const commandMax = 2000;

/** @throws BuildError with the line number */
export function parseProcfile(text: string): Procfile {
  const found = new Map<string, string>();
  text.split(/\r?\n/).forEach((line, i) => {
    if (/^\s*(#.*)?$/.test(line)) return;
    const [type, command] = parseEntry(line, i + 1);
    if (found.has(type)) throw procfileError(i + 1, `defines the process type ${type} a second time`);
    found.set(type, command);
  });
  const { release = null, ...processes } = Object.fromEntries(found);
  if (found.size === 0)
    throw new BuildError('The Procfile is empty. Add a line like `web: node server.js`, or remove the file.');
  if (found.size > limits.processesPerApplication)
    throw new BuildError(`The Procfile has more than ${limits.processesPerApplication} process types.`);
  return { processes, release_command: release };
}

function parseEntry(line: string, number: number): [type: string, command: string] {
  const [, type = '', stated = ''] = /^([^:\s]+)\s*:(.*)$/.exec(line.trim()) ?? [];
  const command = stated.trim();
  if (type === '')
    throw procfileError(number, `is not of the form \`type: command\`: ${JSON.stringify(line.slice(0, 60))}`);
  if (!/^[a-z][a-z0-9_-]{0,29}$/.test(type))
    throw procfileError(
      number,
      `names the process type ${JSON.stringify(type.slice(0, 60))}. ` +
        'A process type begins with a lower-case letter and has at most 30 lower-case letters, digits, - and _',
    );
  if (command === '') throw procfileError(number, `has no command for the process type ${type}`);
  if (command.length > commandMax || /\p{Cc}/u.test(command.replaceAll('\t', ' ')))
    throw procfileError(
      number,
      `has a command that is longer than ${commandMax} characters or contains control characters`,
    );
  return [type, command];
}

function procfileError(line: number, what: string): BuildError {
  return new BuildError(`Line ${line} of the Procfile ${what}.`);
}
