// Imports: the statements of a dump, in one transaction of the owner of the database. It is there as a whole or not at
// all, whatever is killed. Nothing of a stranger runs with more rights than the owner has.
import { Client, type DatabaseError } from 'pg';
import { extensionRefusal } from '../../../../core/catalog/postgresql_extensions';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { cleanFailureText } from '../../../../core/log/failure_text';
import { toSentence } from '../../../../core/sentence';
import {
  isExcluded,
  Reporter,
  requireGoing,
  slotNameOf,
  type ImportReport,
  type ImportSource,
  type ImportWork,
  type NotTakenOver,
  type SourceServer,
} from '../../imports/import';
import { SqlReader, type DumpStatement } from '../../imports/sql_reader';
import { socketDirectory, type Cluster } from '../cluster';
import { changeExtensions, EXTENSION_SETTINGS } from '../extensions';
import { inSession, sqlIdentifier } from '../session';
import { copyIn } from './copy_in';
import { createSlot, dropAtSource, inspectSource, type Slot } from './follow/source';
import { atSource, endQuickly, failureAtSource } from './follow/source_session';
import { atStatement, DUMPED_FROM, importFailureOf, headOf, REASON_CHARACTERS_MAX, withVersions } from './failure';
import { rulingOf, tablespaceOf, type Ruling } from './rules';
import { textOfFile, textOfServer } from './text';

const EXTENSION_MS = 5 * 60_000;
const [UNDEFINED_OBJECT, INSUFFICIENT_PRIVILEGE] = ['42704', '42501'];
const SAVEPOINT = 'platform_import';
/** Ours, and not those that the owner has set for applications. */
const SETTINGS = [
  ...['statement_timeout=0', 'idle_in_transaction_session_timeout=0', 'lock_timeout=60000'],
  ...['client_min_messages=error', 'check_function_bodies=off', 'synchronous_commit=on'],
];
/** Names of PostgreSQL, where those of the encoding standard differ. Without an entry: the same in lower case. */
const ENCODINGS: Readonly<Record<string, string>> = {
  ...{ utf8: 'utf-8', unicode: 'utf-8', sql_ascii: 'utf-8', latin1: 'latin1', latin2: 'iso-8859-2' },
  ...{ latin9: 'iso-8859-15', win1250: 'windows-1250', win1251: 'windows-1251', win1252: 'windows-1252' },
  ...{ euc_jp: 'euc-jp', euc_kr: 'euc-kr', sjis: 'shift_jis', big5: 'big5', gbk: 'gbk', koi8r: 'koi8-r' },
};

/** @throws DriverError invalid with the line and the reason: nothing is imported then */
export async function importData(cluster: Cluster, work: ImportWork, ctx: DriverContext): Promise<ImportReport> {
  const { previous } = work;
  await endEarlierSessions(cluster, work.id);
  if (previous?.transaction !== undefined && (await isCommitted(cluster, previous.transaction))) return previous;
  const source = await work.source();
  const slot = work.follows && 'server' in source ? await prepareSource(source.server, work, ctx) : null;
  try {
    return await load(cluster, source, { work, slot }, ctx);
  } catch (error) {
    // A control plane that ends leaves it to the next call.
    if (slot && 'server' in source) await dropAtSource(source.server, slotNameOf(work.id)).catch(() => undefined);
    throw error;
  } finally {
    if (slot) await endQuickly(slot.client);
  }
}

/** What is followed from the moment of the copy on. It is recorded before it is made. */
async function prepareSource(server: SourceServer, work: ImportWork, ctx: DriverContext): Promise<FollowedSlot> {
  const inspect = (client: Client) => inspectSource(client, work.excluded);
  const followed = await atSource(server, inspect, ctx.signal).catch((error: unknown) => {
    throw failureAtSource(error);
  });
  const name = slotNameOf(work.id);
  const begun = new Reporter(work, () => 0);
  begun.follow = { slot: name, start: null };
  await begun.save();
  return { ...(await createSlot(server, name, followed.tables, ctx)), omitted: followed.not_taken_over };
}

interface FollowedSlot extends Slot {
  omitted: NotTakenOver[];
}

