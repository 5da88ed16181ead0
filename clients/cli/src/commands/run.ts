// run and ssh: a command in the environment of the application, beside its instances. exec: within one of them.
import { duration, sessionCommand, several, text, toggle, words } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { noteExitCode } from '../outcome';
import { printOne, type Row } from '../output/print';
import { attachToRun } from '../run/attach';
import type { Session } from '../session';
import { shellWord } from '../output/shell_word';

type ExecFlags = {
  readonly instance?: string | undefined;
  readonly env?: readonly string[] | undefined;
  readonly timeout?: number | undefined;
};
type RunFlags = {
  readonly detach?: boolean | undefined;
  readonly preview?: string | undefined;
  readonly type?: string | undefined;
  readonly process?: string | undefined;
  readonly env?: readonly string[] | undefined;
  readonly timeout?: number | undefined;
};

const PLACE = {
  preview: text('Run in a preview', 'id'),
  type: text('Size, such as m-1gb', 'size'),
  process: text('Process type that gives the size', 'type'),
  timeout: duration('End the command after this time. Default: 1h'),
};

export const run = sessionCommand<RunFlags, string[]>({
  brief: 'Run a command once in the environment of the application',
  text:
    'The command has the files, variables and volumes of the version in service, and a copy of the files of its own. ' +
    'What stands here as standard input is that of the command; at a terminal it gets a terminal. svc ends with the ' +
    'exit code of the command.\n\n' +
    '  svc run -- npm run migrate\n' +
    "  svc run 'echo $DATABASE_URL'\n" +
    '  svc run --env BATCH=100 --timeout 12h --detach -- node nightly.js\n' +
    '  svc run -- psql < query.sql',
  flags: {
    detach: toggle('Only start it, and print the run'),
    env: several('Further variable, such as BATCH=100', 'name=value'),
    ...PLACE,
  },
  args: words('command', 'Command; one word is a line for the shell', 1),
  async run(session, flags, ...command) {
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
    const input = flags.detach ? { detached: true } : isTerminal ? { tty: true } : { detached: false };
    const row = await createRun(session, flags, { command: toLine(command), ...input });
    if (flags.detach) return printOne(row, flags);
    noteExitCode((await attachToRun(session, row)) ?? EXIT.failed);
  },
});

/** What images and hosts have. */
const SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -i; else exec sh -i; fi';

export const ssh = sessionCommand<Omit<RunFlags, 'detach' | 'env'>>({
  brief: 'Open a shell in the environment of the application',
  text:
    'A shell with the files, variables and volumes of the version in service, beside the instances: it sees none of ' +
    'their processes, and what it changes in its copy of the files ends with it. For a shell within a running ' +
    'instance: svc exec',
  flags: PLACE,
  output: false,
  async run(session, flags) {
    if (!process.stdin.isTTY || !process.stdout.isTTY)
      throw usageFailure('A shell needs a terminal.', 'Without one: svc run -- <command>');
    noteExitCode(
      (await attachToRun(session, await createRun(session, flags, { command: SHELL, tty: true }))) ?? EXIT.failed,
    );
  },
});

export const exec = sessionCommand<ExecFlags, string[]>({
  brief: 'Run a command, or open a shell, within a running instance',
  text:
    'The command sees the processes, files and network of the instance, shares its memory and its other limits, and ' +
    'ends with it. Without a command it is a shell. At a terminal the command gets a terminal; else its input and ' +
    'output are what stands here, byte for byte. svc ends with the exit code of the command.\n\n' +
    '  svc exec\n' +
    '  svc exec --instance worker -- ps aux\n' +
    '  svc exec -- cat /data/orders.csv > orders.csv',
  flags: {
    instance: text(
      'Id, process type, or process type and number, as in web.2 (default: the oldest of web)',
      'instance',
    ),
    env: several('Further variable, such as BATCH=100', 'name=value'),
    timeout: PLACE.timeout,
  },
  args: words('command', 'Command; one word is a line for the shell', 0),
  async run(session, flags, ...command) {
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
    if (!command.length && !isTerminal)
      throw usageFailure('A shell needs a terminal.', 'Without one: svc exec -- <command>');
    const instance_id = await findInstance(session, flags.instance);
    const input = isTerminal ? { tty: true } : { detached: false };
    const { env, timeout } = flags;
    const line = command.length ? toLine(command) : SHELL;
    const row = await createRun(session, { env, timeout }, { command: line, instance_id, ...input });
    noteExitCode((await attachToRun(session, row)) ?? EXIT.failed);
  },
});

/** @throws Failure where the application has no such instance that runs */
async function findInstance(session: Session, name = 'web'): Promise<string> {
  if (name.startsWith('ins_')) return name;
  const path = `/v2/applications/${await session.application()}/instances`;
  const all = await session.list(path);
  const running = all.filter(({ status }) => status === 'running' || status === 'starting').reverse();
  const [, type, number = '1'] = /^(.+?)(?:\.(\d{1,5}))?$/.exec(name) ?? [];
  const found = running.filter(({ process_type }) => process_type === type)[Number(number) - 1];
  if (found) return String(found.id);
  const types = [...new Set(running.map(({ process_type }) => String(process_type)))].join(', ');
  throw new Failure(`No instance "${name}" is running.`, EXIT.notFound, [
    types ? `There are instances of: ${types}` : 'See them: svc ps',
    'A command beside the instances: svc run -- <command>',
  ]);
}

async function createRun(session: Session, flags: RunFlags, input: object): Promise<Row> {
  const env = (flags.env ?? []).map((given) => parseVariable(given));
  const body = {
    ...input,
    ...(flags.preview && { preview_id: flags.preview }),
    ...(flags.type && { application_type: flags.type }),
    ...(flags.process && { process_type: flags.process }),
    ...(flags.timeout && { timeout_seconds: flags.timeout }),
    ...(env.length && { env }),
  };
  return session.request('POST', `/v2/applications/${await session.application()}/runs`, { body });
}

function parseVariable(given: string): { key: string; value: string } {
  const [, key, value = ''] = /^([A-Za-z_][A-Za-z0-9_]*)=([^]*)$/.exec(given) ?? [];
  if (key === undefined) throw usageFailure('--env takes NAME=value.');
  return { key, value };
}

/** One word is a line of the shell as it stands; several are a program and its arguments. */
function toLine(command: readonly string[]): string {
  if (command.length === 1) return command[0] as string;
  return command.map(shellWord).join(' ');
}
