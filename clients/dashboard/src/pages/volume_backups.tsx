// The backups of a volume: taken by request or at certain times, downloaded, and restored.
import { useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { useMoving } from '../api/use_moving';
import { useAction, useQuery } from '../api/use_query';
import { Confirm, Dialog } from '../parts/dialog';
import { Field, Form, Problem, Submit, useFields } from '../parts/form';
import { showNotice } from '../parts/notices';
import { Empty, Table, Waiting } from '../parts/page';
import { isUnsettled, StatusReason } from '../parts/status';
import { Ago, bytesText } from '../parts/time';
import { mayActAs } from '../session';

const BACKUPS = graphql(`
  query VolumeBackups($id: ID!) {
    getVolume(id: $id) {
      id
      name
      application_id
      backup_schedule
      backup_retention_days
    }
    listVolumeBackups(id: $id, limit: 50) {
      data {
        id
        type
        note
        consistency
        size_bytes
        status
        status_reason
        created_at
      }
    }
  }
`);
const CREATE = graphql(`
  mutation CreateVolumeBackup($id: ID!, $input: CreateVolumeBackupInput!) {
    createVolumeBackup(id: $id, input: $input) {
      id
    }
  }
`);
const SCHEDULE = graphql(`
  mutation ScheduleVolumeBackups($id: ID!, $input: UpdateVolumeInput!) {
    updateVolume(id: $id, input: $input) {
      id
    }
  }
`);
const DOWNLOAD = graphql(`
  query VolumeBackupDownload($id: ID!, $backup_id: ID!) {
    downloadVolumeBackup(id: $id, backup_id: $backup_id) {
      url
    }
  }
`);
const RESTORE = graphql(`
  mutation RestoreVolumeBackup($id: ID!, $backup_id: ID!, $input: RestoreVolumeBackupInput!) {
    restoreVolumeBackup(id: $id, backup_id: $backup_id, input: $input) {
      id
      name
    }
  }
`);

type Answer = ResultOf<typeof BACKUPS>;
type Volume = Answer['getVolume'];
type Backup = Answer['listVolumeBackups']['data'][number];

interface VolumeBackupsProps {
  projectId: string;
  volume: { id: string; name: string };
  /** Asks for the list of volumes again. */
  reload(): Promise<void>;
}

/** A button that shows them. */
export function VolumeBackups(props: VolumeBackupsProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setIsOpen(true)}>
        Backups<span class="off-screen"> of {props.volume.name}</span>
      </button>
      {isOpen && (
        <Dialog title={`Backups of ${props.volume.name}`} onClose={() => setIsOpen(false)}>
          <List {...props} onClose={() => setIsOpen(false)} />
        </Dialog>
      )}
    </>
  );
}

