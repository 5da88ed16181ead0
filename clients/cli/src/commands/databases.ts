// db: ls, create, url, psql, extensions, rotate, backup, backups, prove, download (export), import,
// finish-import, restore, rm.
import { buildRouteMap } from '@stricli/core';
import { duration, integer, maybe, sessionCommand, text, toggle, tuple, word, type Shell } from '../command';
import { readFileIfThere } from '../config/files';
import { deleteToBin } from '../deletion';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, formatBytes, printOne, printRows, writeLine, type Row } from '../output/print';
import { confirmByName } from '../output/terminal';
import { namesOf, type Session } from '../session';
import { waitWhile } from '../settle';
import { downloadFile } from '../http/download';
import { extensionsCommand } from './extensions';
import { finishImportCommand, importCommand } from './import';
import { projectIdOf } from './project_id';
import { findEndpoint, runPsql, type Credentials } from './psql';

type WaitFlags = { readonly wait?: boolean | undefined; readonly timeout?: number | undefined };
const WAIT = { wait: toggle('Wait until it is done'), timeout: duration('With --wait: no longer than this') };
const ENDPOINT = { endpoint: text('Endpoint (default: the public one, else the first)', 'name') };
const NAME = tuple(word('database', 'Name or id of the database'));
const WORKING = ['provisioning', 'updating', 'upgrading', 'restoring', 'restarting', 'starting', 'stopping'];
const COLUMNS = {
  NAME: 'name',
  ENGINE: (row: Row) => `${row.engine} ${row.engine_version}`,
  SIZE: 'database_package',
  STORAGE: (row: Row) => `${row.storage_gb} GB`,
  STATUS: 'status',
  REGION: 'region',
};

async function findDatabase(session: Session, given: string): Promise<Row> {
  const rows = await session.list<Row & { id: string; name: string }>('/v2/databases');
  const found = rows.find(({ id, name }) => id === given || name === given);
  if (found) return found;
  throw new Failure(`There is no database "${given}" in this project.`, EXIT.notFound, [namesOf(rows)]);
}

const ls = sessionCommand({
  brief: 'List databases',
  target: 'project',
  run: async (session, flags) => printRows(await session.list('/v2/databases'), COLUMNS, flags),
});

type CreateFlags = WaitFlags & {
  readonly engine?: string | undefined;
  readonly engineVersion?: string | undefined;
  readonly size?: string | undefined;
  readonly storage?: number | undefined;
  readonly attach?: boolean | undefined;
  readonly fromBackup?: string | undefined;
  readonly mask?: string | undefined;
};

const create = sessionCommand<CreateFlags, [string]>({
  brief: 'Create a database',
  text:
    'With --attach, the application gets its address in DATABASE_URL (or REDIS_URL) with its next deployment.\n' +
    'A file for --mask: [{"table": "customers", "column": "email", "rule": "fake_email"}]. Rules: set_null, hash, ' +
    'fake_email, fake_name, constant and expression; the last two have a "value".',
  flags: {
    engine: text('Engine: postgresql, mariadb, redis … (default: postgresql)', 'engine'),
    engineVersion: text('Version of the engine', 'version'),
    size: text('Size: see svc api listDatabasePackages', 'package'),
    storage: integer('Storage in GB', 1),
    attach: toggle('Attach it to the application'),
    fromBackup: text('Start with the data of a backup, also of a deleted database', 'id'),
    mask: text('With --from-backup: a JSON file with rules that replace values of the copy', 'file'),
    ...WAIT,
  },
  args: tuple(word('name', 'Name of the database')),
  async run(session, flags, name) {
    // An application that there is not is said before a database is made.
    const application_id = flags.attach ? await session.application() : undefined;
    const body = {
      ...{ name, engine: flags.engine ?? 'postgresql' },
      ...(await originOf(session, flags)),
      ...(flags.engineVersion && { engine_version: flags.engineVersion }),
      ...(flags.size && { database_package: flags.size }),
      ...(flags.storage && { storage_gb: flags.storage }),
    };
    const made = await session.request('POST', '/v2/databases', { body });
    const path = `/v2/databases/${made.id}`;
    const row = flags.wait || application_id ? await waitSettled(session, path, flags) : made;
    if (application_id) {
      await session.request('POST', `${path}/attachments`, { body: { application_id } });
      notice('Attached. The application gets its variables with the next deployment or restart.');
    }
    printOne(row, flags, { name: 'name', engine: 'engine', version: 'engine_version', status: 'status' });
  },
});

