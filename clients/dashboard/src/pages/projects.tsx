// The first page: all projects of the person, and whether what runs in them is well.
import { useEffect, useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type Query } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Dialog } from '../parts/dialog';
import { Field, Form, Problem, Submit } from '../parts/form';
import { Empty, Page, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';
import { Ago } from '../parts/time';
import { navigate } from '../router';
import { loadSession, PROJECT_FIELDS } from '../session';
import { DeletedProjects } from './deleted_projects';

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

interface AppState {
  name: string;
  status: string;
  latest_deployment: { status: string; created_at: string } | null;
}
type ProjectStates = Record<string, { data: AppState[]; next_cursor: string | null }>;

/** As many as one query may ask for (limits.graphqlRootFieldsMax and graphqlAliasesMax of the API). */
const STATES_MAX = 20;

/** What runs in some projects: one query for all of them. */
function statesQuery(ids: readonly string[]): Query<ProjectStates, Record<string, never>> {
  const lists = ids.map(
    (id, index) => `  p${index}: listApplications(project_id: "${id}", limit: 30, sort: "name") {
    data { name status latest_deployment { status created_at } }
    next_cursor
  }`,
  );
  return `query ProjectStates {\n${lists.join('\n')}\n}` as unknown as Query<ProjectStates, Record<string, never>>;
}

/** Of each project, by its id, as far as they are asked for. */
function useStates(ids: readonly string[]): ReadonlyMap<string, ProjectStates[string]> {
  const [states, setStates] = useState<ReadonlyMap<string, ProjectStates[string]>>(new Map());
  const key = ids.join();
  useEffect(() => {
    const stop = new AbortController();
    const read = async (): Promise<void> => {
      for (let at = 0; at < ids.length; at += STATES_MAX) {
        const some = ids.slice(at, at + STATES_MAX);
        const found = await request(statesQuery(some), {}, stop.signal);
        const rows = some.flatMap((id, index) => (found[`p${index}`] ? ([[id, found[`p${index}`]]] as const) : []));
        setStates((before) => new Map([...before, ...(rows as [string, ProjectStates[string]][])]));
      }
    };
    // The projects themselves are shown without it.
    read().catch(() => undefined);
    return () => stop.abort();
  }, [key]);
  return states;
}

export function Projects() {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(PROJECTS, { cursor });
  const [isCreating, setCreating] = useState(false);
  const add = (
    <button type="button" onClick={() => setCreating(true)}>
      New project
    </button>
  );
  const list = data?.listProjects;
  const states = useStates(list?.data.map(({ id }) => id) ?? []);
  return (
    <Page title="Projects" actions={add} command="svc projects ls">
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title="No projects yet" command="svc projects create Shop" action={add}>
          A project holds applications, databases and everything else, and the people who work on them.
        </Empty>
      )}
      <ul class="cards">
        {list?.data.map((project) => (
          <li key={project.id}>
            <a class="card" href={`/projects/${project.id}`}>
              <strong>{project.name}</strong>
              <span>{project.description ?? 'No description'}</span>
              <State state={states.get(project.id)} />
              <small>
                {project.role} · {project.default_region} · changed <Ago time={project.updated_at} />
              </small>
            </a>
          </li>
        ))}
      </ul>
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {list && <DeletedProjects restored={reload} />}
      {isCreating && <NewProject onClose={() => setCreating(false)} />}
    </Page>
  );
}

/** How many applications run, and those that do not as they should. */
function State({ state }: { state: ProjectStates[string] | undefined }) {
  // Its room is kept until it is known.
  if (!state) return <span class="card-state">…</span>;
  const { data, next_cursor: more } = state;
  const troubled = data.filter(
    ({ status, latest_deployment: last }) => status === 'crashed' || last?.status === 'failed',
  );
  const running = data.filter(({ status }) => status === 'running').length;
  const newest = data
    .flatMap(({ latest_deployment: last }) => (last ? [last.created_at] : []))
    .sort()
    .at(-1);
  if (!data.length) return <span class="card-state">No applications</span>;
  return (
    <span class="card-state">
      {running} of {data.length} running
      {newest && (
        <>
          {' '}
          · deployed <Ago time={newest} />
        </>
      )}
      {troubled.length > 0 && (
        <strong class="bad-text"> · needs attention: {troubled.map(({ name }) => name).join(', ')}</strong>
      )}
      {more && ' (of the first 30)'}
    </span>
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