function List({ projectId, volume: { id }, reload, onClose }: VolumeBackupsProps & { onClose(): void }) {
  const { data, error, reload: reloadBackups } = useQuery(BACKUPS, { id });
  const list = data?.listVolumeBackups.data;
  useMoving(Boolean(list?.some(({ status }) => isUnsettled(status) || status === 'running')), reloadBackups);
  if (!data || !list) return <Waiting error={error} />;
  const mayChange = mayActAs('developer', projectId);
  const restored = async (): Promise<void> => {
    onClose();
    await reload();
  };
  return (
    <>
      {mayChange && <Take id={id} reload={reloadBackups} />}
      {list.length === 0 && (
        <Empty title="No backups yet" command={`svc volumes backup ${data.getVolume.name}`}>
          A backup is taken while the application goes on.
        </Empty>
      )}
      {list.length > 0 && (
        <Table label="Backups" head={['Taken', 'Status', 'Type', 'Size', 'Note', '']}>
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
              <td>{backup.type}</td>
              <td>{bytesText(backup.size_bytes)}</td>
              <td>{backup.note ?? '–'}</td>
              <td>
                {mayChange && backup.status === 'completed' && (
                  <Actions volume={data.getVolume} backup={backup} done={restored} />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {mayChange && (
        <>
          <h3>Schedule</h3>
          <Schedule key={data.getVolume.backup_schedule} volume={data.getVolume} reload={reloadBackups} />
        </>
      )}
    </>
  );
}

interface TakeProps {
  id: string;
  reload(): Promise<void>;
}

function Take({ id, reload }: TakeProps) {
  const fields = useFields({ note: '' });
  const action = useAction(async () => {
    const { note } = fields.values;
    await request(CREATE, { id, input: note ? { note } : {} });
    fields.set({ note: '' });
    await reload();
  });
  return (
    <Form action={action} class="inline form-line">
      <Field label="Take a backup now" {...fields.of('note', action)} placeholder="Note (optional)" maxLength={200} />
      <Submit action={action}>Take a backup</Submit>
      <Problem error={action.error} fields={['note']} />
    </Form>
  );
}

function Schedule({ volume, reload }: { volume: Volume; reload(): Promise<void> }) {
  const fields = useFields({
    backup_schedule: volume.backup_schedule ?? '',
    backup_retention_days: String(volume.backup_retention_days),
  });
  const action = useAction(async () => {
    const { backup_schedule, backup_retention_days } = fields.values;
    const input = {
      backup_schedule: backup_schedule.trim() || null,
      backup_retention_days: Number(backup_retention_days),
    };
    await request(SCHEDULE, { id: volume.id, input });
    await reload();
    showNotice({ text: input.backup_schedule ? 'The schedule is saved.' : 'No more backups are scheduled.' });
  });
  return (
    <Form action={action} class="inline form-line">
      <Field
        label="Times in UTC, as a cron expression"
        {...fields.of('backup_schedule', action)}
        placeholder="30 2 * * *"
      />
      <Field
        label="Kept for days"
        {...fields.of('backup_retention_days', action)}
        type="number"
        required
        min={1}
        max={365}
      />
      <Submit action={action}>Save the schedule</Submit>
      <Problem error={action.error} fields={['backup_schedule', 'backup_retention_days']} />
    </Form>
  );
}

interface ActionsProps {
  volume: Volume;
  backup: Backup;
  done(): Promise<void>;
}

function Actions({ volume: { id, name, application_id }, backup, done }: ActionsProps) {
  const [asks, setAsks] = useState<'new' | 'in_place' | null>(null);
  const backup_id = backup.id;
  const download = useAction(async () => {
    const { downloadVolumeBackup } = await request(DOWNLOAD, { id, backup_id });
    location.assign(downloadVolumeBackup.url);
  });
  const restore = async (input: { name: string } | { in_place: true }): Promise<void> => {
    const { restoreVolumeBackup } = await request(RESTORE, { id, backup_id, input });
    await done();
    showNotice({ text: `The volume ${restoreVolumeBackup.name} gets the files of the backup.` });
  };
  const copyName = `${name.slice(0, 28)}-${new Date().toISOString().slice(5, 16).replace(/\D/g, '')}`;
  return (
    <>
      <button type="button" class="quiet small" onClick={() => void download.run()}>
        Download
      </button>{' '}
      <button type="button" class="quiet small" onClick={() => setAsks('new')}>
        Restore as new
      </button>{' '}
      <button type="button" class="quiet small" onClick={() => setAsks('in_place')}>
        Restore in place
      </button>
      <Problem error={download.error} />
      {asks === 'new' && (
        <Confirm
          title="Restore into a new volume?"
          verb="Restore"
          work={() => restore({ name: copyName })}
          onClose={() => setAsks(null)}
        >
          The volume {copyName} is created with the files of the backup. {name} stays as it is.
        </Confirm>
      )}
      {asks === 'in_place' && (
        <Confirm
          title={`Replace the files of ${name}?`}
          verb="Replace the files"
          typed={name}
          work={() => restore({ in_place: true })}
          onClose={() => setAsks(null)}
        >
          What the volume contains now is lost.{application_id && ' Its application has to be stopped first.'}
        </Confirm>
      )}
    </>
  );
}
