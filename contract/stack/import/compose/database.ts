// A service whose image is a database that the platform has.
import { hostNamesOf, serviceVariables } from './values';
import { addDatabase, setDatabaseName } from '../application';
import { itemsOf, take, takeAll, nodeText, type Node } from '../node';
import { note, report, type ImportRun } from '../run';
import type { KnownImage } from '../images';
import type { Reachable } from '../variables';

const USER = ['POSTGRES_USER', 'POSTGRESQL_USERNAME', 'MYSQL_USER', 'MARIADB_USER', 'REDIS_USERNAME'];
const PASSWORD = [
  ...['POSTGRES_PASSWORD', 'POSTGRESQL_PASSWORD', 'MYSQL_PASSWORD', 'MARIADB_PASSWORD', 'REDIS_PASSWORD'],
  ...['MYSQL_ROOT_PASSWORD', 'MARIADB_ROOT_PASSWORD'],
];
const NAME = ['POSTGRES_DB', 'POSTGRESQL_DATABASE', 'MYSQL_DATABASE', 'MARIADB_DATABASE'];
const OWN = [
  ...['PGDATA', 'POSTGRES_HOST_AUTH_METHOD', 'MYSQL_ALLOW_EMPTY_PASSWORD', 'MARIADB_ALLOW_EMPTY_ROOT_PASSWORD'],
  ...['ALLOW_EMPTY_PASSWORD', 'MYSQL_RANDOM_ROOT_PASSWORD', 'MARIADB_RANDOM_ROOT_PASSWORD'],
];

const HANDLED = new Set([...USER, ...PASSWORD, ...NAME, ...OWN]);
const OF_SERVERS = /^(POSTGRES|MYSQL_|MARIADB_|VALKEY_|REDIS_(PORT|REPLICATION|MASTER|AOF|RDB|DISABLE|EXTRA))/;

/** @returns how others reach it; nothing where the engine is not installed */
export function readDatabase(run: ImportRun, name: string, service: Node, known: KnownImage): Reachable[] {
  const { engine, version } = known;
  const database = addDatabase(run, { original: name, engine, version }, take(service, 'image') ?? service);
  if (database === null) {
    takeAll(service);
    return [];
  }
  if (/mysql|percona/i.test(known.name))
    note(run, take(service, 'image') ?? service, 'MariaDB takes the place of MySQL.', 'svc db import');
  else if (!/(^|\/)(postgres|mariadb|redis|valkey)$/.test(known.name))
    note(run, take(service, 'image') ?? service, `The database is a plain ${engine}.`, 'svc db extensions');
  const variables = serviceVariables(run, service);
  const valueOf = (keys: readonly string[]): string | undefined =>
    variables.find(({ key, value }) => keys.includes(key) && value !== null)?.value ?? undefined;
  for (const { key, node } of variables)
    // A file of variables may be that of all services.
    if ((node.file === service.file || OF_SERVERS.test(key)) && !HANDLED.has(key) && !key.endsWith('_FILE'))
      note(run, node, 'The platform sets how databases run.', 'database_package');
  const databaseName = valueOf(NAME);
  if (databaseName) setDatabaseName(run, database, databaseName, service);
  // The platform checks, restarts and stores databases by itself.
  for (const key of ['healthcheck', 'restart', 'init']) {
    const node = take(service, key);
    if (node) takeAll(node);
  }
  for (const volume of itemsOf(take(service, 'volumes'))) readVolume(run, volume);
  const credentials = { user: valueOf(USER), password: valueOf(PASSWORD), name: databaseName };
  return [{ database, hosts: hostNamesOf(name, service), credentials }];
}

/** Its data are on a disk of the platform; scripts that fill it are not. */
function readVolume(run: ImportRun, volume: Node): void {
  const source = volume.is === 'map' ? nodeText(take(volume, 'source')) : nodeText(volume);
  const target = volume.is === 'map' ? (nodeText(take(volume, 'target')) ?? '') : (source ?? '');
  takeAll(volume);
  if (target.includes('docker-entrypoint-initdb.d'))
    return report(run, volume, 'A new database is empty.', 'svc db import, or a release_command');
  if (/\.(conf|cnf|sql|sh)(:|$)/.test(target))
    report(run, volume, 'The platform sets how databases run.', 'database_package');
}