/** @throws Failure where the work failed */
async function waitSettled(session: Session, path: string, flags: WaitFlags): Promise<Row> {
  const row = await waitWhile(session, path, WORKING, flags);
  if (row.status === 'failed') throw new Failure(String(row.status_reason ?? 'The database failed.'));
  if (row.status_reason) notice(String(row.status_reason));
  return row;
}

const url = sessionCommand<{ readonly endpoint?: string | undefined }, [string]>({
  brief: 'Print the address of a database, with its password',
  target: 'project',
  output: false,
  flags: ENDPOINT,
  args: NAME,
  async run(session, flags, given) {
    writeLine(findEndpoint(await readCredentials(session, given), flags.endpoint).connection_string);
  },
});

async function readCredentials(session: Session, given: string): Promise<Credentials & { engine: string }> {
  const { id, engine } = await findDatabase(session, given);
  const found = await session.request<Credentials>('GET', `/v2/databases/${id}/credentials`);
  return { ...found, engine: String(engine) };
}

const psql = sessionCommand<{ readonly endpoint?: string | undefined }, string[]>({
  brief: 'Open psql on a PostgreSQL database: svc db psql NAME -- -c "select 1"',
  text: 'The password reaches psql by its environment, and the certificate of the server is checked.',
  target: 'project',
  output: false,
  flags: ENDPOINT,
  args: {
    kind: 'array',
    minimum: 1,
    parameter: { parse: String, placeholder: 'database', brief: 'Database, and after -- arguments of psql' },
  },
  async run(session, flags, given = '', ...args) {
    const credentials = await readCredentials(session, given);
    if (credentials.engine !== 'postgresql')
      throw usageFailure(`${given} runs ${credentials.engine}, not PostgreSQL.`, `Its address: svc db url ${given}`);
    await runPsql(session.server, credentials, findEndpoint(credentials, flags.endpoint), args);
  },
});

const BACKUP_COLUMNS = {
  BACKUP: 'id',
  TYPE: 'type',
  STATUS: 'status',
  SIZE: (row: Row) => formatBytes(row.size_bytes),
  CREATED: (row: Row) => formatAge(row.created_at),
  NOTE: 'note',
};

const PROVEN_COLUMNS = {
  ...BACKUP_COLUMNS,
  PROOF: 'proof_status',
  PROVEN: (row: Row) => formatAge(row.proven_at),
  SECONDS: 'proof_seconds',
  'PROOF FAILURE': 'proof_failure',
};

const DELETED_COLUMNS = {
  DATABASE: 'database.name',
  ...BACKUP_COLUMNS,
  DELETED: (row: Row) => formatAge((row.database as BackedUp).deleted_at),
  'KEPT UNTIL': 'expires_at',
};

const backups = sessionCommand<{ readonly deleted?: boolean | undefined }, [string?]>({
  brief: 'List the backups of a database, or with --deleted those of deleted databases',
  text: 'A new database starts with the data of one: svc db create NAME --from-backup ID',
  target: 'project',
  flags: { deleted: toggle('Of databases that were deleted, also when they are not in the bin any more') },
  args: tuple(maybe('database', 'Name or id of the database')),
  async run(session, flags, given) {
    if (flags.deleted) {
      const rows = await backupsOfProject(session, { deleted: true });
      const ofOne = ({ database: { id, name } }: ProjectBackup): boolean => [id, name].includes(given as string);
      return printRows(given === undefined ? rows : rows.filter(ofOne), DELETED_COLUMNS, flags);
    }
    if (given === undefined) throw usageFailure('Name a database, or pass --deleted.');
    const { id } = await findDatabase(session, given);
    printRows(await session.list(`/v2/databases/${id}/backups`), PROVEN_COLUMNS, flags);
  },
});

