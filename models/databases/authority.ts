// The installation's certificate authorities, each created at first use.
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import { named } from '../../db/statement';
import { sealedColumns } from '../base/sealed_columns';

/** PEM. */
interface StoredAuthority {
  certificate: string;
  key: string;
}

const FIND = named('select certificate, key from authorities where id = $1');
const MAKE = named('insert into authorities (id, certificate, key) values ($1, $2, $3) on conflict (id) do nothing');

/** The authority for a purpose, its key opened. @param make a new one, for the first time */
export async function authorityFor(
  sql: Sql,
  secrets: SecretBox,
  purpose: string,
  make: () => Promise<StoredAuthority>,
): Promise<StoredAuthority> {
  const place = sealedColumns.authorityKey.contextOf(purpose);
  let [found] = await sql.query<StoredAuthority>(FIND, [purpose]);
  if (!found) {
    const { certificate, key } = await make();
    await sql.query(MAKE, [purpose, certificate, secrets.seal(key, place)]);
    // Another process may have been first.
    [found] = await sql.query<StoredAuthority>(FIND, [purpose]);
  }
  const { certificate, key } = found as StoredAuthority;
  return { certificate, key: secrets.open(key, place) };
}