async function load(
  cluster: Cluster,
  source: ImportSource,
  { work, slot }: { work: ImportWork; slot: FollowedSlot | null },
  ctx: DriverContext,
): Promise<ImportReport> {
  const dump =
    'file' in source
      ? await textOfFile(cluster, source.file, ctx)
      : await textOfServer(cluster, source.server, slot?.snapshot ?? null, ctx);
  let sourceVersion: number | null = null;
  const reader = new SqlReader(dump.text, 'postgresql', (comment) => {
    sourceVersion ??= Number(DUMPED_FROM.exec(comment)?.[1] ?? NaN) || null;
  });
  const reporter = new Reporter(work, () => reader.bytes);
  if (slot) reporter.follow = { slot: slotNameOf(work.id), start: slot.start };
  for (const { kind, name, reason } of slot?.omitted ?? []) reporter.notTaken(kind, name, reason);
  const client = await connectAsOwner(cluster, work.id).catch(async (error: unknown) => {
    await reader.close();
    throw error;
  });
  const stop = (): void => void client.end().catch(() => undefined);
  ctx.signal.addEventListener('abort', stop, { once: true });
  const run = { cluster, client, reader, reporter, work, ctx };
  try {
    await client.query('begin');
    await new Loader(run).loadAll();
    // Only now: a source that broke off has the form of one that has ended.
    await dump.whole();
    await countRows(run);
    const { rows } = await client.query<{ id: string }>('select pg_catalog.txid_current()::text as id');
    reporter.transaction = rows[0]!.id;
    await reporter.save();
    await client.query('commit');
    await client.query('analyze').catch(() => undefined);
    return reporter.result();
  } catch (error) {
    const failure = await importFailureOf(error, dump.whole, ctx);
    throw withVersions(failure, sourceVersion, Number(cluster.spec.version));
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    await client.end().catch(() => undefined);
    await reader.close();
  }
}

interface Run {
  cluster: Cluster;
  client: Client;
  reader: SqlReader;
  reporter: Reporter;
  work: ImportWork;
  ctx: DriverContext;
}

