// The DKIM keys of a sending domain: a sealed list in its row.
import { dkimRecordOf, newDkimKeys, type DkimKey, type DkimRecord } from '../../../core/protocols/dkim';
import type { SecretBox } from '../../../core/secrets';
import type { Values } from '../../../db/table';
import { sealedColumns } from '../../base/sealed_columns';

/** The private keys of a domain. */
export function openDkimKeys(secrets: SecretBox, { id, dkim_keys }: { id: string; dkim_keys: string }): DkimKey[] {
  return JSON.parse(secrets.open(dkim_keys, sealedColumns.dkimKeys.contextOf(id))) as DkimKey[];
}

/** Database columns for a list of keys: public records in plain text, private keys sealed. */
export function dkimColumns(secrets: SecretBox, id: string, keys: readonly DkimKey[]): Values {
  const signing = keys.find(({ role, algorithm }) => role === 'current' && algorithm === 'rsa');
  return {
    dkim_selector: signing?.selector,
    dkim_records: keys.map(dkimRecordOf),
    dkim_keys: secrets.seal(JSON.stringify(keys), sealedColumns.dkimKeys.contextOf(id)),
  };
}

/** The keys that these records are of, in the roles that they have there. */
export function keysOfRecords(keys: readonly DkimKey[], records: readonly DkimRecord[]): DkimKey[] {
  return records.flatMap((record) => {
    const key = keys.find(({ selector }) => selector === record.selector);
    return key ? [{ ...key, role: record.role }] : [];
  });
}

export { newDkimKeys };
