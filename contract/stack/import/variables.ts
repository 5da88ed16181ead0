// Variables of applications: values, secrets, and references to databases.
import { ATTACHMENT_PARTS } from '../kinds';
import { takeAll, type Node, type Place } from './node';
import { note, type Application, type ImportRun } from './run';
import { isLikelySecret } from './secrets';
import { setSetting } from './application';

export type Part = (typeof ATTACHMENT_PARTS)[number];

const KEY = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const VALUE_BYTES_MAX = 32_768;
const VARIABLES_MAX = 500;

/** A variable as the file has it. `value` is null where it is set elsewhere. */
export interface Given {
  key: string;
  value: string | null;
  node: Node;
  available_at?: 'build' | 'runtime';
}

/** Sets a variable. What looks like a secret is not written. */
export function setVariable(run: ImportRun, application: Application, given: Given): void {
  const { key, value, node, available_at } = given;
  takeAll(node);
  if (key === 'PORT') return setPortVariable(run, application, given);
  if (!KEY.test(key)) return note(run, node, 'A name of a variable has letters, digits and _ alone.', 'variables');
  if (key.startsWith('SVC_')) return note(run, node, 'Names that begin with SVC_ belong to the platform.', 'variables');
  if (application.variables.size >= VARIABLES_MAX)
    return note(run, node, `An application has at most ${VARIABLES_MAX} variables here.`, 'variables');
  if (value === null) return void application.variables.set(key, new Map([['secret', true]]));
  if (Buffer.byteLength(value) > VALUE_BYTES_MAX || value.includes('\0'))
    return note(run, node, `A value has at most ${VALUE_BYTES_MAX} bytes.`, 'A file of the source.');
  if (node.hasSecret || isLikelySecret(key, value)) {
    application.variables.set(key, new Map([['secret', true]]));
    return note(run, node, 'The value looks like a secret, so it is not in platform.yaml.', setCommandOf(key));
  }
  const text = value.replaceAll('${', '$$${');
  const timed = new Map([
    ['value', text],
    ['available_at', available_at ?? ''],
  ]);
  application.variables.set(key, available_at ? timed : text);
}

export const setCommandOf = (key: string): string => `svc env set ${key}`;

/** The platform sets PORT. */
function setPortVariable(run: ImportRun, application: Application, { value, node }: Given): void {
  const port = Number(value);
  if (value !== null && /^\d{1,5}$/.test(value) && port >= 1 && port <= 65_535)
    setSetting(application, 'http', 'port', port);
  else note(run, node, 'The platform sets PORT.', 'http.port');
}

/**
 * A variable with a part of a database. A database is attached to an application once, so its variables have one
 * prefix, and they end with the names of the parts; others are noted.
 */
export function attach(
  run: ImportRun,
  application: Application,
  { key, part, database }: { key: string; part: Part; database: string },
  place: Place,
): void {
  const suffix = `_${part.toUpperCase()}`;
  const wished = key.endsWith(suffix) && KEY.test(key) ? key.slice(0, -suffix.length) : '';
  const prefix =
    attachedPrefix(application, database) ??
    (isFree(application, wished) ? wished : newPrefix(run, application, database));
  const found = `${prefix}${suffix}`;
  application.variables.set(found, `\${database.${database}.${part}}`);
  if (found === key) return;
  const reason = wished
    ? `A database is attached to an application once, as ${prefix}_….`
    : `The ${part === 'url' ? 'address' : part} of a database is in a variable whose name ends with ${suffix}.`;
  note(run, place, reason, `The program reads ${found}.`);
}

const REFERENCE = /^\$\{database\.([^.]+)\.([a-z]+)\}$/;

/** The prefix by which an application knows a database. */
function attachedPrefix(application: Application, database: string): string | undefined {
  for (const [key, value] of application.variables) {
    const [, name, part = ''] = typeof value === 'string' ? (REFERENCE.exec(value) ?? []) : [];
    if (name === database) return key.slice(0, -part.length - 1);
  }
  return undefined;
}

export const isAttached = (application: Application, database: string): boolean =>
  attachedPrefix(application, database) !== undefined;

function newPrefix(run: ImportRun, application: Application, database: string): string {
  const engine = String(run.databases.get(database)?.get('engine'));
  const plain = ['redis', 'valkey'].includes(engine) ? 'REDIS' : 'DATABASE';
  const own = database.toUpperCase().replaceAll('-', '_');
  return [plain, own].find((prefix) => isFree(application, prefix)) ?? `${own}_DATABASE`;
}

/** Whether no other database has the prefix. */
function isFree(application: Application, prefix: string): boolean {
  const values = ATTACHMENT_PARTS.map((part) => application.variables.get(`${prefix}_${part.toUpperCase()}`));
  return prefix !== '' && !values.some((value) => typeof value === 'string' && REFERENCE.test(value));
}

/** A database as the variables of others point to it. */
export interface Reachable {
  /** Its name in the file that is written. */
  database: string;
  /** Names by which the variables reach it. */
  hosts: readonly string[];
  /** What its own variables say. */
  credentials: { user?: string | undefined; password?: string | undefined; name?: string | undefined };
}

