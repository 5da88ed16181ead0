// plan, apply, export: a project as one file.
import * as fs from 'node:fs';
import { duration, maybe, sessionCommand, several, text, toggle, tuple } from '../command';
import { ownProject } from '../deletion';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printJson, printOne, printRows, writeLine, type OutputFlags, type Row } from '../output/print';
import { askSecret, canAsk, confirm, confirmByName, readStandardInput } from '../output/terminal';
import type { Session } from '../session';
import { waitWhile } from '../settle';
import { setVariables } from './env';

interface Change extends Row {
  action: string;
  type: string;
  name: string;
  resource_id: string | null;
  fields: { path: string; from: string | null; to: string | null }[];
  danger: string | null;
}

interface Plan extends Row {
  changes: Change[];
  refusals: { name: string; path: string; line: number | null; code: string; detail: string }[];
  missing_secrets: { application: string; key: string }[];
  monthly_price: { currency: string; before: string; after: string };
  confirm: string[];
  requires_approval: boolean;
  pauses_key?: boolean;
  plan_token: string | null;
}

const FILE = 'platform.yaml';
const ARGS = tuple(maybe('file', `The file, or - for standard input; ${FILE} without it`));
const FLAGS = {
  environment: text('One of the environments of the file', 'name'),
  prune: toggle('Delete what exists and is not in the file'),
};

interface Flags extends OutputFlags {
  readonly environment?: string | undefined;
  readonly prune?: boolean | undefined;
}

export const plan = sessionCommand<
  { readonly environment?: string | undefined; readonly prune?: boolean | undefined },
  [string?]
>({
  brief: 'Show what a file would change in the project',
  text: 'Nothing is changed. Ends with 1 if something would be refused.',
  target: 'project',
  flags: FLAGS,
  args: ARGS,
  async run(session, flags, file) {
    const found = await planOf(session, await readFile(file), flags);
    if (flags.field !== undefined) return printOne(found, flags);
    showPlan(found, flags);
    requirePlanned(found);
  },
});

export const apply = sessionCommand<
  {
    readonly environment?: string | undefined;
    readonly prune?: boolean | undefined;
    readonly confirm?: readonly string[] | undefined;
    readonly noWait?: boolean | undefined;
    readonly timeout?: number | undefined;
  },
  [string?]
>({
  brief: 'Make the project what a file says',
  text:
    'Shows the plan and asks first. All changes are made, or none; then it waits for databases and volumes. ' +
    'Databases, volumes and buckets are deleted only with --prune, and where their names are entered or passed with ' +
    '--confirm (database:main where a volume has the same name).',
  target: 'project',
  asks: true,
  flags: {
    ...FLAGS,
    confirm: several('Name of something with data that may be deleted', 'name'),
    noWait: toggle('Do not wait for databases and volumes'),
    timeout: duration('Wait no longer than this'),
  },
  args: ARGS,
  async run(session, flags, file) {
    const document = await readFile(file);
    const planned = await planOf(session, document, flags);
    if (!flags.json && flags.field === undefined) showPlan(planned, {});
    requirePlanned(planned);
    if (!planned.changes.length) {
      await setSecrets(session, await askSecrets(planned, flags));
      return flags.json ? printJson({ changes: [] }) : undefined;
    }
    const confirmed = await confirmData(planned, flags.confirm ?? []);
    if (!planned.confirm.length) await confirm('Make these changes?', flags);
    const secrets = await askSecrets(planned, flags);
    const body = { document, plan_token: planned.plan_token, confirm: confirmed };
    const applied = await session.request<Row & Pick<Plan, 'changes'>>('POST', `${await stackPath(session)}/apply`, {
      body,
    });
    notice(`Made ${planned.changes.length} ${planned.changes.length === 1 ? 'change' : 'changes'}.`);
    await setSecrets(session, secrets);
    if (!flags.noWait) await waitForMade(session, applied.changes, flags);
    if (flags.json || flags.field !== undefined) return printOne(applied, flags);
    notice('New variables and sizes take effect with the next deployment or restart.');
  },
});

export const exportCommand = sessionCommand<{ readonly values?: boolean | undefined }>({
  brief: 'Write the project as a file',
  text: `Values of variables are left out without --values: they may be secrets. svc export > ${FILE}`,
  target: 'project',
  flags: { values: toggle('Write the values of variables, too') },
  async run(session, flags) {
    const query = flags.values ? { values: true } : {};
    const stack = await session.request<{ document: string; left_out: string[] } & Row>(
      'GET',
      await stackPath(session),
      { query },
    );
    if (flags.json || flags.field !== undefined) return printOne(stack, flags);
    writeLine(stack.document.trimEnd());
    for (const one of stack.left_out) notice(`Left out: ${one}`);
  },
});

const stackPath = async (session: Session): Promise<string> => `/v2/projects/${await ownProject(session)}/stack`;

async function planOf(session: Session, document: string, { environment, prune }: Flags): Promise<Plan> {
  const body = { document, ...(environment !== undefined && { environment }), prune: prune === true };
  return session.request<Plan>('POST', `${await stackPath(session)}/plan`, { body, key: 'without_key' });
}

