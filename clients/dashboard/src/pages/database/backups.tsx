import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Field, Form, Problem, Submit } from '../../parts/form';
import { Empty, Section, Table, Waiting } from '../../parts/page';
import { isUnsettled, StatusReason } from '../../parts/status';
import { Ago, agoText, bytesText, secondsText } from '../../parts/time';
import { commandName, DatabaseFrame, type ShownDatabase } from './frame';
import { restoreIntoNew } from './restore_into_new';

const BACKUPS = graphql(`
  query Backups($id: ID!) {
    listDatabaseBackups(id: $id, limit: 50) {
      data {
        id
        type
        note
        size_bytes
        status
        status_reason
        created_at
        expires_at
        proof_status
        proven_at
        proof_seconds
        proof_failure
      }
    }
  }
`);
const CREATE = graphql(`
  mutation CreateBackup($id: ID!, $input: CreateDatabaseBackupInput!) {
    createDatabaseBackup(id: $id, input: $input) {
      id
    }
  }
`);
const PROVE = graphql(`
  mutation ProveBackup($id: ID!, $backup_id: ID!) {
    proveDatabaseBackup(id: $id, backup_id: $backup_id) {
      id
    }
  }
`);
const DOWNLOAD = graphql(`
  query BackupDownload($id: ID!, $backup_id: ID!) {
    getDatabaseBackupDownload(id: $id, backup_id: $backup_id) {
      url
    }
  }
`);

type Backup = ResultOf<typeof BACKUPS>['listDatabaseBackups']['data'][number];

export function Backups({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} section="Backups" command={(database) => `svc db backups ${database}`}>
      {(shown) => <List shown={shown} />}
    </DatabaseFrame>
  );
}

function List({ shown }: { shown: ShownDatabase }) {
  const { id } = shown.database;
  const { data, error, reload } = useQuery(BACKUPS, { id });
  const list = data?.listDatabaseBackups.data;
  useMoving(Boolean(list?.some(isMoving)), reload);
  return (
    <>
      {shown.mayChange && shown.database.status === 'available' && <Take id={id} reload={reload} />}
      <Section title="Backups">
        {!list && <Waiting error={error} />}
        {list?.length === 0 && (
          <Empty title="No backups yet" command={`svc db backup ${commandName(shown.database)}`}>
            The first one is taken at the hour of the schedule. You can take one now.
          </Empty>
        )}
        {list && list.length > 0 && (
          <Table label="Backups" head={['Taken', 'Status', 'Proof', 'Type', 'Size', 'Note', '']}>
            {list.map((backup) => (
              <tr key={backup.id}>
                <th scope="row">
                  <Ago time={backup.created_at} />
                </th>
                <td>
                  <StatusReason
                    value={backup.status === 'running' ? 'updating' : backup.status}
                    reason={backup.status_reason}
                  />
                </td>
                <td>{backup.status === 'completed' && <Proof backup={backup} />}</td>
                <td>{backup.type}</td>
                <td>{bytesText(backup.size_bytes)}</td>
                <td>{backup.note ?? '–'}</td>
                <td>
                  {shown.mayChange && backup.status === 'completed' && (
                    <Actions shown={shown} backup={backup} reload={reload} />
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
    </>
  );
}

/** Of a proof that has no reason to wait, the end is near. */
function isMoving({ status, proof_status, proof_failure }: Backup): boolean {
  const isProven = proof_status === 'running' || (proof_status === 'waiting' && proof_failure === null);
  return isUnsettled(status) || status === 'running' || isProven;
}

function Proof({ backup: { proof_status, proven_at, proof_seconds, proof_failure } }: { backup: Backup }) {
  return (
    <StatusReason value={proof_status === 'running' ? 'under_way' : proof_status} reason={proof_failure}>
      {proof_status === 'proven' &&
        proven_at &&
        `restored in ${secondsText(proof_seconds ?? 0)}, ${agoText(proven_at)}`}
    </StatusReason>
  );
}

function Take({ id, reload }: { id: string; reload(): Promise<void> }) {
  const [note, setNote] = useState('');
  const action = useAction(async () => {
    await request(CREATE, { id, input: note ? { note } : {} });
    setNote('');
    await reload();
  });
  return (
    <Form action={action} class="inline form-line">
      <Field
        label="Take a backup now"
        name="note"
        placeholder="Note (optional)"
        maxLength={200}
        value={note}
        error={action.error}
        onInput={(event) => setNote(event.currentTarget.value)}
      />
      <Submit action={action}>Take a backup</Submit>
      <Problem error={action.error} fields={['note']} />
    </Form>
  );
}

function Actions({
  shown: { database },
  backup,
  reload,
}: {
  shown: ShownDatabase;
  backup: Backup;
  reload(): Promise<void>;
}) {
  const [asks, setAsks] = useState(false);
  const download = useAction(async () => {
    const { getDatabaseBackupDownload } = await request(DOWNLOAD, { id: database.id, backup_id: backup.id });
    location.assign(getDatabaseBackupDownload.url);
  });
  const prove = useAction(async () => {
    await request(PROVE, { id: database.id, backup_id: backup.id });
    await reload();
  });
  const restore = (): Promise<void> => restoreIntoNew(database.project_id, database, backup.id);
  return (
    <>
      <button type="button" class="quiet small" onClick={() => void download.run()}>
        Download
      </button>{' '}
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Restore
      </button>{' '}
      <button type="button" class="quiet small" onClick={() => void prove.run()}>
        Prove
      </button>
      <Problem error={download.error ?? prove.error} />
      {asks && (
        <Confirm title="Restore into a new database?" verb="Restore" work={restore} onClose={() => setAsks(false)}>
          A copy is created beside this database, with the data of the backup. This database stays as it is.
        </Confirm>
      )}
    </>
  );
}
