// The first page: all projects of the person.
import { useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Dialog } from '../parts/dialog';
import { Field, Form, Problem, Submit } from '../parts/form';
import { Empty, Page, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';
import { Ago } from '../parts/time';
import { navigate } from '../router';
import { loadSession, PROJECT_FIELDS } from '../session';

const PROJECTS = graphql(
  `
    query Projects($cursor: String) {
      listProjects(limit: 100, sort: "name", cursor: $cursor) {
        data {
          ...ProjectFields
          updated_at
        }
        next_cursor
      }
    }
  `,
  [PROJECT_FIELDS],
);
const CREATE = graphql(`
  mutation CreateProject($input: CreateProjectInput!) {
    createProject(input: $input) {
      id
    }
  }
`);

export function Projects() {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(PROJECTS, { cursor });
  const [isCreating, setCreating] = useState(false);
  const add = (
    <button type="button" onClick={() => setCreating(true)}>
      New project
    </button>
  );
  const list = data?.listProjects;
  return (
    <Page title="Projects" actions={add} command="svc api listProjects">
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title="No projects yet" command="svc api createProject --field name=Shop" action={add}>
          A project holds applications, databases and everything else, and the people who work on them.
        </Empty>
      )}
      <ul class="cards">
        {list?.data.map((project) => (
          <li key={project.id}>
            <a class="card" href={`/projects/${project.id}`}>
              <strong>{project.name}</strong>
              <span>{project.description ?? 'No description'}</span>
              <small>
                {project.role} · {project.default_region} · changed <Ago time={project.updated_at} />
              </small>
            </a>
          </li>
        ))}
      </ul>
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {isCreating && <NewProject onClose={() => setCreating(false)} />}
    </Page>
  );
}

function NewProject({ onClose }: { onClose(): void }) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const action = useAction(async () => {
    const { createProject } = await request(CREATE, { input: { name, ...(description && { description }) } });
    await loadSession();
    navigate(`/projects/${createProject.id}`);
  });
  return (
    <Dialog title="New project" onClose={onClose}>
      <Form action={action}>
        <Problem error={action.error} fields={['name', 'description']} />
        <Field
          label="Name"
          name="name"
          required
          autoFocus
          value={name}
          error={action.error}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <Field
          label="Description"
          name="description"
          value={description}
          error={action.error}
          onInput={(event) => setDescription(event.currentTarget.value)}
        />
        <footer class="actions">
          <Submit action={action}>Create project</Submit>
        </footer>
      </Form>
    </Dialog>
  );
}
