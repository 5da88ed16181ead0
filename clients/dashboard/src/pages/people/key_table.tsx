import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { Confirm } from '../../parts/dialog';
import { Table } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { Rotation } from './rotation';
import { reversalText } from '../../parts/reversal';

export const KEY_FIELDS = graphql(`
  fragment KeyFields on ApiKey {
    id
    kind
    name
    prefix
    scopes
    project_ids
    may_destroy
    paused_at
    created_at
    expires_at
    last_used_at
  }
`);
export type Key = ResultOf<typeof KEY_FIELDS>;

interface KeyTableProps {
  keys: readonly Key[];
  mayChange: boolean;
  revoke(key: Key): Promise<unknown>;
  /** Lets a paused key go on; null where the person may not. */
  resume: ((key: Key) => Promise<unknown>) | null;
  /** Makes a key with the same name and rights, and answers its token; null where the person may not. */
  renew: ((key: Key) => Promise<string>) | null;
  /** The dialog was left while both keys work: the token is shown for as long as it is needed. */
  keep(key: Key, token: string): void;
}

export function KeyTable({ keys, ...rest }: KeyTableProps) {
  if (!keys.length) return <p class="faint">No keys yet.</p>;
  return (
    <Table label="Keys" head={['Name', 'Prefix', 'Scopes', 'Last used', 'Expires', '']}>
      {keys.map((key) => (
        <tr key={key.id}>
          <th scope="row">
            <span>{key.name}</span> {key.paused_at && <Status value="paused" />}
          </th>
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

function rightsOf({ scopes, project_ids, may_destroy }: Key): string {
  const all = scopes ? scopes.join(', ') : 'everything in the project';
  const what = may_destroy ? all : `${all}; may not delete`;
  return project_ids ? `${what}; in ${project_ids.length} project${project_ids.length === 1 ? '' : 's'}` : what;
}

function Actions({ one, revoke, resume, renew, keep }: Omit<KeyTableProps, 'keys' | 'mayChange'> & { one: Key }) {
  const [asks, setAsks] = useState<'revoke' | 'rotate' | 'resume' | null>(null);
  const close = (): void => setAsks(null);
  return (
    <>
      {resume && one.paused_at && (
        <button type="button" class="small" onClick={() => setAsks('resume')}>
          Let it go on<span class="off-screen"> {one.name}</span>
        </button>
      )}{' '}
      {renew && one.kind !== 'oauth' && (
        <button type="button" class="quiet small" onClick={() => setAsks('rotate')}>
          Rotate<span class="off-screen"> {one.name}</span>
        </button>
      )}{' '}
      <button type="button" class="quiet small" onClick={() => setAsks('revoke')}>
        Revoke<span class="off-screen"> {one.name}</span>
      </button>
      {asks === 'revoke' && (
        <Confirm
          title={`Revoke ${one.name}?`}
          verb="Revoke"
          work={() => revoke(one)}
          done={`The key ${one.name} was revoked.`}
          onClose={close}
        >
          Programs that use it are refused at once. {reversalText(null)}
        </Confirm>
      )}
      {asks === 'resume' && resume && (
        <Confirm
          title={`Let ${one.name} go on?`}
          verb="Let it go on"
          work={() => resume(one)}
          done={`The key ${one.name} works again.`}
          onClose={close}
        >
          It made many calls that delete or overwrite within a minute and was paused. If that was not you, revoke it. It
          is not paused again within an hour.
        </Confirm>
      )}
      {asks === 'rotate' && renew && (
        <Rotation
          one={one}
          renew={() => renew(one)}
          revoke={() => revoke(one)}
          keep={(token) => keep(one, token)}
          onClose={close}
        />
      )}
    </>
  );
}
