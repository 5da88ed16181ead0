// The first start on an empty database: an owner, a project, a key with every scope, shown once.
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { replaceFile } from '../core/files';
import type { Config } from '../core/config';
import { makePassableDirectory } from '../core/directory';
import type { EngineFacts } from '../core/catalog/host_facts';
import { mintId } from '../core/ids';
import { missingPrograms } from '../core/catalog/missing_programs';
import { scopes } from '../core/accounts/scopes';
import { StartupError } from '../core/startup_error';
import { mintToken } from '../core/accounts/tokens';
import { setupCommand } from '../core/catalog/setup_command';
import { applicationUrl } from '../models/applications/application/url';
import { newFirstStartCode } from '../models/identity/first_start';
import { countOperators } from '../models/identity/operator';
import type { Session } from '../db/control_database';
import { named } from '../db/statement';
import { isDashboardBuilt } from './dashboard_folder';
import { missingDomain } from '../core/catalog/missing_domain';
import { missingOperator } from '../core/catalog/missing_operator';
import type { Platform } from './platform/platform';

export interface FirstKey {
  key: string;
  project_id: string;
  base_url: string;
  /** Where the owner sets a password, once; null where the installation has no passwords. */
  setup_url: string | null;
}

/**
 * Creates them unless there is an account already; replicas that start together agree on one. Null where it was not the
 * first start.
 * @throws StartupError where first-key.json can't be written; then nothing was created
 */
export async function firstBoot({ database, config }: Pick<Platform, 'database' | 'config'>): Promise<FirstKey | null> {
  return database.transaction(async (session) => {
    await session.query(named(`select pg_advisory_xact_lock(hashtext('platform-api first boot'))`), []);
    const [row] = await session.query<{ found: boolean }>(named('select exists (select 1 from accounts) as found'), []);
    if (row?.found) return null;
    const created = await create(session, config.ownerEmail, config.regionId);
    const setup_url = await newSetupUrl(session, config);
    const first = { ...created, base_url: config.baseUrl, setup_url };
    // Before the commit: a key that could not be shown would be lost for ever.
    await writeFirstKey(config.dataDir, first);
    return first;
  });
}

/**
 * Another address for an installation whose owner has set no password yet: the text that says it, as `firstBootText`
 * does. null for every other installation.
 */
export async function renewSetupUrl(
  { database, config }: Pick<Platform, 'database' | 'config'>,
  output: Output,
): Promise<string | null> {
  const setup_url = await database.transaction((session) => newSetupUrl(session, config));
  if (!setup_url) return null;
  const file = firstKeyFile(config.dataDir);
  if (output === 'log')
    await writeFirstKey(config.dataDir, {
      ...(await readFirstStart(config.dataDir)),
      ...{ base_url: config.baseUrl, setup_url },
    });
  return [...setupText(setup_url, output === 'terminal' ? null : file), ''].join('\n');
}

/** What to do where nobody is an operator; null where somebody is. */
export async function operatorWarning({ database }: Pick<Platform, 'database'>): Promise<string | null> {
  return (await countOperators(database)) ? null : missingOperator();
}

/** What the operator has left of the file of the first start. */
export async function readFirstStart(dataDir: string): Promise<Partial<FirstKey>> {
  try {
    return JSON.parse(await readFile(firstKeyFile(dataDir), 'utf8')) as Partial<FirstKey>;
  } catch {
    return {};
  }
}

/** The code is behind `#`, which browsers do not send: it is in no log of a proxy. */
async function newSetupUrl(session: Session, { baseUrl, loginPassword }: Platform['config']): Promise<string | null> {
  const code = loginPassword === 'on' ? await newFirstStartCode(session) : null;
  return code && `${baseUrl}/welcome#${code}`;
}

/** Takes a first boot back whose service could not listen: the next start is the first one then. */
export async function undoFirstBoot(
  { database, config }: Pick<Platform, 'database' | 'config'>,
  { project_id }: FirstKey,
): Promise<void> {
  await database.transaction(async (session) => {
    const [owner] = await session.query<{ user_id: string; account_id: string }>(
      named('select m.user_id, u.account_id from members m join users u on u.id = m.user_id where m.project_id = $1'),
      [project_id],
    );
    const remove = (text: string, id: string | undefined): Promise<unknown[]> => session.query(named(text), [id]);
    await remove('delete from api_keys where user_id = $1', owner?.user_id);
    await remove('delete from account_links where user_id = $1', owner?.user_id);
    await remove('delete from members where project_id = $1', project_id);
    await remove('delete from projects where id = $1', project_id);
    await remove('delete from users where id = $1', owner?.user_id);
    await remove('delete from accounts where id = $1', owner?.account_id);
  });
  await rm(firstKeyFile(config.dataDir), { force: true });
}

