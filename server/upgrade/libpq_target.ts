// A DATABASE_URL for programs of PostgreSQL. All users of the machine can read lists of arguments, so secrets go by the
// environment; and libpq refuses parameters that only node-postgres knows.

import { hostsOf, isFailedOver, serversOf } from '../../core/postgres_url';

/** Of libpq (PostgreSQL manual, "Parameter Key Words"): those that say where and how, and are no secrets. */
const PARAMETERS = new Set([
  ...['host', 'hostaddr', 'port', 'connect_timeout', 'options', 'application_name', 'target_session_attrs'],
  ...['sslmode', 'sslnegotiation', 'sslcert', 'sslkey', 'sslrootcert', 'sslcrl', 'sslcrldir', 'sslsni'],
  ...['ssl_min_protocol_version', 'channel_binding', 'gssencmode', 'krbsrvname', 'passfile', 'require_auth'],
  ...['keepalives', 'keepalives_idle', 'keepalives_interval', 'keepalives_count', 'tcp_user_timeout'],
]);

const CONNECT_SECONDS = 10;

export interface LibpqTarget {
  /** For a list of arguments. */
  url: string;
  env: { PGUSER?: string; PGPASSWORD?: string };
}

/** As node-postgres reads a URL: `user` and `password` among the parameters come before those in front of the host. */
export function libpqTarget(databaseUrl: string): LibpqTarget {
  const url = new URL(serversOf(databaseUrl)?.[0] ?? databaseUrl);
  const given = new URLSearchParams(url.search);
  const user = given.get('user') || decodeURIComponent(url.username);
  const password = given.get('password') || decodeURIComponent(url.password);
  Object.assign(url, { username: '', password: '', search: '', hash: '' });
  if (isFailedOver(databaseUrl)) given.set('target_session_attrs', 'read-write');
  // libpq would wait for ever for a server whose machine hangs, and not try the next one.
  if (!given.has('connect_timeout')) given.set('connect_timeout', String(CONNECT_SECONDS));
  const kept = [...given].filter(([name]) => PARAMETERS.has(name));
  // Not as URLSearchParams writes them: libpq takes + for what it is.
  url.search = kept.map(([name, value]) => `${name}=${encodeURIComponent(valueOf(name, value))}`).join('&');
  return {
    url: url.href.replace(`//${url.host}`, `//${hostsOf(databaseUrl)}`),
    env: { ...(user && { PGUSER: user }), ...(password && { PGPASSWORD: password }) },
  };
}

/** `no-verify` is of node-postgres alone, and what libpq calls `require`. */
function valueOf(name: string, value: string): string {
  return name === 'sslmode' && value === 'no-verify' ? 'require' : value;
}
