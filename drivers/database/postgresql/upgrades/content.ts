// The content of a database, dumped from the old server and loaded into the staging server by its loader.
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseError } from 'pg';
import { CommandFailed } from '../../../../core/process/command';
import { cleanFailureText } from '../../../../core/log/failure_text';
import { DriverError } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import { roles, type Cluster } from '../cluster';
import { connectionOf } from '../data';
import { runTool } from '../programs';
import { isUnavailable } from '../session';
import { recreateChecks, dropChecks } from './checks';
import { asLoader, revokeSchemaCreation, createLoader } from './loader';
import { dropSearchPathTrigger, pinSearchPaths, type SearchPaths } from './search_paths';

/** `bin`: directory of pg_dump and pg_restore. */
export interface Content {
  staging: Cluster;
  database: string;
  bin: string;
}

/** Privileges: loaded after all objects. Refreshing a materialized view may need them. */
const privileges = ['ACL', 'DEFAULT ACL'];
const refreshed = ['MATERIALIZED VIEW DATA'];
const PART_CHARACTERS_MAX = 200;

/** Dumps the database of the old server, beside the staging server. `more`: further options of pg_dump. */
export async function dumpContent(old: Cluster, content: Content, more: string[], ctx: DriverContext): Promise<void> {
  const options = ['-w', '-Fc', '-Z', '1', ...more, '-f', dumpOf(content), '-d', content.database];
  await runTool(path.join(content.bin, 'pg_dump'), [...connectionOf(old), ...options], {}, ctx);
}

/** Loads the dump into the empty database. @throws CommandFailed */
export async function loadContent(content: Content, ctx: DriverContext): Promise<void> {
  await loadWith(content, (entries) => restoreEntries(content, entries, [], ctx), ctx);
}

/**
 * Loads content that does not load as it is: functions get `paths` as search paths, and tables and domains have no
 * checks while the rows are loaded.
 */
export async function loadContentWithoutChecks(
  content: Content,
  paths: SearchPaths,
  ctx: DriverContext,
): Promise<void> {
  const { staging, database } = content;
  const load = async (entries: string[]): Promise<void> => {
    await pinSearchPaths(staging, database, paths);
    await restoreEntries(content, entries, ['--section=pre-data'], ctx);
    const checks = await dropChecks(staging, database);
    await restoreEntries(content, entries, ['--section=data', '--section=post-data'], ctx);
    await recreateChecks(staging, database, checks);
    await dropSearchPathTrigger(staging, database);
  };
  await loadWith(content, load, ctx);
}

async function loadWith(
  content: Content,
  load: (entries: string[]) => Promise<void>,
  ctx: DriverContext,
): Promise<void> {
  const { staging, database } = content;
  await createLoader(staging, database);
  const entries = (await restoreTool(content, ['-l', dumpOf(content)], ctx)).split('\n');
  const isOne = (kinds: string[]) => (line: string) => kinds.some((kind) => isOfKind(line, kind));
  const isLater = isOne([...privileges, ...refreshed]);
  await load(entries.filter((line) => !isLater(line)));
  await revokeSchemaCreation(staging, database);
  await restorePrivileges(content, entries.filter(isOne(privileges)), ctx);
  const views = entries.filter(isOne(refreshed));
  if (views.length > 0) await restoreEntries(content, views, [], ctx);
  await analyze(content);
}

/** The error of pg_restore, and its statement. Neither rows, options, passwords nor paths. */
function restoreFailureOf(stderr: string): string {
  const error = /error: (?:could not execute query: )?(.+)/.exec(stderr)?.[1] ?? '';
  const command = /Command was: ([^]+?)(?:\n\n|\npg_restore: |$)/.exec(stderr)?.[1] ?? '';
  const [statement = ''] = command.replaceAll(/\s+/g, ' ').split(/ OPTIONS\b/i);
  const parts = [error.replaceAll(/\bERROR: +/g, ''), statement];
  return parts
    .map((part) => cleanFailureText(part, PART_CHARACTERS_MAX))
    .filter(Boolean)
    .join(', at: ');
}

// A line of the list: its number, two OIDs, the kind, the schema, the name, the owner.
function isOfKind(line: string, kind: string): boolean {
  return /^\d+; \d+ \d+ (.*)/.exec(line)?.[1]?.startsWith(`${kind} `) ?? false;
}

async function restoreEntries(
  content: Content,
  entries: string[],
  sections: string[],
  ctx: DriverContext,
): Promise<void> {
  const list = await writeList(content, entries);
  const jobs = String(Math.max(1, Math.floor(content.staging.spec.size.cpus)));
  const options = ['-w', '--exit-on-error', '-j', jobs, ...sections, '-L', list, '-d', content.database];
  await restoreTool(content, [...connectionOf(content.staging, roles.loader), ...options, dumpOf(content)], ctx);
}

// pg_restore would assume the role of a grantor as only a superuser can. The loader assumes it as its member.
async function restorePrivileges(content: Content, entries: string[], ctx: DriverContext): Promise<void> {
  if (entries.length === 0) return;
  const list = await writeList(content, entries);
  const script = (await restoreTool(content, ['-L', list, '-f', '-', dumpOf(content)], ctx))
    .replaceAll(/^\\(un)?restrict .*$/gm, '')
    .replaceAll(/^SET SESSION AUTHORIZATION (.+);$/gm, 'SET ROLE $1;')
    .replaceAll(/^RESET SESSION AUTHORIZATION;$/gm, 'RESET ROLE;');
  await asLoader(content.staging, content.database, (session) => session.query(script));
}

async function writeList(content: Content, entries: string[]): Promise<string> {
  const list = `${dumpOf(content)}.list`;
  await rm(list, { force: true });
  await writeFile(list, `${entries.join('\n')}\n`, { mode: 0o600 });
  return list;
}

function restoreTool({ bin }: Content, args: string[], ctx: DriverContext): Promise<string> {
  return runTool(path.join(bin, 'pg_restore'), args, {}, ctx);
}

// As the loader, table by table: one whose functions fail has no statistics, as before.
async function analyze({ staging, database }: Content): Promise<void> {
  await asLoader(staging, database, async (session) => {
    const { rows } = await session.query<{ analyzing: string }>(
      `select pg_catalog.format('analyze %I.%I', n.nspname, c.relname) as analyzing from pg_catalog.pg_class c
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'm', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`,
    );
    for (const { analyzing } of rows) await session.query(analyzing).catch(() => undefined);
  });
}

function dumpOf({ staging }: Content): string {
  return path.join(staging.serverDirectory.path, 'dump');
}

const PURPOSES = {
  upgrade: { to: 'copied to the new version', advice: ' Change what is named, then upgrade again.' },
  copy: { to: 'copied after the mask', advice: ' Change the rule, or what is named in the original.' },
};

/** The error of an upgrade whose cause stays: a retry would fail again. Others are returned as they are. */
export function contentError(cause: unknown, purpose: keyof typeof PURPOSES = 'upgrade'): unknown {
  const isRefused = cause instanceof DatabaseError && !isUnavailable(cause);
  if (!isRefused && !(cause instanceof CommandFailed)) return cause;
  const isOurs = cause instanceof CommandFailed && !/^pg_(dump|restore)$/.test(cause.program);
  const failure =
    cause instanceof CommandFailed && !isOurs
      ? restoreFailureOf(cause.stderr)
      : cleanFailureText(cause.message, PART_CHARACTERS_MAX);
  const { to, advice } = PURPOSES[purpose];
  const message = `The data of this database could not be ${to} (${failure}).${isOurs ? '' : advice}`;
  return Object.assign(new DriverError('invalid', message), { cause });
}