async function readFile(file = FILE): Promise<string> {
  if (file === '-') return readStandardInput();
  let bytes: Buffer;
  try {
    bytes = fs.readFileSync(file);
  } catch {
    throw new Failure(`${file} cannot be read.`, EXIT.usage, ['Write one of what exists: svc export > platform.yaml']);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usageFailure(`${file} is not UTF-8.`);
  }
}

function showPlan(found: Plan, flags: OutputFlags): void {
  if (flags.json) return printJson(found);
  const columns = {
    ACTION: 'action',
    TYPE: 'type',
    NAME: 'name',
    CHANGES: (row: Row) => fieldsText(row as Change),
  };
  if (found.changes.length) printRows(found.changes, columns, {});
  else notice('Everything is as the file says.');
  const { currency, before, after } = found.monthly_price;
  if (before !== after) notice(`Price a month: ${before} -> ${after} ${currency}`);
  for (const { application, key } of found.missing_secrets)
    notice(`${key} of ${application} is not set. Set it with: svc env set ${key} --app ${application}`);
  for (const name of found.confirm) notice(`${name} is deleted with its data.`);
  if (found.requires_approval) notice('An owner of the project must approve this first.');
  if (found.pauses_key)
    notice('The key would be paused until a person lets it go on, since it would delete too much within a minute.');
  for (const { name, line, path, code, detail } of found.refusals)
    notice(`Refused: ${path || name}${line === null ? '' : ` (line ${line})`}: ${detail} [${code}]`);
}

function fieldsText({ fields, danger }: Change): string {
  const changes = fields.map(({ path, from, to }) => {
    if (from === null && to === null) return path;
    return from === null ? `${path}: ${to}` : `${path}: ${from} -> ${to ?? 'null'}`;
  });
  return [...changes, ...(danger === 'destroys_data' ? ['with its data'] : [])].join(', ');
}

function requirePlanned({ plan_token, refusals }: Plan): void {
  if (plan_token !== null) return;
  throw new Failure(`${refusals.length === 1 ? 'A change' : `${refusals.length} changes`} would be refused.`);
}

/** Where to read what takes time to be there, and the statuses in which it is. */
const SLOW = {
  database: { path: '/v2/databases', ready: ['available', 'stopped'] },
  volume: { path: '/v2/volumes', ready: ['available', 'in_use'] },
};

/** One at a time: the others go on meanwhile. @throws Failure with the reasons of those that could not be made */
async function waitForMade(
  session: Session,
  changes: readonly Change[],
  { timeout }: { timeout?: number | undefined },
): Promise<void> {
  const ends = timeout === undefined ? null : Date.now() + timeout * 1000;
  const failures: string[] = [];
  const made = new Map(changes.filter(({ action }) => action !== 'delete').map((one) => [one.resource_id, one]));
  for (const { type, name, resource_id } of made.values()) {
    const slow = Object.hasOwn(SLOW, type) ? SLOW[type as keyof typeof SLOW] : null;
    if (!slow || resource_id === null) continue;
    const isUnsettled = ({ status }: Row): boolean => ![...slow.ready, 'failed'].includes(String(status));
    const left = ends === null ? undefined : Math.max(1, Math.ceil((ends - Date.now()) / 1000));
    const row = await waitWhile(session, `${slow.path}/${resource_id}`, isUnsettled, { timeout: left });
    const reason = row.status_reason === null ? '' : `: ${String(row.status_reason)}`;
    if (row.status === 'failed') failures.push(`The ${type} ${name} could not be made${reason}`);
    else notice(`The ${type} ${name} is ${String(row.status).replace('_', ' ')}${reason}`);
  }
  if (failures.length) throw new Failure(failures.join('\n'));
}

type Secret = Plan['missing_secrets'][number] & { value: string };

/** Values that the file leaves to a person. What nobody is there to say, or says, stays as it is. */
async function askSecrets({ missing_secrets }: Plan, { yes }: { yes?: boolean | undefined }): Promise<Secret[]> {
  if (yes || !canAsk()) return [];
  const given: Secret[] = [];
  for (const secret of missing_secrets) {
    const value = await askSecret(`${secret.key} of ${secret.application} (Enter leaves it out): `);
    if (value !== '') given.push({ ...secret, value });
  }
  return given;
}

/** After an apply, since it makes their applications. */
async function setSecrets(session: Session, secrets: readonly Secret[]): Promise<void> {
  if (!secrets.length) return;
  for (const { id, name } of await session.list('/v2/applications')) {
    const own = secrets.filter(({ application }) => application === name);
    if (!own.length) continue;
    await setVariables(session, String(id), new Map(own.map(({ key, value }) => [key, value])));
    notice(`Set ${own.map(({ key }) => key).join(', ')} of ${String(name)}.`);
  }
}

/**
 * `--yes` is no name: what has data is entered, or passed by its own flag, with its type (`database:main`) or, where
 * nothing else of the plan has the name, without it.
 */
async function confirmData({ confirm: needed, changes }: Plan, given: readonly string[]): Promise<string[]> {
  const typed = changes.flatMap(({ danger, type, name }) => (danger === 'destroys_data' ? [`${type}:${name}`] : []));
  const isGiven = (name: string): boolean =>
    given.includes(name) || typed.some((one) => given.includes(one) && one.endsWith(`:${name}`));
  for (const name of needed)
    if (!isGiven(name)) await confirmByName(`${name} is deleted with its data.`, name, { yes: false });
  return [...needed];
}