function firstKeyFile(dataDir: string): string {
  return path.join(dataDir, 'first-key.json');
}

async function writeFirstKey(dataDir: string, first: Partial<FirstKey>): Promise<void> {
  const file = firstKeyFile(dataDir);
  makePassableDirectory(dataDir);
  try {
    // Replaced, since an existing one would keep its permissions.
    await replaceFile(file, formatJson(first));
  } catch (error) {
    throw new StartupError(`can't write ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function formatJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function create(session: Session, email: string, region: string): Promise<{ key: string; project_id: string }> {
  const [account, user, project, key] = [mintId('acc'), mintId('usr'), mintId('prj'), mintId('key')];
  const { token, prefix, hash } = mintToken('personal');
  const run = (text: string, values: unknown[]): Promise<unknown[]> => session.query(named(text), values);
  await run('insert into accounts (id, name) values ($1, $2)', [account, 'Owner']);
  await run('insert into users (id, account_id, email, name, is_operator) values ($1, $2, $3, $4, true)', [
    ...[user, account, email, 'Owner'],
  ]);
  await run(
    `insert into projects (id, account_id, name, default_region, created_at, updated_at)
      values ($1, $2, $3, $4, now(), now())`,
    [project, account, 'First project', region],
  );
  await run('insert into members (project_id, user_id, role) values ($1, $2, $3)', [project, user, 'owner']);
  await run(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, scopes, created_by)
      values ($1, 'personal', 'First key', $2, $3, $4, $5, $4)`,
    [key, prefix, hash, user, Object.keys(scopes)],
  );
  return { key: token, project_id: project };
}

/** The destination of the text: without a terminal, it may be a file or a log collector, which store their input. */
export type Output = 'terminal' | 'log';

/**
 * What the operator sees once, ready to paste: the last lines of the first start. The key itself is shown on a terminal
 * only; else its file is named.
 */
export function firstBootText(first: FirstKey, facts: EngineFacts, config: Config, output: Output): string {
  const { key, project_id, base_url, setup_url } = first;
  const file = firstKeyFile(config.dataDir);
  const isShown = output === 'terminal';
  const headers = `-H "Authorization: Bearer $KEY" -H 'X-Svc-Project: ${project_id}'`;
  const json = `-H 'Content-Type: application/json'`;
  const firstId = `grep -o 'app_[0-9a-z]*' | head -1`;
  const application = '{"name": "hello", "preset": "node-web"}';
  return [
    ...missingText(facts),
    '',
    isShown
      ? 'Welcome. The key is shown only once. It is also in first-key.json in the data directory.'
      : 'Welcome. The first API key is not shown because the output is not a terminal. The file below contains it.',
    ...setupText(setup_url, isShown ? null : file),
    '',
    `  dashboard     ${base_url}/`,
    `  API           ${base_url}/v2`,
    `  reference     ${base_url}/v2/docs`,
    `  GraphQL       ${base_url}/graphql`,
    `  applications  ${applicationUrl(config, `<application>.${config.appsDomain}`)}`,
    `  key           ${isShown ? key : file}`,
    `  project       ${project_id}`,
    '',
    ...domainText(config),
    'Next, deploy an application: in the dashboard, or from another terminal. The last response contains its address:',
    '',
    isShown ? `  KEY=${key}` : `  KEY=$(node -p "require('${file}').key")`,
    `  curl ${base_url}/v2/me ${headers}`,
    `  ID=$(curl -sS ${base_url}/v2/applications ${headers} ${json} -d '${application}' | ${firstId})`,
    `  curl ${base_url}/v2/applications/$ID/deployments ${headers} ${json} -H 'Prefer: wait=60' -d '{}'`,
    `  curl ${base_url}/v2/applications/$ID ${headers}`,
    '',
  ].join('\n');
}

/** @param file that names the address, where it must not be shown */
function setupText(setup_url: string | null, file: string | null): string[] {
  if (!setup_url) return [];
  const where = file === null ? setup_url : `setup_url in ${file}`;
  const build = isDashboardBuilt() ? [] : ['', 'The dashboard is not built. Before that: npm ci && npm run build'];
  return ['', 'Set your password in the dashboard, once within 24 hours:', '', `  ${where}`, ...build];
}

function domainText(config: Config): string[] {
  const missing = missingDomain(config);
  return missing === null ? [] : [missing, ''];
}

function missingText(facts: EngineFacts): string[] {
  const missing = missingPrograms(facts, process.getuid?.() === 0);
  if (!missing.length) return [];
  return [
    '',
    'Not installed on this host:',
    '',
    ...missing.map(({ name, consequence }) => `  ${name.padEnd(12)} ${consequence}`),
    '',
    'To install them:',
    '',
    `  ${setupCommand()}`,
  ];
}
