import { useState } from 'preact/hooks';
import { Confirm } from '../../parts/dialog';
import { Table } from '../../parts/page';
import { Ago } from '../../parts/time';

export interface Key {
  id: string;
  kind: string;
  name: string;
  prefix: string;
  scopes: readonly string[] | null;
  project_ids: readonly string[] | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

interface KeyTableProps {
  keys: readonly Key[];
  mayChange: boolean;
  revoke(key: Key): Promise<unknown>;
  /** Makes a key with the same rights, and revokes this one; null for keys that programs have been allowed. */
  rotate: ((key: Key) => Promise<unknown>) | null;
}

export function KeyTable({ keys, ...rest }: KeyTableProps) {
  if (!keys.length) return <p class="faint">There is no key yet.</p>;
  return (
    <Table label="Keys" head={['Name', 'Begins with', 'May do', 'Last used', 'Ends', '']}>
      {keys.map((key) => (
        <tr key={key.id}>
          <th scope="row">{key.name}</th>
          <td>
            <code>{key.prefix}…</code>
          </td>
          <td>{rightsOf(key)}</td>
          <td>
            <Ago time={key.last_used_at} />
          </td>
          <td>{key.expires_at ? <Ago time={key.expires_at} /> : 'never'}</td>
          <td>{rest.mayChange && <Actions one={key} {...rest} />}</td>
        </tr>
      ))}
    </Table>
  );
}

function rightsOf({ scopes, project_ids }: Key): string {
  const what = scopes ? scopes.join(', ') : 'everything in the project';
  return project_ids ? `${what}; in ${project_ids.length} project${project_ids.length === 1 ? '' : 's'}` : what;
}

function Actions({ one, revoke, rotate }: Omit<KeyTableProps, 'keys' | 'mayChange'> & { one: Key }) {
  const [asks, setAsks] = useState<'revoke' | 'rotate' | null>(null);
  const close = (): void => setAsks(null);
  return (
    <>
      {rotate && one.kind !== 'oauth' && (
        <button type="button" class="quiet small" onClick={() => setAsks('rotate')}>
          Rotate<span class="off-screen"> {one.name}</span>
        </button>
      )}{' '}
      <button type="button" class="quiet small" onClick={() => setAsks('revoke')}>
        Revoke<span class="off-screen"> {one.name}</span>
      </button>
      {asks === 'revoke' && (
        <Confirm title={`Revoke ${one.name}?`} verb="Revoke" work={() => revoke(one)} onClose={close}>
          Programs that use it are refused at once.
        </Confirm>
      )}
      {asks === 'rotate' && rotate && (
        <Confirm title={`Rotate ${one.name}?`} verb="Rotate" work={() => rotate(one)} onClose={close}>
          A key with the same name and rights is made, and this one is revoked: programs that use it are refused until
          they have the new one.
        </Confirm>
      )}
    </>
  );
}
