#!/usr/bin/env node
// The operator's command: users, keys, projects, variables, probes, routes, secrets, domain, doctor, upgrade. Exit code
// 1: could not be done; 2: wrong command line.
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { version } from '../../package.json';
import { Problem, type FieldError } from '../../core/errors';
import { StartupError } from '../../core/startup_error';
import { CommandError } from '../command_error';
import { commands as audit } from './audit';
import { commands as backup } from './backup';
import { UsageError, type Command, type Input } from './command';
import { commands as disk } from './disk';
import { commands as doctor } from './doctor';
import { commands as env } from './env';
import { commands as key } from './key';
import { terminalText, printed } from './print';
import { commands as oauthClient } from './oauth_client';
import { commands as probe } from './probe';
import { commands as project } from './project';
import { commands as releaseImage } from './release_image';
import { commands as routes } from './routes';
import { commands as secrets } from './secrets';
import { commands as setup } from './setup';
import { suggestCommands } from './suggestion';
import { commands as upgrade } from './upgrade';
import { commands as user } from './user';

const commands = [
  ...[...user, ...key, ...project, ...env, ...oauthClient, ...probe, ...releaseImage, ...routes, ...secrets],
  ...setup,
  ...doctor,
  ...upgrade,
  ...backup,
  ...disk,
  ...audit,
];

async function main(args: string[]): Promise<number> {
  if (args.length === 1 && ['--version', '-v', 'version'].includes(args[0] as string)) {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const command = find(args);
  if (!command) {
    if (args.length && args[0] !== 'help' && !args.some(isHelp)) throw unknownCommand(args);
    process.stdout.write(help());
    return 0;
  }
  if (args.some(isHelp)) {
    process.stdout.write(helpOf(command));
    return 0;
  }
  const { input, json } = read(command, args.slice(command.name.split(' ').length));
  const output = await command.run(input);
  if (!output.isPrinted) process.stdout.write(printed(output, json ? 'json' : 'table'));
  return output.ok === false ? 1 : 0;
}

/** What stands behind an option may be a secret, and no command begins with one. */
function unknownCommand(args: string[]): UsageError {
  const first = args.findIndex((arg) => arg.startsWith('-'));
  const typed = args.slice(0, first < 0 ? args.length : first);
  if (!typed.length) return new UsageError(`unknown option ${args[0]?.split('=')[0]}`);
  const names = suggestCommands(
    typed,
    commands.map(({ name }) => name),
  );
  const suggestion = names.length ? `; did you mean ${names.join(' or ')}?` : '';
  return new UsageError(`unknown command ${typed.join(' ')}${suggestion}`);
}

function find(args: string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((arg, i) => args[i] === arg));
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h';
}

function read(command: Command, args: string[]): { input: Input; json: boolean } {
  const options: ParseArgsConfig['options'] = { json: { type: 'boolean' } };
  for (const [name, { value }] of Object.entries(command.options ?? {}))
    options[name] = { type: value === null ? 'boolean' : 'string' };
  const { values, positionals } = parsed({ args, options, allowPositionals: true });
  const expected = command.argument ? 1 : 0;
  const least = command.isOptional ? 0 : expected;
  if (positionals.length < least || (positionals.length > expected && !command.more))
    throw new UsageError(
      command.argument ? `${command.name} needs one ${command.argument}` : `${command.name} takes no ${positionals[0]}`,
    );
  for (const [name, { required }] of Object.entries(command.options ?? {})) {
    if (required && values[name] === undefined) throw new UsageError(`${command.name} needs --${name}`);
  }
  const text = (name: string): string | undefined => values[name] as string | undefined;
  return {
    input: { argument: positionals[0] ?? '', more: positionals.slice(1), text, has: (flag) => values[flag] === true },
    json: values.json === true,
  };
}

function parsed(config: ParseArgsConfig): { values: Record<string, unknown>; positionals: string[] } {
  try {
    return parseArgs(config) as { values: Record<string, unknown>; positionals: string[] };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function help(): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'Usage: platform <command> [options]',
    '',
    ...lines,
    '',
    'Every command takes --json and --help. Settings are those of the service: environment variables.',
    'The version of the release: platform --version',
    'To deploy applications, use another command: svc --help',
    '',
  ].join('\n');
}

function helpOf({ name, summary, argument, isOptional, more, options = {} }: Command): string {
  const first = isOptional ? ` [${argument}]` : ` <${argument}>`;
  const positionals = `${argument ? first : ''}${more ? ` [${more} ...]` : ''}`;
  const lines = Object.entries(options).map(
    ([option, { value, description, required }]) =>
      `  --${option}${value ? ` <${value}>` : ''}${required ? ' (needed)' : ''}\n      ${description}`,
  );
  return [
    `Usage: platform ${name}${positionals}${lines.length ? ' [options]' : ''} [--json]`,
    '',
    summary,
    '',
    ...lines,
    '',
  ].join('\n');
}

function printError(error: unknown): number {
  const usage = error instanceof UsageError;
  const text = terminalText(reason(error));
  const help = text.endsWith('?') ? ' See platform --help' : '; see platform --help';
  process.stderr.write(`platform: ${text}${usage ? help : ''}\n`);
  return usage ? 2 : 1;
}

function reason(error: unknown): string {
  if (error instanceof Problem) {
    const fields = (error.members.errors as FieldError[] | undefined)?.map(({ field, detail }) => `${field} ${detail}`);
    return fields?.join('; ') ?? error.detail;
  }
  if (error instanceof StartupError || error instanceof CommandError || error instanceof UsageError)
    return error.message;
  return error instanceof Error ? String(error.stack) : String(error);
}

main(process.argv.slice(2))
  .catch(printError)
  .then(
    (code) => {
      process.exitCode = code;
    },
    () => process.exit(1),
  );
