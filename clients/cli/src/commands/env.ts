// env: ls, set, unset, pull, push, edit.
import { buildRouteMap } from '@stricli/core';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { choice, maybe, sessionCommand, toggle, tuple, words, type Shell } from '../command';
import { writePrivateFile } from '../config/files';
import { formatDotenv, namesForPython, namesWithoutForm, parseDotenv } from '../dotenv';
import { EXIT, Failure, ProblemFailure, usageFailure } from '../failure';
import { readText } from '../operations/body';
import { notice } from '../output/notice';
import { printRows, type Row } from '../output/print';
import { askSecret, canAsk, confirm, readStandardInput } from '../output/terminal';
import { problemOfGraphql, type GraphqlError, type Session } from '../session';
import { editorInvocation } from '../system';

type Variables = Map<string, string>;
type Availability = 'build' | 'runtime' | 'both';
const AT = choice('When the variables are available', ['build', 'runtime', 'both']);
const EFFECT = 'The change takes effect with the next deployment or restart: svc restart';

const ls = sessionCommand<{ readonly values?: boolean | undefined }>({
  brief: 'List variables',
  text: 'Values are shown with --values alone.',
  flags: { values: toggle('Show the values') },
  async run(session, flags) {
    const application = await session.application();
    const rows = await listVariables(session, application);
    const nameOf = rows.some((row) => row.managed_by) ? await attachmentNames(session, application) : String;
    const shown = rows.map(({ value, ...rest }) => (flags.values ? { ...rest, value } : rest));
    const columns = {
      NAME: 'key',
      ...(flags.values && { VALUE: 'value' }),
      AVAILABLE: 'available_at',
      'SET BY': (row: Row) => row.managed_by && nameOf(row.managed_by),
    };
    printRows(shown, columns, flags);
  },
});

/** The database of an attachment, by its name. What the token may not see keeps its id. */
async function attachmentNames(session: Session, application: string): Promise<(id: unknown) => string> {
  const [attachments, databases] = await Promise.all([
    session.list(`/v2/applications/${application}/attachments`),
    session.list('/v2/databases'),
  ]).catch((): [Row[], Row[]] => [[], []]);
  return (id) => {
    const database = attachments.find((one) => one.id === id)?.database_id;
    return String(databases.find((one) => one.id === database)?.name ?? id);
  };
}

const set = sessionCommand<{ readonly at?: Availability | undefined }, string[]>({
  brief: 'Set variables, all of them or none',
  text:
    'NAME=value, NAME=@file, or NAME alone, whose value is asked for unseen, or read from standard input. ' +
    'Others can see a command line in the list of processes; a file and a question keep values out.',
  output: false,
  flags: { at: AT },
  args: words('NAME=value', 'Variables', 1),
  async run(session, flags, ...given) {
    const variables: Variables = new Map();
    for (const one of given) {
      const [, name = '', sign, text = ''] = /^([A-Za-z_]\w*)(?:(=)([^]*))?$/.exec(one) ?? [];
      if (!name) throw usageFailure(`"${one.split('=')[0]}" is no name of a variable.`);
      variables.set(name, sign ? await readText(text) : await askValue(name));
    }
    await setVariables(session, await session.application(), variables, flags.at);
    notice(`Set ${[...variables.keys()].join(', ')}. ${EFFECT}`);
  },
});

async function askValue(name: string): Promise<string> {
  return canAsk() ? askSecret(`${name}: `) : (await readStandardInput()).replace(/\r?\n$/, '');
}

const unset = sessionCommand<NonNullable<unknown>, string[]>({
  brief: 'Remove variables',
  output: false,
  args: words('NAME', 'Names of variables', 1),
  async run(session, _, ...names) {
    await removeVariables(session, await session.application(), names);
    notice(`Removed ${names.join(', ')}. ${EFFECT}`);
  },
});

const pull = sessionCommand<NonNullable<unknown>, [string?]>({
  brief: 'Write the variables to a file',
  text:
    'Only you can read the file. `-` writes to standard output. Variables that an attachment sets are left out. ' +
    'dotenv, node --env-file, Docker Compose, `set -a; . ./.env` and `svc env push` read the same values from it; ' +
    'where a value has no form for that, nothing is written, and it is named.',
  asks: true,
  output: false,
  args: tuple(maybe('file', 'File (default: .env)')),
  async run(session, flags, file = '.env') {
    const variables = await ownVariables(session, await session.application());
    const without = namesWithoutForm(variables);
    if (without.length)
      throw new Failure(
        `${without.join(', ')}: programs that read such a file (dotenv, node --env-file, a shell) do not agree on ` +
          'the value in any form. Nothing was written.',
        EXIT.failed,
        [
          'It has both kinds of quotes, a quote beside a dollar sign or backslash, a backslash at its end, or a ' +
            'carriage return. Encode it, such as in Base64, or read it with `svc env ls --values --json`.',
        ],
      );
    const text = formatDotenv(variables);
    const forPython = namesForPython(variables);
    if (forPython.length)
      notice(`python-dotenv reads ${forPython.join(', ')} differently: it interprets \\\\ and \${.`);
    if (file === '-') return void process.stdout.write(text);
    if (fs.existsSync(file) && fs.readFileSync(file, 'utf8') !== text) await confirm(`Overwrite ${file}?`, flags);
    writePrivateFile(path.resolve(file), text);
    notice(`Wrote ${file}. Keep it out of your repository.`);
  },
});