/** Sets variables; those that point to a database become references. */
export function importVariables(
  run: ImportRun,
  application: Application,
  variables: readonly Given[],
  databases: readonly Reachable[],
  services: ReadonlySet<string> = new Set(),
): void {
  const later: Given[] = [];
  const known = new Map(databases.flatMap((one) => one.hosts.map((host): [string, Reachable] => [host, one])));
  for (const given of variables) {
    const found = given.value === null ? undefined : pointsTo(given.value, (host) => known.get(host));
    // DB_USER=postgres and DB_CONNECTION=mysql are words, though a service may be called so.
    const isWord = found?.part === 'host' && found.isPlain && !NAMES_HOST.test(given.key);
    if (!found || isWord || given.value === null) later.push(given);
    else attachGiven(run, application, given as Given & { value: string }, found);
  }
  for (const given of later)
    if (!attachSibling(run, application, given, databases)) {
      noteService(run, given, services);
      setVariable(run, application, given);
    }
}

/** Names of services mean nothing outside of the network of Compose. */
function noteService(run: ImportRun, { value, node }: Given, services: ReadonlySet<string>): void {
  if (value === null || value.length > ADDRESS_MAX || node.hasSecret) return;
  const [, , host = ''] = URL_HOST.exec(value) ?? [];
  const [, bare = ''] = /^([^:/@\s]+):\d+$/.exec(value) ?? [];
  const name = [host, bare].find((one) => services.has(one));
  if (name !== undefined)
    note(
      run,
      node,
      `The value names the service ${name}. Applications reach each other by their public host names.`,
      `The host name of ${name}, as svc domains shows it`,
    );
}

type Pointer = { part: Part; database: Reachable; isPlain: boolean };

const URL_HOST = /^(?:jdbc:)?([a-z][a-z0-9+.-]*):\/\/(?:[^@/\s]*@)?([^:/?#\s,]+)(?::\d+)?(?:[/?#]\S*)?$/i;
const NAMES_HOST = /(HOST|HOSTS|HOSTNAME|SERVER|SERVERS|ADDR|ADDRESS|ENDPOINT|NODE|URL|URI)$/i;
const ADDRESS_MAX = 4_096;
const PLAIN_SCHEMES = ['postgres', 'postgresql', 'mysql', 'mariadb', 'redis', 'rediss', 'valkey'];

function pointsTo(value: string, byHost: (host: string) => Reachable | undefined): Pointer | undefined {
  if (value.length > ADDRESS_MAX) return undefined;
  const exact = byHost(value);
  if (exact) return { part: 'host', database: exact, isPlain: true };
  const [, scheme = '', host = ''] = URL_HOST.exec(value) ?? [];
  const named = byHost(host);
  if (named)
    return { part: 'url', database: named, isPlain: PLAIN_SCHEMES.includes(scheme) && !value.startsWith('jdbc:') };
  const [, bare = ''] = /^([^:/@\s]+):\d+$/.exec(value) ?? [];
  const addressed = byHost(bare);
  if (addressed) return { part: 'host', database: addressed, isPlain: false };
  if (!/[@=;]/.test(value)) return undefined;
  const inside = value
    .split(/[@/=;,:\s()'"]/)
    .map(byHost)
    .find((one) => one !== undefined);
  return inside && { part: 'url', database: inside, isPlain: false };
}

function attachGiven(
  run: ImportRun,
  application: Application,
  { key, node }: Given & { value: string },
  { part, database: { database }, isPlain }: Pointer,
): void {
  takeAll(node);
  attach(run, application, { key, part, database }, node);
  if (!isPlain)
    note(
      run,
      node,
      part === 'host'
        ? 'Host and port are in variables of their own here.'
        : 'The address has another form here: scheme://user:password@host:port/name, as the engine has it.',
      'The program makes it of the parts that the platform sets.',
    );
}

const SIBLING = /^(.+)_(URL|HOST|PORT|USER|PASSWORD|NAME|USERNAME|DATABASE|DB|PASS|PWD|DBNAME|SERVER)$/;
const SAME: Readonly<Record<string, Part>> = {
  ...{ USERNAME: 'user', DATABASE: 'name', DB: 'name', PASS: 'password', PWD: 'password', DBNAME: 'name' },
};

/** Variables beside one that points to a database: its port, its user, its name. */
function attachSibling(
  run: ImportRun,
  application: Application,
  { key, value, node }: Given,
  databases: readonly Reachable[],
): boolean {
  const [, prefix = '', end = ''] = SIBLING.exec(key) ?? [];
  const found = databases.find(({ database }) =>
    ATTACHMENT_PARTS.some(
      (part) => application.variables.get(`${prefix}_${part.toUpperCase()}`) === `\${database.${database}.${part}}`,
    ),
  );
  const plain = (ATTACHMENT_PARTS as readonly string[]).includes(end.toLowerCase());
  if (prefix && found && (plain || SAME[end])) {
    const part = plain ? (end.toLowerCase() as Part) : (SAME[end] as Part);
    takeAll(node);
    attach(run, application, { key, part, database: found.database }, node);
    return true;
  }
  const own = value ? databases.find(({ credentials }) => credentials.password === value) : undefined;
  if (!own || !isAttached(application, own.database) || !isLikelySecret(key, value as string)) return false;
  takeAll(node);
  attach(run, application, { key, part: 'password', database: own.database }, node);
  return true;
}
