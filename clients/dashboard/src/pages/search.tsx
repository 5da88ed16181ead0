// Finds applications, databases and projects by a part of their names.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { request, type ApiError } from '../api/client';
import { graphql } from '../api/graphql';
import { asApiError } from '../api/use_query';
import { useAutoFocus } from '../parts/focus';
import { Empty, Page, Waiting } from '../parts/page';
import { address, setQuery } from '../router';
import { projects, type Project } from '../session';

const APPLICATIONS = graphql(`
  query ApplicationNames($id: ID!, $cursor: String) {
    listApplications(project_id: $id, limit: 100, cursor: $cursor, sort: "name") {
      data {
        id
        name
      }
      next_cursor
    }
  }
`);
const DATABASES = graphql(`
  query DatabaseNames($id: ID!, $cursor: String) {
    listDatabases(project_id: $id, limit: 100, cursor: $cursor, sort: "name") {
      data {
        id
        name
      }
      next_cursor
    }
  }
`);

interface Hit {
  href: string;
  name: string;
  kind: string;
}

const SHOWN_MAX = 50;

export function Search() {
  const [text, setText] = useState(address.peek().query.get('q') ?? '');
  const field = useAutoFocus();
  const { hits, isComplete, error } = useNames();
  const wanted = text.trim().toLowerCase();
  const found = useMemo(() => matching(hits, wanted), [hits, wanted]);
  return (
    <Page title="Search" command="svc api listApplications --field name --project PROJECT">
      <form role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          <span class="off-screen">Name of an application, a database or a project</span>
          <input
            type="search"
            ref={field}
            value={text}
            placeholder="Name of an application, a database or a project"
            onInput={(event) => {
              setText(event.currentTarget.value);
              setQuery({ q: event.currentTarget.value });
            }}
          />
        </label>
      </form>
      {error && <Waiting error={error} />}
      <ul class="hits" aria-live="polite">
        {found.slice(0, SHOWN_MAX).map(({ href, name, kind }) => (
          <li key={href}>
            <a href={href}>{name}</a> <small class="faint">{kind}</small>
          </li>
        ))}
      </ul>
      {found.length > SHOWN_MAX && (
        <p class="faint">
          {SHOWN_MAX} of {found.length.toLocaleString('en')} are shown. Type more of the name to see the others.
        </p>
      )}
      {wanted && !found.length && isComplete && (
        <Empty title="No matches">Type another part of the name, or look through all projects.</Empty>
      )}
      <p class="faint" role="status">
        {isComplete || error ? '' : `${hits.length.toLocaleString('en')} names read so far.`}
      </p>
    </Page>
  );
}

/** Names that have the text in them: first those that begin with it. */
function matching(hits: readonly Hit[], wanted: string): Hit[] {
  if (!wanted) return [];
  const found = hits.filter(({ name }) => name.toLowerCase().includes(wanted));
  const isFirst = ({ name }: Hit): boolean => name.toLowerCase().startsWith(wanted);
  return [...found.filter(isFirst), ...found.filter((hit) => !isFirst(hit))];
}

interface Names {
  hits: readonly Hit[];
  isComplete: boolean;
  error: ApiError | null;
}

/** All names of all projects, page by page. Filters of the API are exact: it cannot look for a part of a name. */
function useNames(): Names {
  const [names, setNames] = useState<Names>({ hits: [], isComplete: false, error: null });
  useEffect(() => {
    const stop = new AbortController();
    const add = (more: Hit[]): void => setNames((before) => ({ ...before, hits: [...before.hits, ...more] }));
    Promise.all(projects.peek().map((project) => readNames(project, add, stop.signal))).then(
      () => setNames((before) => ({ ...before, isComplete: true })),
      (problem: unknown) => stop.signal.aborted || setNames((before) => ({ ...before, error: asApiError(problem) })),
    );
    return () => stop.abort();
  }, []);
  return names;
}

async function readNames({ id, name }: Project, add: (hits: Hit[]) => void, signal: AbortSignal): Promise<void> {
  add([{ href: `/projects/${id}`, name, kind: 'project' }]);
  await readPages(async (cursor) => {
    const { listApplications: page } = await request(APPLICATIONS, { id, cursor }, signal);
    add(page.data.map((one) => ({ href: `/applications/${one.id}`, name: one.name, kind: `application in ${name}` })));
    return page.next_cursor;
  });
  await readPages(async (cursor) => {
    const { listDatabases: page } = await request(DATABASES, { id, cursor }, signal);
    add(page.data.map((one) => ({ href: `/databases/${one.id}`, name: one.name, kind: `database in ${name}` })));
    return page.next_cursor;
  });
}

/** @param read reads a page, and answers where the next one begins; null behind the last one */
async function readPages(read: (cursor: string | null) => Promise<string | null>): Promise<void> {
  let cursor: string | null = null;
  do cursor = await read(cursor);
  while (cursor);
}
