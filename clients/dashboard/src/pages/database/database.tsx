import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { Attention, troublesOfDatabase } from '../../parts/attention';
import { CatalogName } from '../../parts/catalog_name';
import { DangerZone } from '../../parts/danger_zone';
import { Confirm } from '../../parts/dialog';
import { DiskUsed } from '../../parts/disk';
import { Facts, Section } from '../../parts/page';
import { Protection } from '../../parts/protection';
import { ResourceLink } from '../../parts/resource_name';
import { Ago, secondsText } from '../../parts/time';
import { words } from '../../parts/words';
import { undoOfDelete } from '../../parts/undo';
import { navigate } from '../../router';
import { ApplicationsOfDatabase } from '../attachments/list';
import { Engine } from '../project';
import { DatabaseFrame, type DatabaseData, type ShownDatabase } from './frame';

const RESTART = graphql(`
  mutation RestartDatabase($id: ID!) {
    restartDatabase(id: $id) {
      id
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateDatabase($id: ID!, $input: UpdateDatabaseInput!) {
    updateDatabase(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteDatabase($id: ID!) {
    deleteDatabase(id: $id)
  }
`);

export function DatabaseOverview({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} command={`svc api getDatabase ${id}`}>
      {(shown) => (
        <>
          {shown.database.status_reason && <p class="notice bad">{shown.database.status_reason}</p>}
          <Wellness database={shown.database} />
          <Section title="Overview" actions={shown.mayChange && <Restart shown={shown} />}>
            <Facts facts={factsOf(shown)} />
          </Section>
          <ApplicationsOfDatabase id={id} projectId={shown.database.project_id} mayChange={shown.mayChange} />
          {shown.mayChange && <Danger shown={shown} />}
        </>
      )}
    </DatabaseFrame>
  );
}

interface CopyOfProps extends NonNullable<DatabaseData['restore_from']> {
  projectId: string;
}

function CopyOf({ projectId, database_id, point_in_time }: CopyOfProps) {
  return (
    <>
      <ResourceLink projectId={projectId} id={database_id} kind="a database" />
      {point_in_time && (
        <>
          {' '}
          of <Ago time={point_in_time} />
        </>
      )}
    </>
  );
}

/** A reason of the platform says more than that nothing is wrong, and so does a state that ends by itself. */
function Wellness({ database }: Pick<ShownDatabase, 'database'>) {
  const troubles = troublesOfDatabase(database);
  const isWell = database.status === 'available' && !database.status_reason;
  return troubles.length || isWell ? <Attention troubles={troubles} well="Nothing needs attention." /> : null;
}

function factsOf({ database }: ShownDatabase) {
  const { backup_schedule: backups, maintenance_window: window, restore_from: copied, recovery_seconds } = database;
  const hour = (value: number): string => `${String(value).padStart(2, '0')}:00 UTC`;
  return [
    ['Engine', <Engine {...database} />],
    ['Size', <CatalogName of="package" id={database.database_package} />],
    ['Storage', <DiskUsed name={database.name} usedBytes={database.storage_used_bytes} sizeGb={database.storage_gb} />],
    ['Region', <CatalogName of="region" id={database.region} />],
    ['Backups', backups.enabled ? `daily at ${hour(backups.hour_utc)}, kept ${backups.retention_days} days` : 'off'],
    ['Restored in', recovery_seconds === null ? 'not proven yet' : secondsText(recovery_seconds)],
    ['Maintenance', `${words(window.weekday)} at ${hour(window.hour_utc)}`],
    ['Deletion protection', database.deletion_protection ? 'on' : 'off'],
    ['Created', <Ago time={database.created_at} />],
    ...(copied ? ([['Copy of', <CopyOf key="copy" projectId={database.project_id} {...copied} />]] as const) : []),
  ] as const;
}

function Restart({ shown: { database, reload } }: { shown: ShownDatabase }) {
  const [asks, setAsks] = useState(false);
  if (database.status !== 'available') return null;
  const work = async (): Promise<void> => {
    await request(RESTART, { id: database.id });
    await reload();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Restart
      </button>
      {asks && (
        <Confirm title={`Restart ${database.name}?`} verb="Restart" work={work} onClose={() => setAsks(false)}>
          Open connections are closed, and new ones wait for a few seconds.
        </Confirm>
      )}
    </>
  );
}

function Danger({ shown: { database, reload } }: { shown: ShownDatabase }) {
  const { id, name, project_id, deletion_protection } = database;
  return (
    <DangerZone
      kind="database"
      name={name}
      projectId={project_id}
      consequence="Its data, users, endpoints and replicas go with it. Its backups are kept for their own time."
      isProtected={deletion_protection}
      remove={async () => {
        await request(DELETE, { id });
        navigate(`/projects/${project_id}`);
      }}
      findUndo={() => undoOfDelete(project_id, id, () => navigate(`/databases/${id}`))}
    >
      <Protection
        kind="database"
        isOn={deletion_protection}
        also="its backups"
        set={async (on) => {
          await request(UPDATE, { id, input: { deletion_protection: on } });
          await reload();
        }}
      />
    </DangerZone>
  );
}
