// What protects a project, and what deletes it. Its list of projects restores it.
import { request } from '../api/client';
import { graphql } from '../api/graphql';
import { DangerZone } from '../parts/danger_zone';
import { Protection } from '../parts/protection';
import { undoOfDeletedProject } from '../parts/undo';
import { navigate } from '../router';
import { loadSession } from '../session';

const PROTECTED_WITH_IT =
  'an application, a database, its backups, a volume, a bucket, a zone, a sending domain or a registry in it';
const PROTECT = graphql(`
  mutation ProtectProject($id: ID!, $input: UpdateProjectInput!) {
    updateProject(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteProject($id: ID!) {
    deleteProject(id: $id)
  }
`);

interface ProjectData {
  id: string;
  name: string;
  deletion_protection: boolean;
}

export function ProjectDanger({ project, reload }: { project: ProjectData; reload(): Promise<void> }) {
  const { id, name, deletion_protection } = project;
  return (
    <DangerZone
      kind="project"
      name={name}
      projectId={id}
      isProtected={deletion_protection}
      consequence="A project with anything in it is not deleted. Its keys stop working."
      remove={async () => {
        await request(DELETE, { id });
        navigate('/');
        await loadSession();
      }}
      findUndo={() => undoOfDeletedProject(project, () => loadSession().then(() => navigate(`/projects/${id}`)))}
    >
      <Protection
        kind="project"
        isOn={deletion_protection}
        also={PROTECTED_WITH_IT}
        set={async (on) => {
          await request(PROTECT, { id, input: { deletion_protection: on } });
          await reload();
        }}
      />
    </DangerZone>
  );
}