interface BackedUp {
  id: string;
  name: string;
  engine: string;
  deleted_at: string | null;
}
type ProjectBackup = Row & { id: string; database: BackedUp };

async function backupsOfProject(session: Session, query: { deleted?: boolean }): Promise<ProjectBackup[]> {
  return session.list(`/v2/projects/${await projectIdOf(session)}/database_backups`, query);
}

/** What a new database starts with, and the engine of the data. @throws Failure where the project has no such backup */
async function originOf(
  session: Session,
  { fromBackup: backup_id, mask: file }: Pick<CreateFlags, 'fromBackup' | 'mask'>,
): Promise<object> {
  if (backup_id === undefined) {
    if (file !== undefined) throw usageFailure('--mask needs --from-backup, whose values it replaces.');
    return {};
  }
  const mask = file === undefined ? undefined : readMask(file);
  const found = (await backupsOfProject(session, {})).find(({ id }) => id === backup_id);
  if (!found)
    throw new Failure(`There is no backup ${backup_id} in this project.`, EXIT.notFound, [
      'svc db backups NAME and svc db backups --deleted list them.',
    ]);
  const { id: database_id, engine } = found.database;
  return mask === undefined
    ? { engine, restore_from: { database_id, backup_id } }
    : { engine, copy_of: { backup_id }, mask };
}

/** The server says what of it is no rule. @throws Failure where the file is not there, or is no JSON */
function readMask(file: string): unknown {
  const content = readFileIfThere(file);
  if (content === undefined) throw usageFailure(`There is no file ${file}.`);
  try {
    return JSON.parse(content) as unknown;
  } catch (error) {
    throw usageFailure(`${file} is no JSON: ${(error as Error).message}`);
  }
}

const backup = sessionCommand<WaitFlags & { readonly note?: string | undefined }, [string]>({
  brief: 'Take a backup of a database',
  target: 'project',
  flags: { note: text('Note on why'), ...WAIT },
  args: NAME,
  async run(session, flags, given) {
    const path = `/v2/databases/${(await findDatabase(session, given)).id}/backups`;
    let row = await session.request('POST', path, { body: flags.note ? { note: flags.note } : {} });
    if (flags.wait) row = await waitWhile(session, `${path}/${row.id}`, ['pending', 'running'], flags);
    printOne(row, flags, { backup: 'id', status: 'status', size: (one) => formatBytes(one.size_bytes) });
    if (row.status === 'failed') throw new Failure(String(row.status_reason ?? 'The backup failed.'));
  },
});

const prove = sessionCommand<WaitFlags & { readonly backup?: string | undefined }, [string]>({
  brief: 'Prove that a backup of a database can be restored',
  text:
    'Without --backup, the newest one that is complete. It is restored aside and checked; the database stays as it ' +
    'is. One backup is proven at a time, so it may wait for others.',
  target: 'project',
  flags: { backup: text('Id of the backup', 'id'), ...WAIT },
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findDatabase(session, given);
    const path = `/v2/databases/${id}/backups`;
    const taken = await findBackup(session, path, String(name), flags.backup);
    const place = `${path}/${String(taken.id)}`;
    let row = await session.request('POST', `${place}/prove`);
    const isUnsettled = (one: Row): boolean => ['waiting', 'running'].includes(String(one.proof_status));
    if (flags.wait) row = await waitWhile(session, place, isUnsettled, flags);
    printOne(row, flags, { backup: 'id', proof: 'proof_status', seconds: 'proof_seconds', rows: 'proof_rows' });
    if (row.proof_status === 'failed') throw new Failure(String(row.proof_failure ?? 'The proof failed.'));
  },
});

const restore = sessionCommand<
  WaitFlags & { readonly backup?: string | undefined; readonly at?: string | undefined },
  [string]
