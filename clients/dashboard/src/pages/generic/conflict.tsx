// Somebody else has changed the same thing since it was read: both versions, and a choice.
import type { Row } from '../../api/resources/query';
import type { Value } from '../../api/resources/table';
import { ApiError } from '../../api/client';
import { Table } from '../../parts/page';
import { differing, draftsOf, isSecret, type Drafts } from './draft';
import type { Around } from './links';
import { readDocument } from './use_resource';
import { words } from './words';

export interface Versions {
  theirs: Row;
  etag: string | null;
  /** Of each field that differs. */
  fields: { field: Value; theirs: unknown; mine: unknown }[];
}

/**
 * With `compare`, reads again, and refuses as the API does where a field of the form has changed: for what has no ETag.
 * Else both versions, if the error says that there are two. @throws ApiError precondition_failed
 */
export async function conflictOf(
  around: Around,
  fields: readonly Value[],
  before: Row,
  error: unknown,
  drafts: Drafts = {},
): Promise<Versions | null> {
  if (error !== 'compare' && !(error instanceof ApiError && error.code === 'precondition_failed')) return null;
  const { answer, etag } = await readDocument(around.table, around.place);
  if (error === 'compare') {
    if (differing(fields, before, answer).length)
      throw new ApiError('precondition_failed', 412, 'Somebody else has changed this since you opened it.');
    return null;
  }
  const theirs = draftsOf(around.table, fields, answer);
  const differences = fields.filter(({ name }) => JSON.stringify(theirs[name]) !== JSON.stringify(drafts[name]));
  return {
    theirs: answer,
    etag,
    fields: differences
      .filter((field) => !isSecret(field))
      .map((field) => ({ field, theirs: theirs[field.name], mine: drafts[field.name] })),
  };
}

interface ConflictProps {
  around: Around;
  versions: Versions;
  settle(which: 'mine' | 'theirs'): void;
}

export function Conflict({ versions, settle }: ConflictProps) {
  return (
    <div class="notice bad" role="alert">
      <p>Somebody else has changed this since you opened it. Nothing of yours is saved yet.</p>
      {versions.fields.length > 0 && (
        <Table label="Both versions" head={['Field', 'Theirs', 'Yours']}>
          {versions.fields.map(({ field, theirs, mine }) => (
            <tr key={field.name}>
              <th scope="row">{words(field.name)}</th>
              <td>{textOf(theirs)}</td>
              <td>{textOf(mine)}</td>
            </tr>
          ))}
        </Table>
      )}
      <p class="actions">
        <button type="button" class="quiet" onClick={() => settle('theirs')}>
          Take theirs
        </button>
        <button type="button" class="quiet" onClick={() => settle('mine')}>
          Keep mine
        </button>
      </p>
    </div>
  );
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
