// Where an import takes its data from: an address with credentials, which is kept sealed.
import { validationFailed } from '../../../core/errors';
import type { SecretBox } from '../../../core/secrets';
import type { DatabaseImportSourceInput } from '../../../schema/types';
import { sealedColumns } from '../../base/sealed_columns';

export interface UrlSource {
  /** What may be shown of it. */
  address: string;
  /** Not a file. */
  isServer: boolean;
  seal(secrets: SecretBox, id: string): string;
}

/** Schemes of servers, by engine. */
const SERVERS: Readonly<Record<string, readonly string[]>> = {
  postgresql: ['postgresql:', 'postgres:'],
  mariadb: ['mysql:', 'mariadb:'],
};
/** Parameters that do not read files of the host, or run its programs. */
const PARAMETERS = new Set(['sslmode', 'ssl-mode', 'application_name', 'channel_binding', 'connect_timeout']);

/** null: the file is uploaded. @throws validation_failed */
export function sourceOf({ url, upload }: DatabaseImportSourceInput, engine: string): UrlSource | null {
  if ((url == null) === (upload !== true)) throw refused('source', 'must have either url or upload');
  if (url == null) return null;
  const field = 'source.url';
  if (!URL.canParse(url)) throw refused(field, 'must be an address');
  const parsed = new URL(url);
  const servers = SERVERS[engine] ?? [];
  const schemes = ['https:', ...servers];
  if (!schemes.includes(parsed.protocol))
    throw refused(field, `must begin with one of ${schemes.map((scheme) => `${scheme}//`).join(', ')}`);
  if (servers.includes(parsed.protocol)) requireServer(parsed, field);
  const { protocol, host, pathname } = parsed;
  return {
    address: `${protocol}//${host}${pathname}`,
    isServer: servers.includes(protocol),
    seal: (secrets, id) => secrets.seal(url, sealedColumns.importSource.contextOf(id)),
  };
}

/** The address as it was given. */
export function openImportSource(
  secrets: SecretBox,
  { id, sealed_source }: { id: string; sealed_source: string },
): URL {
  return new URL(secrets.open(sealed_source, sealedColumns.importSource.contextOf(id)));
}

function requireServer(url: URL, field: string): void {
  if (url.hostname === '' || url.username === '' || !/^\/[^/]+$/.test(url.pathname))
    throw refused(field, 'must have a host, a user and the name of a database');
  for (const name of url.searchParams.keys())
    if (!PARAMETERS.has(name)) throw refused(field, `must not have the parameter ${name.slice(0, 40)}`);
}

function refused(field: string, detail: string): Error {
  return validationFailed([{ field, code: 'invalid_format', detail }]);
}