>({
  brief: 'Restore a database in place, from a backup or to a point in time',
  target: 'project',
  asks: true,
  flags: {
    backup: text('Id of the backup', 'id'),
    at: text('Point in time, such as 2026-05-01T10:00:00Z', 'time'),
    ...WAIT,
  },
  args: NAME,
  async run(session, flags, given) {
    if ((flags.backup === undefined) === (flags.at === undefined)) throw usageFailure('Pass --backup or --at.');
    if (flags.at !== undefined && Number.isNaN(Date.parse(flags.at))) throw usageFailure('--at must be a time.');
    const { id, name } = await findDatabase(session, given);
    await confirmByName(`What ${name} contains now will be replaced.`, String(name), flags);
    const body = flags.backup
      ? { backup_id: flags.backup }
      : { point_in_time: new Date(flags.at as string).toISOString() };
    const path = `/v2/databases/${id}`;
    const row = await session.request('POST', `${path}/restore`, { body });
    printOne(flags.wait ? await waitSettled(session, path, flags) : row, flags, { name: 'name', status: 'status' });
  },
});

const download = sessionCommand<{ readonly backup?: string | undefined }, [string, string?]>({
  brief: 'Download a backup of a database',
  text:
    'Without --backup, the newest one that is complete. Only you can read the file, which has all data of the ' +
    'database. `-` writes to standard output.',
  target: 'project',
  asks: true,
  output: false,
  flags: { backup: text('Id of the backup', 'id') },
  args: tuple(word('database', 'Name or id of the database'), maybe('file', 'File (default: named by the server)')),
  async run(session, flags, given, target) {
    const { id, name } = await findDatabase(session, given);
    const path = `/v2/databases/${id}/backups`;
    const taken = await findBackup(session, path, String(name), flags.backup);
    const { url: address } = await session.request<{ url: string }>('GET', `${path}/${taken.id}/download`);
    await downloadFile(new URL(address), target, { ...flags, name: String(name) });
  },
});

async function findBackup(session: Session, path: string, name: string, given: string | undefined): Promise<Row> {
  const rows = await session.list(path, { sort: '-created_at' });
  const found = rows.find((row) => (given === undefined ? row.status === 'completed' : row.id === given));
  if (found) return found;
  const what = given === undefined ? 'no complete backup' : `no backup ${given}`;
  throw new Failure(`The database ${name} has ${what}.`, EXIT.notFound, [`Take one: svc db backup ${name} --wait`]);
}

const extensions = extensionsCommand(findDatabase);
const importData = importCommand(findDatabase);
const finishImport = finishImportCommand(findDatabase);

const rotate = sessionCommand<{ readonly immediate?: boolean | undefined }, [string]>({
  brief: 'Give a database a new password',
  text:
    'The applications that it is attached to get the password and are restarted. The old one ends when they run with ' +
    'it, after 30 minutes at the latest, or with --immediate at once.',
  target: 'project',
  asks: true,
  flags: { immediate: toggle('End the old password at once') },
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findDatabase(session, given);
    await confirmByName(`Programs with the old password of ${name} lose their access.`, String(name), flags);
    const body = flags.immediate ? { immediate: true } : {};
    const made = await session.request('POST', `/v2/databases/${id}/credentials/rotate`, { body });
    printOne(made, flags, { user: 'username', 'old password ends': 'previous_password_valid_until' });
    notice(`The new address: svc db url ${name}`);
  },
});

const rm = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete a database, which goes to the bin of its project',
  target: 'project',
  asks: true,
  output: false,
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findDatabase(session, given);
    const what = `The database ${name} stops. Its backups are kept for their own time.`;
    const texts = { what, done: `Deleted the database ${name}.`, restore: `svc bin restore ${name}` };
    await deleteToBin({ session, flags, name: String(name), ...texts }, () =>
      session.send('DELETE', `/v2/databases/${id}`),
    );
  },
});

export const db = buildRouteMap<string, Shell>({
  routes: {
    ls,
    create,
    url,
    psql,
    extensions,
    rotate,
    backup,
    backups,
    prove,
    download,
    import: importData,
    'finish-import': finishImport,
    restore,
    rm,
  },
  aliases: { list: 'ls', remove: 'rm', export: 'download' },
  docs: { brief: 'Databases' },
});
