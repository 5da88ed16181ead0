// The volumes of a project: their size, how full they are, and the application that has them.
import { useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Confirm, Dialog } from '../parts/dialog';
import { DiskUsed } from '../parts/disk';
import { Field, Form, Problem, Select, Submit, useFields } from '../parts/form';
import { showNotice } from '../parts/notices';
import { isUnsettled, StatusReason } from '../parts/status';
import { mayActAs } from '../session';
import { NewSection, ProjectList } from './project_list';
import { VolumeBackups } from './volume_backups';
import { projectFlag } from '../parts/command';

const VOLUMES = graphql(`
  query Volumes($id: ID!, $cursor: String) {
    listVolumes(project_id: $id, limit: 50, cursor: $cursor, sort: "name") {
      data {
        id
        name
        size_gb
        region
        mount_path
        status
        status_reason
        used_bytes
        over_quota
        application {
          id
          name
        }
      }
      next_cursor
    }
  }
`);
const CHOICES = graphql(`
  query VolumeChoices($id: ID!) {
    listApplications(project_id: $id, limit: 100, sort: "name") {
      data {
        id
        name
        region
      }
    }
  }
`);
const CREATE = graphql(`
  mutation CreateVolume($project_id: ID!, $input: CreateVolumeInput!) {
    createVolume(project_id: $project_id, input: $input) {
      id
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateVolume($id: ID!, $input: UpdateVolumeInput!) {
    updateVolume(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteListedVolume($id: ID!) {
    deleteVolume(id: $id)
  }
`);

type Volume = ResultOf<typeof VOLUMES>['listVolumes']['data'][number];

export function Volumes({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="Volumes"
      query={VOLUMES}
      listOf={({ listVolumes }) => listVolumes}
      isMoving={({ status }) => isUnsettled(status)}
      command={`svc volumes ls${projectFlag(id)}`}
      empty={{
        title: 'No volumes yet',
        text: 'A volume is a directory of an application that keeps its files when the application is deployed again.',
        command: `svc volumes create uploads --size 10${projectFlag(id)}`,
      }}
      hrefOf={(volume) => `/projects/${id}/resources/volumes/${volume.id}`}
      columns={(reload) => ({
        Status: ({ status, status_reason }) => <StatusReason value={status} reason={status_reason} />,
        Used: ({ name, used_bytes, size_gb, over_quota }) => (
          <DiskUsed name={name} usedBytes={used_bytes} sizeGb={size_gb} isOver={over_quota} />
        ),
        Application: (volume) => <Attached projectId={id} volume={volume} reload={reload} />,
        Backups: (volume) => <VolumeBackups projectId={id} volume={volume} reload={reload} />,
      })}
      deletion={{
        kind: 'volume',
        consequence: 'Its files and its backups go with it.',
        mayDelete: ({ application }) => !application,
        remove: (one) => request(DELETE, { id: one }),
      }}
    >
      {(reload) => <Create projectId={id} reload={reload} />}
    </ProjectList>
  );
}

interface AttachedProps {
  projectId: string;
  volume: Volume;
  reload(): Promise<void>;
}

function Attached({ projectId, volume, reload }: AttachedProps) {
  const [asks, setAsks] = useState<'attach' | 'detach' | null>(null);
  const { application, mount_path } = volume;
  const close = (): void => setAsks(null);
  return (
    <>
      {application && (
        <>
          <a href={`/applications/${application.id}`}>{application.name}</a> at <code>{mount_path}</code>{' '}
        </>
      )}
      {mayActAs('developer', projectId) && (
        <button type="button" class="quiet small" onClick={() => setAsks(application ? 'detach' : 'attach')}>
          {application ? 'Detach' : 'Attach'}
          <span class="off-screen"> {volume.name}</span>
        </button>
      )}
      {asks === 'attach' && <Attach projectId={projectId} volume={volume} reload={reload} onClose={close} />}
      {asks === 'detach' && application && <Detach volume={volume} reload={reload} onClose={close} />}
    </>
  );
}

interface QuestionProps {
  volume: Volume;
  reload(): Promise<void>;
  onClose(): void;
}

function Detach({ volume: { id, name, application, mount_path }, reload, onClose }: QuestionProps) {
  const set = async (application_id: string | null): Promise<void> => {
    await request(UPDATE, { id, input: application_id ? { application_id, mount_path } : { application_id } });
    await reload();
  };
  const detach = async (): Promise<void> => {
    await set(null);
    showNotice({
      text: `The volume ${name} is detached from ${application?.name}.`,
      undo: () => set(application?.id ?? null),
    });
  };
  return (
    <Confirm title={`Detach ${name}?`} verb="Detach" work={detach} onClose={onClose}>
      {application?.name} no longer has the files at {mount_path} after its next deployment or restart. They stay in the
      volume.
    </Confirm>
  );
}

function Attach({ projectId, volume: { id, name, region }, reload, onClose }: QuestionProps & { projectId: string }) {
  const { data, error } = useQuery(CHOICES, { id: projectId });
  // Data is where its application is.
  const choices = (data?.listApplications.data ?? []).filter((application) => application.region === region);
  const fields = useFields({ application_id: '', mount_path: '/data' });
  const application_id = fields.values.application_id || choices[0]?.id || '';
  const action = useAction(async () => {
    await request(UPDATE, { id, input: { application_id, mount_path: fields.values.mount_path } });
    await reload();
    showNotice({
      text: `The volume ${name} is attached. The application has it after its next deployment or restart.`,
    });
  });
  return (
    <Dialog title={`Attach ${name}`} onClose={onClose}>
      {data && !choices.length && <p>The project has no application in the region {region}.</p>}
      <Problem error={error} />
      <Form action={action} done={(isSaved) => isSaved && onClose()}>
        <Select
          label="Application"
          {...fields.of('application_id', action)}
          value={application_id}
          options={choices.map((one) => ({ value: one.id, label: one.name }))}
          onChange={(value) => fields.set({ application_id: value })}
        />
        <Field
          label="Directory"
          {...fields.of('mount_path', action)}
          required
          hint="Where the program finds the files."
        />
        <Problem error={action.error} fields={['application_id', 'mount_path']} />
        <footer class="actions">
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
          <Submit action={action}>Attach</Submit>
        </footer>
      </Form>
    </Dialog>
  );
}

function Create({ projectId, reload }: { projectId: string; reload(): Promise<void> }) {
  const fields = useFields({ name: '', size_gb: '10' });
  const action = useAction(async () => {
    const { name, size_gb } = fields.values;
    await request(CREATE, { project_id: projectId, input: { name, size_gb: Number(size_gb) } });
    fields.set({ name: '' });
    await reload();
    showNotice({ text: `The volume ${name} is being created.` });
  });
  return (
    <NewSection title="New volume" verb="Create volume" action={action} fields={['name', 'size_gb']}>
      <Field label="Name" {...fields.of('name', action)} required placeholder="uploads" />
      <Field label="Size in GB" {...fields.of('size_gb', action)} type="number" required min={1} />
    </NewSection>
  );
}
