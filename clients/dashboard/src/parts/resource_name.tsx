// Names and links in place of ids. Ids of one page are asked for together.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { kindWords } from './words';

const NAMES = graphql(`
  query ResourceNames($id: ID!, $ids: [ID!]!) {
    getProject(id: $id) {
      names(ids: $ids) {
        id
        type
        name
        parent {
          id
          type
          name
        }
      }
    }
  }
`);

type Named = ResultOf<typeof NAMES>['getProject']['names'][number];

/** Id -> its resource; null where there is none (any more). */
const known = signal<Readonly<Record<string, Named | null>>>({});
/** Project -> ids that are asked for next. */
const wanted = new Map<string, Set<string>>();
const IDS_MAX = 100;

interface ResourceLinkProps {
  projectId: string | undefined;
  id: string;
  /** What the API has said already. */
  name?: string | null | undefined;
  /** Stands where the resource has no name, or is gone. */
  kind?: string | undefined;
  /** Its page, where the caller knows one. */
  href?: string | undefined;
}

export function ResourceLink({ projectId, id, name, kind, ...given }: ResourceLinkProps) {
  useEffect(() => want(projectId, id), [projectId, id]);
  const found = known.value[id];
  const text = textOf(found) ?? name ?? (kind && kindWords(kind)) ?? id;
  const href = (found && hrefOf(found, projectId)) ?? given.href;
  if (href) {
    return (
      <a href={href} title={id}>
        {text === id ? <code>{id}</code> : text}
      </a>
    );
  }
  return text === id ? <code>{id}</code> : <span title={id}>{text}</span>;
}

/** The name of what an id is of, without a link; the id until it is known. */
export function ResourceName({ projectId, id }: Pick<ResourceLinkProps, 'projectId' | 'id'>) {
  useEffect(() => want(projectId, id), [projectId, id]);
  return <>{textOf(known.value[id]) ?? id}</>;
}

function textOf(found: Named | null | undefined): string | undefined {
  if (!found) return undefined;
  const { name, parent } = found;
  if (name === null) return parent?.name ?? undefined;
  // An attachment is called after the prefix of its variables.
  if (found.type === 'database_attachment' && parent?.name) return parent.name;
  return found.type === 'deployment' && parent ? `${parent.name} ${name}` : name;
}

/** Pages below the one of what a resource belongs to. */
const BELOW: Record<string, string> = {
  deployment: '/applications/:parent/deployments/:id',
  run: '/applications/:parent/runs/:id',
  schedule: '/applications/:parent/schedules/:id',
  instance: '/applications/:parent/processes',
  process: '/applications/:parent/processes',
  domain: '/applications/:parent/domains',
  application: '/applications/:id',
  database: '/databases/:id',
  database_attachment: '/databases/:parent',
  database_backup: '/databases/:parent/backups',
  database_user: '/databases/:parent/users',
  bucket: '/buckets/:id',
  dns_zone: '/dns/:id',
  dns_record: '/dns/:parent',
  email_domain: '/email_domains/:id',
  observer: '/observers/:id',
  volume: '/projects/:project/resources/volumes/:id',
  volume_backup: '/projects/:project/volumes',
};

function hrefOf({ id, type, parent }: Named, projectId: string | undefined): string | undefined {
  const values: Record<string, string | undefined> = { ':id': id, ':parent': parent?.id, ':project': projectId };
  const parts = BELOW[type]?.split('/').map((part) => (part.startsWith(':') ? values[part] : part));
  return parts?.includes(undefined) ? undefined : parts?.join('/');
}

/** Takes over a name that a page has read: it may have changed since it was asked for. */
export function learnName(id: unknown, name: unknown): void {
  if (typeof id !== 'string' || typeof name !== 'string') return;
  const found = known.peek()[id];
  if (found && found.name !== name) known.value = { ...known.peek(), [id]: { ...found, name } };
}

function want(projectId: string | undefined, id: string): void {
  if (!projectId || id in known.peek()) return;
  const ids = wanted.get(projectId) ?? new Set();
  // Effects of one page run before it: all of them are one request.
  if (!ids.size) queueMicrotask(() => void load(projectId));
  wanted.set(projectId, ids.add(id));
}

/** A name that cannot be read now stays an id: the page has its own message. */
async function load(projectId: string): Promise<void> {
  const all = [...(wanted.get(projectId) ?? [])];
  wanted.delete(projectId);
  const ids = all.slice(0, IDS_MAX);
  for (const id of all.slice(IDS_MAX)) want(projectId, id);
  const answer = await request(NAMES, { id: projectId, ids }).catch(() => null);
  if (!answer) return;
  const found = new Map(answer.getProject.names.map((one) => [one.id, one]));
  known.value = { ...known.peek(), ...Object.fromEntries(ids.map((id) => [id, found.get(id) ?? null])) };
}