/** Of a call that was killed: its server process goes on until it notices. */
async function endEarlierSessions(cluster: Cluster, id: string): Promise<void> {
  await inSession(cluster, {}, (session) =>
    session.query(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity
        where application_name = $1 and pid <> pg_backend_pid()`,
      [sessionName(id)],
    ),
  );
}

async function isCommitted(cluster: Cluster, transaction: string): Promise<boolean> {
  const { rows } = await inSession(cluster, {}, (session) =>
    session.query<{ status: string | null }>('select txid_status($1::bigint) as status', [transaction]),
  );
  return rows[0]?.status === 'committed';
}

async function connectAsOwner(cluster: Cluster, id: string): Promise<Client> {
  const { spec, serverDirectory } = cluster;
  const owner = spec.users.find(({ access, second_of }) => access === 'admin' && second_of === undefined);
  if (!owner || spec.database_name === null)
    throw new DriverError('invalid', 'The database has no user with full access, as whom the import would run.');
  const client = new Client({
    ...{ host: socketDirectory(serverDirectory), port: spec.port, user: owner.username, password: owner.password },
    database: spec.database_name,
    options: SETTINGS.map((one) => `-c ${one}`).join(' '),
    application_name: sessionName(id),
    connectionTimeoutMillis: 10_000,
  });
  client.on('error', () => undefined); // the current query reports it
  await client.connect();
  return client;
}

function sessionName(id: string): string {
  return `import ${id}`;
}

/** Runs what the rules let pass. */
class Loader {
  private decoder: { name: string; decode(text: string): string } = decoderOf('utf-8');
  /** The database of a dump of several that is imported: the first that is not one of the server. */
  private database: string | null = null;
  private isElsewhere = false;
  private savepointIsOpen = false;

  constructor(private readonly run: Run) {}

  async loadAll(): Promise<void> {
    const { reader, reporter, ctx } = this.run;
    for (let next = await reader.next(); next !== null; next = await reader.next()) {
      requireGoing(ctx);
      const ruling = rulingOf(next);
      if (this.isElsewhere && ruling.do !== 'database') {
        if (ruling.do === 'copy') await reader.skipRows();
        continue;
      }
      try {
        await this.follow(ruling, next);
      } catch (error) {
        throw atStatement(next, error);
      }
      await reporter.tick();
    }
  }

  private async follow(ruling: Ruling, statement: DumpStatement): Promise<void> {
    const { reporter, client } = this.run;
    switch (ruling.do) {
      case 'skip':
        if (ruling.missing) reporter.notTaken(ruling.missing.kind, ruling.missing.name, ruling.missing.reason);
        return;
      case 'refuse':
        throw new DriverError('invalid', ruling.reason);
      case 'database':
        return this.connect(ruling.name);
      case 'encoding':
        this.decoder = decoderOf(ruling.name);
        return;
      case 'extension':
        return this.createExtension(ruling);
      case 'copy':
        return this.copy(ruling);
      case 'insert':
        return this.insert(ruling);
      case 'run': {
        const space =
          tablespaceOf(ruling.text) ?? (ruling.text === statement.text ? null : tablespaceOf(statement.text));
        if (space !== null && space !== 'pg_default')
          reporter.notTaken('tablespace', space, 'All data are on the disk of the database.');
        const text = this.decoder.decode(ruling.text);
        return void (ruling.isCareful ? await this.runCarefully(text) : await client.query(text));
      }
    }
  }

  private connect(name: string): void {
    if (name === 'template1' || name === 'postgres') this.isElsewhere = true;
    else {
      this.database ??= name;
      this.isElsewhere = this.database !== name;
      if (this.isElsewhere)
        this.run.reporter.notTaken(
          'database',
          name,
          `The file has several databases; that of ${this.database} is imported.`,
        );
    }
  }

  private async copy({ text, table }: Extract<Ruling, { do: 'copy' }>): Promise<void> {
    const { reader, reporter, work, client } = this.run;
    const name = nameOf(table, this.decoder);
    if (isExcluded(name, work.excluded)) {
      await reader.skipRows();
      return reporter.notTaken('rows', name, 'They are excluded.');
    }
    const rows = await copyIn(client, this.decoder.decode(text), this.rows());
    reporter.table(name, rows);
  }

  private async *rows(): AsyncGenerator<Buffer> {
    const { reader, reporter } = this.run;
    for await (const piece of reader.copyRows()) {
      await reporter.tick();
      yield this.decoder.name === 'utf-8' ? piece : Buffer.from(this.decoder.decode(piece.toString('latin1')));
    }
  }

  private async insert({ text, table }: Extract<Ruling, { do: 'insert' }>): Promise<void> {
    const { reporter, work, client } = this.run;
    const name = nameOf(table, this.decoder);
    if (isExcluded(name, work.excluded)) return reporter.notTaken('rows', name, 'They are excluded.');
    const { rowCount } = await client.query(this.decoder.decode(text));
    reporter.table(name, rowCount ?? 0);
  }

  /** What the owner may not do is left out, and what the server does not know of a newer one. */
  private async runCarefully(text: string): Promise<void> {
    const { client, reporter } = this.run;
    await client.query(`${this.savepointIsOpen ? `release ${SAVEPOINT}; ` : ''}savepoint ${SAVEPOINT}`);
    this.savepointIsOpen = true;
    try {
      await client.query(text);
    } catch (error) {
      const { code, message } = error as DatabaseError;
      const isSetting = /^\s*set\s/i.test(text);
      if (code !== INSUFFICIENT_PRIVILEGE && !(isSetting && code === UNDEFINED_OBJECT)) throw error;
      await client.query(`rollback to ${SAVEPOINT}`);
      if (!isSetting || code === INSUFFICIENT_PRIVILEGE)
        reporter.notTaken('statement', headOf(text), toSentence(cleanFailureText(message, REASON_CHARACTERS_MAX)));
    }
  }

  private async createExtension({ name, schema }: Extract<Ruling, { do: 'extension' }>): Promise<void> {
    const { cluster, reporter, client } = this.run;
    if (name === 'plpgsql') return;
    const known = cluster.engine.found.find(({ series }) => series === cluster.spec.version)?.extensions ?? [];
    const found = known.find((one) => one.name === name);
    const refusal = found ? extensionRefusal(name, found.is_trusted) : 'This host does not have it.';
    if (refusal !== null) return reporter.notTaken('extension', name, refusal);
    if (found?.is_trusted) {
      // Of some hosts, the schema of extensions is in no dump.
      const own = sqlIdentifier(schema === 'pg_catalog' ? 'public' : schema);
      if (own !== '"public"') await client.query(`create schema if not exists ${own}`);
      await client.query(`create extension if not exists ${sqlIdentifier(name)} with schema ${own} cascade`);
      return;
    }
    const target = { database: cluster.spec.database_name!, statementMs: EXTENSION_MS, settings: EXTENSION_SETTINGS };
    const [result] = await inSession(cluster, target, (session) =>
      changeExtensions(session, [{ name, isWanted: true }]),
    );
    if (result && 'failure' in result) return reporter.notTaken('extension', name, result.failure);
    if (result?.version) reporter.extensions.push({ name, version: result.version });
  }
}

async function countRows({ client, reporter, ctx }: Run): Promise<void> {
  for (const name of reporter.tableNames) {
    requireGoing(ctx);
    const { rows } = await client.query<{ count: string }>(`select count(*) as count from ${name}`);
    reporter.counted(name, Number(rows[0]?.count));
  }
}

/** As the dump writes it: it matched the pattern of names, so it is nothing else than one. */
function nameOf(table: string, decoder: { decode(text: string): string }): string {
  return decoder.decode(table);
}

function decoderOf(encoding: string): { name: string; decode(text: string): string } {
  const key = encoding.toLowerCase();
  const name = ENCODINGS[key] ?? key;
  if (name === 'latin1') return { name, decode: (text) => text };
  try {
    const decoder = new TextDecoder(name);
    return { name, decode: (text) => decoder.decode(Buffer.from(text, 'latin1')) };
  } catch {
    throw new DriverError('invalid', `The encoding ${encoding} is not known. Make the dump with --encoding=UTF8.`);
  }
}
