// Certificates of servers, from the installation's own authority.
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import {
  isOutdated,
  issueServerCertificate,
  newAuthority,
  type KeyedCertificate,
} from '../../../drivers/certificates/authority';
import { authorityFor } from '../../../models/databases/authority';
import type { JobContext } from '../../job';
import { sealedColumns } from '../../../models/base/sealed_columns';

interface Certified {
  /** Binds the key: it stays when a replica becomes a database. */
  server_id: string;
  tls_certificate: string | null;
  tls_key: string | null;
  /** Name of its Service in the cluster; else the server is on this host. */
  host?: string | null;
}

const PURPOSE = 'databases';

/** The certificate authority of all databases, created at the first use. */
export function databaseAuthority({
  sql,
  secrets,
  config,
}: {
  sql: Sql;
  secrets: SecretBox;
  config: Config;
}): Promise<KeyedCertificate> {
  return authorityFor(sql, secrets, PURPOSE, () => newAuthority(`Databases of ${config.appsDomain}`));
}

/** The certificate that a server has; null where it has none yet. */
export function presentCertificate(
  { server_id, tls_certificate, tls_key }: Certified,
  secrets: SecretBox,
): KeyedCertificate | null {
  return tls_certificate && tls_key
    ? { certificate: tls_certificate, key: secrets.open(tls_key, sealedColumns.databaseServerKey.contextOf(server_id)) }
    : null;
}

/** The certificate of a server, a new one where it has none or nears its end. It is in the row before it is used. */
export async function ensureCertificate(
  row: Certified,
  ctx: JobContext,
): Promise<KeyedCertificate & { authority: string }> {
  const authority = await databaseAuthority(ctx);
  const { ingressHost, databaseAddressForPods } = ctx.config;
  const ofHost = ['127.0.0.1', 'localhost', ingressHost, ...(databaseAddressForPods ? [databaseAddressForPods] : [])];
  const names = row.host == null ? ofHost : [row.host];
  const present = presentCertificate(row, ctx.secrets);
  if (present && !isOutdated(present.certificate, authority.certificate, names))
    return { ...present, authority: authority.certificate };
  const made = await issueServerCertificate(authority, names);
  await ctx.record({
    tls_certificate: made.certificate,
    tls_key: ctx.secrets.seal(made.key, sealedColumns.databaseServerKey.contextOf(row.server_id)),
  });
  return { ...made, authority: authority.certificate };
}
