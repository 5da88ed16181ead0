// URLs of PostgreSQL that name several servers, of which one at a time takes writes (PostgreSQL manual, "Connection
// URIs" and target_session_attrs). The URL standard knows no such addresses.

const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([^]*)$/;
const TARGET = 'target_session_attrs';
/** Several servers are named in front of the path alone. */
const IN_PARAMETERS = ['host', 'hostaddr', 'port'];
const WRITABLE = new Set(['read-write', 'primary']);

/** @returns one URL per server, in order; null where it is none of PostgreSQL, or asks for one that takes no writes */
export function serversOf(url: string): string[] | null {
  const [, head = '', hosts = '', rest = ''] = PARTS.exec(url) ?? [];
  const servers = hosts.split(',').map((host) => head + host + rest);
  if (head === '' || !servers.every((server) => URL.canParse(server))) return null;
  if (servers.length > 1 && hosts.split(',').includes('')) return null;
  const parameters = new URL(servers[0]!).searchParams;
  if (IN_PARAMETERS.some((name) => parameters.get(name)?.includes(','))) return null;
  return parameters.getAll(TARGET).every((target) => WRITABLE.has(target)) ? servers : null;
}

/** Whether a server has to be asked if it takes writes before it is used. */
export function isFailedOver(url: string): boolean {
  const servers = serversOf(url) ?? [];
  return servers.length > 1 || servers.some((server) => new URL(server).searchParams.has(TARGET));
}

/** The servers as libpq reads them: `a:5432,b:5432`. */
export function hostsOf(url: string): string {
  return PARTS.exec(url)?.[2] ?? '';
}
