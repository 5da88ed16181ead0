// Backups of databases that were deleted, from which new ones can be created.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Section } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { RowsTable } from '../../parts/table';
import { Ago, bytesText } from '../../parts/time';
import { restoreIntoNew } from './restore_into_new';

const BACKUPS = graphql(`
  query BackupsOfDeletedDatabases($id: ID!, $cursor: String) {
    listProjectDatabaseBackups(id: $id, deleted: true, limit: 20, cursor: $cursor) {
      data {
        id
        database {
          id
          name
          engine
        }
        size_bytes
        status
        created_at
        expires_at
      }
      next_cursor
    }
  }
`);

type Backup = ResultOf<typeof BACKUPS>['listProjectDatabaseBackups']['data'][number];

/** Nothing where there are none. */
export function DeletedBackups({ projectId }: { projectId: string }) {
  const [cursor, go] = useState<string | null>(null);
  const list = useQuery(BACKUPS, { id: projectId, cursor }).data?.listProjectDatabaseBackups;
  const whole = list?.data.filter(({ status }) => status === 'completed') ?? [];
  if (!whole.length && cursor === null) return null;
  return (
    <Section title="Backups of deleted databases">
      <RowsTable<Backup>
        label="Backups of deleted databases"
        rows={whole}
        keyOf={({ id }) => id}
        columns={{
          Database: ({ database }) => database.name,
          Taken: ({ created_at }) => <Ago time={created_at} />,
          Size: ({ size_bytes }) => bytesText(size_bytes),
          'Kept until': ({ expires_at }) =>
            expires_at ? <Ago time={expires_at} /> : 'while the database is in the bin',
          '': (backup) => <Restore projectId={projectId} backup={backup} />,
        }}
      />
      <Paging cursor={cursor} next={list?.next_cursor ?? null} go={go} />
    </Section>
  );
}

function Restore({ projectId, backup: { id, database } }: { projectId: string; backup: Backup }) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Restore<span class="off-screen"> a backup of {database.name}</span>
      </button>
      {asks && (
        <Confirm
          title="Restore into a new database?"
          verb="Restore"
          work={() => restoreIntoNew(projectId, database, id)}
          onClose={() => setAsks(false)}
        >
          A new database is created with the data of the backup, and with a user and a password of its own.
        </Confirm>
      )}
    </>
  );
}
