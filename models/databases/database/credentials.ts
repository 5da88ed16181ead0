// How to connect to a database: passwords, addresses and connection strings.
import { randomBytes } from 'node:crypto';
import { isKeyValue } from '../../../core/catalog/catalogs';
import { serviceHostOf } from '../../../core/cluster_names';
import type { Config } from '../../../core/config';
import type { Context, Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import type { DatabaseCredentials, DatabaseEndpointAccess } from '../../../schema/types';
import { named } from '../../../db/statement';
import { sealedColumns } from '../../base/sealed_columns';

/** 24 random bytes are 32 characters, none of which needs quoting in a URL. */
const PASSWORD_BYTES = 24;

const ENDPOINTS = named(
  `select id, name, access, host, port from database_endpoints
    where database_id = $1 and deleted_at is null order by id`,
);

export interface Server {
  id: string;
  engine: string;
  database_name: string | null;
}

interface Endpoint {
  id: string;
  name: string;
  access: DatabaseEndpointAccess;
  /** Name of its Service in the cluster; null: the server is on this host. */
  host: string | null;
  port: number;
}

/** 32 URL-safe characters. */
export function newPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

/** Seals the password of the platform's own administrator in a server. */
export function sealAdminPassword(secrets: SecretBox, databaseId: string, password: string): string {
  return secrets.seal(password, sealedColumns.databaseAdminPassword.contextOf(databaseId));
}

/** For the job, which works as the administrator. */
export function openAdminPassword(secrets: SecretBox, database: { id: string; admin_password: string }): string {
  return secrets.open(database.admin_password, sealedColumns.databaseAdminPassword.contextOf(database.id));
}

/** What clients of an endpoint connect to: servers listen on the loopback interface, public ones beside it. */
export function endpointHost(config: Config, { access, host }: Pick<Endpoint, 'access' | 'host'>): string {
  if (host !== null) return host;
  return access === 'private' ? '127.0.0.1' : config.ingressHost;
}

/** Name of the Service of a server in the cluster; null: the server is on this host. */
export function serviceOf(
  { kubernetesNamespacePrefix: prefix }: Pick<Config, 'kubernetesNamespacePrefix'>,
  { on_cluster, project_id, server_id }: { on_cluster: boolean; project_id: string; server_id: string },
): string | null {
  return on_cluster ? serviceHostOf(prefix, project_id, server_id) : null;
}

/**
 * The connection URL in the form that clients of the engine take. Names and passwords need no quoting. The URL of
 * MariaDB has no parameter: each client names its TLS parameter differently, and rejects the others
 * (docs/decisions/0031).
 */
export function connectionString(
  { engine, database_name }: Server,
  login: { username: string; password: string },
  place: { host: string; port: number },
): string {
  const address = `${login.username}:${login.password}@${place.host}:${place.port}`;
  if (isKeyValue(engine)) return `rediss://${address}`;
  if (engine === 'mariadb') return `mysql://${address}/${database_name}`;
  return `postgresql://${address}/${database_name}?sslmode=require`;
}

/** Everything that a user of a database needs, for every endpoint, oldest first. */
export async function credentialsOf(
  ctx: Context,
  server: Server,
  login: { username: string; password: string; previous_until: string | null },
): Promise<DatabaseCredentials> {
  const endpoints = await endpointsOf(ctx.sql, server.id);
  return {
    username: login.username,
    password: login.password,
    database_name: server.database_name,
    previous_password_valid_until: login.previous_until,
    endpoints: endpoints.map(({ id, name, access, host, port }) => {
      const place = { host: endpointHost(ctx.config, { access, host }), port };
      return { endpoint_id: id, name, access, ...place, connection_string: connectionString(server, login, place) };
    }),
  };
}

function endpointsOf(sql: Sql, databaseId: string): Promise<Endpoint[]> {
  return sql.query<Endpoint>(ENDPOINTS, [databaseId]);
}
