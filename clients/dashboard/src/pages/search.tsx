// Finds applications, databases and projects by their names.
import { useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql } from '../api/graphql';
import { useAction } from '../api/use_query';
import { Problem } from '../parts/form';
import { Page } from '../parts/page';
import { address, setQuery } from '../router';
import { projects } from '../session';

const NAMES = graphql(`
  query Names($id: ID!) {
    listApplications(project_id: $id, limit: 100, sort: "name") {
      data {
        id
        name
      }
    }
    listDatabases(project_id: $id, limit: 100, sort: "name") {
      data {
        id
        name
      }
    }
  }
`);

interface Hit {
  href: string;
  name: string;
  kind: string;
}

/** So many projects are looked through: one request each. */
const PROJECTS_MAX = 20;

export function Search() {
  const [text, setText] = useState(address.peek().query.get('q') ?? '');
  const [hits, setHits] = useState<readonly Hit[] | null>(null);
  const load = useAction(async () => {
    const found = await Promise.all(projects.peek().slice(0, PROJECTS_MAX).map(hitsOf));
    setHits(found.flat());
  });
  if (!hits && !load.isRunning && !load.error) void load.run();
  const wanted = text.trim().toLowerCase();
  const shown = (hits ?? []).filter(({ name }) => wanted && name.toLowerCase().includes(wanted)).slice(0, 50);
  return (
    <Page title="Search">
      <form role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          <span class="off-screen">Name of an application, a database or a project</span>
          <input
            type="search"
            autoFocus
            value={text}
            placeholder="Name of an application, a database or a project"
            onInput={(event) => {
              setText(event.currentTarget.value);
              setQuery({ q: event.currentTarget.value });
            }}
          />
        </label>
      </form>
      <Problem error={load.error} />
      <ul class="hits" aria-live="polite">
        {shown.map(({ href, name, kind }) => (
          <li key={href}>
            <a href={href}>{name}</a> <small class="faint">{kind}</small>
          </li>
        ))}
      </ul>
      {wanted && hits && shown.length === 0 && <p>Nothing has this name.</p>}
    </Page>
  );
}

async function hitsOf({ id, name }: { id: string; name: string }): Promise<Hit[]> {
  const { listApplications, listDatabases } = await request(NAMES, { id });
  return [
    { href: `/projects/${id}`, name, kind: 'project' },
    ...listApplications.data.map((one) => ({
      href: `/applications/${one.id}`,
      name: one.name,
      kind: `application in ${name}`,
    })),
    ...listDatabases.data.map((one) => ({ href: `/databases/${one.id}`, name: one.name, kind: `database in ${name}` })),
  ];
}
