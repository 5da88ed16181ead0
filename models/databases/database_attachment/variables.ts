// What an application gets of a database that is attached to it.
import { isKeyValue } from '../../../core/catalog/catalogs';
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import { loginOf } from '../database_user/logins';
import { openPassword } from '../database_user/password';
import { rewriteManaged, type Variables } from '../../environment/environment_variable/managed';
import { connectionString, endpointHost } from '../database/credentials';
import { named } from '../../../db/statement';
import type { DatabaseEndpointAccess } from '../../../schema/types';

interface Place {
  id: string;
  engine: string;
  database_name: string | null;
}

interface Endpoint {
  access: DatabaseEndpointAccess;
  host: string | null;
  port: number;
}

interface Login {
  username: string;
  password: string;
}

/** The default prefix of the variable names. */
export function defaultPrefix(engine: string): string {
  return isKeyValue(engine) ? 'REDIS' : 'DATABASE';
}

/** Names of the variables of an attachment. A server without named databases gives none for it. */
export function variableNames(prefix: string, engine: string): string[] {
  const parts = ['URL', 'HOST', 'PORT', 'USER', 'PASSWORD', ...(isKeyValue(engine) ? [] : ['NAME'])];
  return parts.map((part) => `${prefix}_${part}`);
}

/** The variables with their values. @param login with its password in plain */
export function attachmentVariablesOf(
  config: Config,
  prefix: string,
  database: Place,
  endpoint: Endpoint,
  login: Login,
): Variables {
  const place = { host: endpointHost(config, endpoint), port: endpoint.port };
  const values = [
    connectionString(database, login, place),
    place.host,
    String(place.port),
    login.username,
    login.password,
    database.database_name ?? '',
  ];
  return Object.fromEntries(
    variableNames(prefix, database.engine).map((name, index) => [name, values[index] as string]),
  );
}

/** Which attachments of a database: those that use this user, or this endpoint; all without either. */
export interface Selection {
  database_id: string;
  user_id?: string;
  endpoint_id?: string;
}

const SELECT =
  named(`select a.id, a.application_id, a.env_prefix, d.id as database_id, d.engine, d.database_name, e.access,
    e.host, e.port, u.id as user_id, u.username, u.password, u.login,
    u.previous_password
  from database_attachments a join databases d on d.id = a.database_id
    join database_endpoints e on e.id = a.endpoint_id join database_users u on u.id = a.user_id
  where a.database_id = $1 and ($2::text is null or a.user_id = $2) and ($3::text is null or a.endpoint_id = $3)
    order by a.application_id`);

interface Row extends Endpoint, Login {
  id: string;
  application_id: string;
  env_prefix: string;
  database_id: string;
  engine: string;
  database_name: string | null;
  user_id: string;
  login: string | null;
  previous_password: string | null;
}

/**
 * Writes the present address and credentials into the variables of attachments, in the caller's transaction, which
 * holds the database. They act with the next deployment or restart.
 * @returns ids of the applications of which a variable has changed
 */
export async function refreshVariables(
  { sql, secrets, config }: { sql: Sql; secrets: SecretBox; config: Config },
  { database_id, user_id, endpoint_id }: Selection,
): Promise<string[]> {
  const rows = await sql.query<Row>(SELECT, [database_id, user_id ?? null, endpoint_id ?? null]);
  const changed: string[] = [];
  for (const row of rows) {
    const login = {
      username: loginOf(row),
      password: openPassword(secrets, { id: row.user_id, password: row.password }),
    };
    const variables = attachmentVariablesOf(config, row.env_prefix, { ...row, id: row.database_id }, row, login);
    if (await rewriteManaged(sql, secrets, row, variables)) changed.push(row.application_id);
  }
  return changed;
}
