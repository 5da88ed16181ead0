// The commands, and what is asked of all of them.
import { generateHelpTextForAllCommands, run as runApplication } from '@stricli/core';
import { buildSvc, LISTED } from './application';
import { printCompletions } from './commands/completion';
import { EXIT, usageFailure } from './failure';
import { findForeign } from './foreign';
import { exitCodeOfCommand } from './outcome';
import { printOperations } from './operations/api';
import { reportFailure } from './output/failures';
import { rootHelp } from './root_help';

const USAGE_CODES = new Set([-4, -5]);

/** Runs a command line to its end, and sets the exit code. */
export async function runCommand(words: string[]): Promise<void> {
  try {
    // `svc help env set` is `svc env set --help`.
    await run(words[0] === 'help' ? [...words.slice(1), '--help'] : words);
  } catch (error) {
    process.exitCode = await reportFailure(error, { json: false });
  }
}

const ROOT_FLAGS = new Set(['--help', '-h', '--version', '-v', '--help-all', '--helpAll', '-H']);

async function run(given: string[]): Promise<void> {
  const [first, second] = given;
  if (first === '__help') return print(allHelp());
  if (first === '__complete') return printCompletions(buildSvc(true), given.slice(1));
  if (first === 'api') {
    if (second === undefined || second === '--help' || second === '-h') return print(API_HELP);
    if (second === '--list') return printOperations({ json: given.includes('--json') });
  }
  if (first?.startsWith('-') && !ROOT_FLAGS.has(first))
    throw usageFailure(`Flags stand behind the command, and ${first} is before it.`, 'Example: svc status --app shop');
  const foreign = findForeign(given);
  if (foreign) throw usageFailure(`There is no command \`${foreign.said}\` here. Use \`${foreign.own}\`.`);
  const shell = {
    process: { stdout: process.stdout, stderr: process.stderr, env: {}, exitCode: null as number | null },
  };
  await runApplication(buildSvc(first === 'api'), first === 'api' ? given.map(toKebab) : toOwn(given), shell);
  const code = shell.process.exitCode ?? 0;
  process.exitCode = USAGE_CODES.has(code) ? EXIT.usage : code < 0 ? EXIT.failed : code || exitCodeOfCommand();
}

/** `svc db` lists, and `svc logs --tail` follows, as elsewhere. */
function toOwn(given: readonly string[]): string[] {
  const [first = '', second, ...rest] = given;
  const isFlag =
    second === undefined || (second.startsWith('-') && !given.some((word) => ['--help', '-h'].includes(word)));
  if (LISTED.has(first) && isFlag) return [first, 'ls', ...given.slice(1)];
  if (first === 'logs') return [first, ...[...(second === undefined ? [] : [second]), ...rest].map(toFollow)];
  return [...given];
}

const toFollow = (word: string): string => (word === '--tail' || word === '-t' ? '--follow' : word);

/** Fields have underscores in the API, flags have hyphens: both are taken. */
function toKebab(word: string): string {
  return word.replace(/^--[a-z_]+/, (flag) => `--${flag.slice(2).replaceAll('_', '-')}`);
}

/** HELP.md: the help of each command but those of `api`. */
function allHelp(): string {
  const fence = (text: string): string => `\`\`\`text\n${text.trimEnd()}\n\`\`\``;
  const texts = generateHelpTextForAllCommands(buildSvc(false)).map(([route, text]) => `## ${route}\n\n${fence(text)}`);
  return ['# Help of svc', fence(rootHelp()), '## svc api', fence(API_HELP), ...texts].join('\n\n');
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

const API_HELP = `svc api calls any operation of the API.

Usage: svc api <operation> [ids of the path] [flags]

  svc api --list                     All operations
  svc api <operation> --help         What an operation takes
  svc api listVolumes --status available
  svc api createVolume --field name=uploads --field size_gb=1
  svc api updateVolume vol_… --data '{"size_gb": 2}'
  svc api createDatabase --data @database.json --dry-run
  svc api getVolume vol_… --field size_gb
  svc api listVolumes --curl         The request as a curl command

In a linked folder, the id of the application or the project in a path can be left out.`;