const push = sessionCommand<
  { readonly prune?: boolean | undefined; readonly at?: Availability | undefined },
  [string?]
>({
  brief: 'Set the variables of a file, all of them or none',
  asks: true,
  output: false,
  flags: { prune: toggle('Remove variables that the file does not have'), at: AT },
  args: tuple(maybe('file', 'File (default: .env; - for standard input)')),
  async run(session, flags, file = '.env') {
    const text = file === '-' ? await readStandardInput() : await readText(`@${file}`);
    const desired = parseDotenv(text, file);
    await applyVariables(session, desired, { ...flags, remove: flags.prune === true });
  },
});

const edit = sessionCommand({
  brief: 'Edit the variables in your editor (VISUAL, EDITOR)',
  text: 'Lines that you remove are variables that are removed. The file is deleted afterwards.',
  asks: true,
  output: false,
  async run(session, flags) {
    const before = formatDotenv(await ownVariables(session, await session.application()));
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-env-'));
    const file = path.join(directory, 'variables.env');
    try {
      fs.writeFileSync(file, before, { mode: 0o600 });
      await runEditor(file);
      const after = fs.readFileSync(file, 'utf8');
      if (after === before) return notice('Nothing has changed.');
      await applyVariables(session, parseDotenv(after, 'The edited text'), { ...flags, remove: true });
    } finally {
      fs.rmSync(directory, { recursive: true, force: true });
    }
  },
});

function runEditor(file: string): Promise<void> {
  const { program, args, shell } = editorInvocation(process.platform, process.env, file);
  const child = spawn(program, args, { stdio: 'inherit', shell });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Failure(`The editor exited with code ${code}. Nothing was changed.`)),
    );
  });
}

/** Sets what differs and says which; with `remove`, also removes what is not there. */
async function applyVariables(
  session: Session,
  desired: Variables,
  flags: { remove: boolean; yes?: boolean | undefined; at?: Availability | undefined },
): Promise<void> {
  const application = await session.application();
  const observed = await ownVariables(session, application);
  const changed = new Map([...desired].filter(([name, value]) => observed.get(name) !== value || flags.at));
  const removed = flags.remove ? [...observed.keys()].filter((name) => !desired.has(name)) : [];
  if (!changed.size && !removed.length) return notice('Nothing has changed.');
  for (const name of changed.keys()) notice(`${observed.has(name) ? 'change' : 'add'}  ${name}`);
  for (const name of removed) notice(`remove  ${name}`);
  if (removed.length || canAsk()) await confirm('Go on?', flags);
  if (changed.size) await setVariables(session, application, changed, flags.at);
  await removeVariables(session, application, removed);
  notice(EFFECT);
}

const listVariables = (session: Session, application: string): Promise<Row[]> =>
  session.list(`/v2/applications/${application}/env`, { sort: 'key' });

/** Those that people set. What an attachment sets belongs to it. */
async function ownVariables(session: Session, application: string): Promise<Variables> {
  const rows = await listVariables(session, application);
  return new Map(rows.filter((row) => !row.managed_by).map((row) => [String(row.key), String(row.value)]));
}

const MUTATION = `mutation ($id: ID!, $input: SetEnvironmentVariablesInput!) {
  setEnvironmentVariables(id: $id, input: $input) { key }
}`;
const AT_ONCE_MAX = 500;

/** By GraphQL, which has the operation for several at once. */
/** All of them or none. @throws ProblemFailure, and Failure where they are too many for one request */
export async function setVariables(
  session: Session,
  id: string,
  given: Variables,
  available_at?: Availability,
): Promise<void> {
  if (given.size > AT_ONCE_MAX) throw usageFailure(`At most ${AT_ONCE_MAX} variables can be set at once.`);
  const variables = [...given].map(([key, value]) => ({ key, value, ...(available_at && { available_at }) }));
  const body = { query: MUTATION, variables: { id, input: { variables } } };
  try {
    const call = { body, key: 'without_key' } as const;
    const { errors } = await session.request<{ errors?: GraphqlError[] }>('POST', '/graphql', call);
    const [first] = errors ?? [];
    if (first) throw new ProblemFailure(problemOfGraphql(first), first.extensions?.status ?? 400);
  } catch (error) {
    if (!(error instanceof ProblemFailure) || error.status !== 413) throw error;
    const [bytes, limit] = [Buffer.byteLength(JSON.stringify(body)), error.problem.limit_bytes];
    throw new Failure(
      `The variables are too large to be set at once: the request has ${bytes} bytes, and the server takes ${limit}.`,
      EXIT.failed,
      ['Nothing was set. Push them in several files.'],
    );
  }
}

async function removeVariables(session: Session, application: string, names: readonly string[]): Promise<void> {
  const removed: string[] = [];
  for (const name of names)
    try {
      await session.send('DELETE', `/v2/applications/${application}/env/${encodeURIComponent(name)}`);
      removed.push(name);
    } catch (error) {
      if (removed.length) notice(`Removed ${removed.join(', ')}.`);
      if (error instanceof ProblemFailure && error.status === 404)
        throw new Failure(`There is no variable ${name}.`, EXIT.notFound);
      throw error;
    }
}

export const env = buildRouteMap<string, Shell>({
  routes: { ls, set, unset, pull, push, edit },
  aliases: { list: 'ls' },
  docs: { brief: 'Environment variables' },
});
