// How a command is declared: its flags beside those that all have, and what it runs.
import {
  buildCommand,
  type Aliases,
  type BaseArgs,
  type BaseFlags,
  type Command,
  type CommandContext,
  type FlagParametersForType,
  type TypedPositionalParameters,
} from '@stricli/core';
import { usageFailure } from './failure';
import { runReported } from './outcome';
import type { OutputFlags } from './output/print';
import { openSession, type Session, type TargetFlags } from './session';

export type Shell = CommandContext;
interface CommonFlags extends TargetFlags, OutputFlags {
  readonly yes?: boolean | undefined;
}

/** `server`: no project. `project`: and the project. `app`: and the application. */
type Target = 'server' | 'project' | 'app';

interface CommandSpec<Flags extends BaseFlags, Args extends BaseArgs> {
  brief: string;
  /** What the help says beyond the brief. */
  text?: string;
  target?: Target;
  /** Commands that ask before they destroy take `--yes`. */
  asks?: boolean;
  /** Whether it prints data. */
  output?: boolean;
  flags?: FlagParametersForType<Flags, Shell>;
  aliases?: Aliases<keyof (Flags & CommonFlags) & string>;
  args?: TypedPositionalParameters<Args, Shell>;
  run(flags: Flags & CommonFlags, ...args: Args): Promise<void>;
}

export const text = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: String, brief, placeholder, optional: true }) as const;
export const toggle = (brief: string) => ({ kind: 'boolean', brief, optional: true, withNegated: false }) as const;
export const choice = <Value extends string>(brief: string, values: readonly Value[]) =>
  ({ kind: 'enum', values, brief, optional: true }) as const;
export const several = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: String, brief, placeholder, optional: true, variadic: true }) as const;
export const integer = (brief: string, min = 0, max = Number.MAX_SAFE_INTEGER) =>
  ({
    kind: 'parsed',
    parse: (given: string) => parseInteger(given, min, max),
    brief,
    placeholder: 'n',
    optional: true,
  }) as const;
/** Seconds, from `90`, `90s`, `15m`, `2h` or `1d`. */
export const duration = (brief: string) =>
  ({ kind: 'parsed', parse: parseDuration, brief, placeholder: 'time', optional: true }) as const;
export const word = (placeholder: string, brief: string) => ({ parse: String, placeholder, brief }) as const;
export const maybe = (placeholder: string, brief: string) =>
  ({ parse: String, placeholder, brief, optional: true }) as const;
export const words = (placeholder: string, brief: string, minimum = 0) =>
  ({ kind: 'array', minimum, parameter: { parse: String, placeholder, brief } }) as const;
export const tuple = <const Parameters extends readonly unknown[]>(...parameters: Parameters) =>
  ({ kind: 'tuple', parameters }) as const;

const SERVER_FLAGS = {
  url: text('Address of the server (SVC_URL)', 'url'),
  token: text('Token in place of the login (SVC_TOKEN)', 'token'),
};
const PROJECT_FLAG = { project: text('Name or id of the project (SVC_PROJECT)', 'project') };
const APP_FLAG = { app: text('Name or id of the application (SVC_APP)', 'app') };
const OUTPUT_FLAGS = {
  json: toggle('Print JSON'),
  field: text('Print one field of the answer, such as source.type', 'path'),
};
const YES_FLAG = { yes: toggle('Go on without a question') };

export function command<const Flags extends BaseFlags = NonNullable<unknown>, const Args extends BaseArgs = []>(
  spec: CommandSpec<Flags, Args>,
): Command<Shell> {
  const { target = 'app', output = true, asks = false } = spec;
  const flags = {
    ...spec.flags,
    ...(asks && YES_FLAG),
    ...(target === 'app' && APP_FLAG),
    ...(target !== 'server' && PROJECT_FLAG),
    ...SERVER_FLAGS,
    ...(output && OUTPUT_FLAGS),
  };
  const aliases = { ...(target === 'app' && { a: 'app' }), ...(asks && { y: 'yes' }), ...spec.aliases };
  return buildCommand({
    docs: {
      brief: spec.brief,
      ...(spec.text && { fullDescription: `${spec.brief}\n\n${wrapText(spec.text)}` }),
      customUsage: [usageOf(spec.args as Arguments | undefined)],
    },
    parameters: { flags, aliases, ...(spec.args && { positional: spec.args }) },
    func: ((given: Flags & CommonFlags, ...args: Args) =>
      runReported(() => spec.run(given, ...args), given.json === true)) as never,
  } as never) as Command<Shell>;
}

interface Argument {
  placeholder?: string;
  optional?: boolean;
}
type Arguments = { kind: 'tuple'; parameters: Argument[] } | { kind: 'array'; parameter: Argument; minimum?: number };

function usageOf(args: Arguments | undefined): string {
  const nameOf = ({ placeholder, optional }: Argument): string => (optional ? `[${placeholder}]` : `<${placeholder}>`);
  if (!args) return '[flags]';
  if (args.kind === 'tuple') return [...args.parameters.map(nameOf), '[flags]'].join(' ');
  return `${nameOf({ ...args.parameter, optional: !args.minimum })}... [flags]`;
}

const HELP_COLUMNS = 79;

/** Paragraphs as lines; those that are indented stay as they are. */
function wrapText(text: string): string {
  return text.replace(/^\S.*$/gm, (paragraph) => {
    const lines = [''];
    for (const one of paragraph.split(' ')) {
      const longer = `${lines.at(-1)} ${one}`.trimStart();
      if (longer.length <= HELP_COLUMNS) lines[lines.length - 1] = longer;
      else lines.push(one);
    }
    return lines.join('\n');
  });
}

/** A command that needs a server. */
export function sessionCommand<const Flags extends BaseFlags = NonNullable<unknown>, const Args extends BaseArgs = []>(
  spec: Omit<CommandSpec<Flags, Args>, 'run'> & {
    run(session: Session, flags: Flags & CommonFlags, ...args: Args): Promise<void>;
  },
): Command<Shell> {
  return command<Flags, Args>({ ...spec, run: (flags, ...args) => spec.run(openSession(flags), flags, ...args) });
}

export function parseInteger(given: string, min: number, max: number): number {
  const value = Number(given);
  if (!/^-?\d+$/.test(given) || value < min || value > max)
    throw usageFailure(
      max === Number.MAX_SAFE_INTEGER
        ? `It must be a whole number of at least ${min}.`
        : `It must be a whole number from ${min} to ${max}.`,
    );
  return value;
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

export function parseDuration(given: string): number {
  const [, count, unit = 's'] = /^(\d+)([smhd])?$/.exec(given) ?? [];
  if (count === undefined) throw usageFailure('It must be a time such as 90s, 15m, 2h or 1d.');
  return Number(count) * (UNITS[unit] as number);
}
