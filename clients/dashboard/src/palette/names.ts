// Names of everything that the projects of the person have, read page by page while the palette is open.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { request, type ApiError } from '../api/client';
import type { Query } from '../api/graphql';
import { asApiError } from '../api/use_query';
import type { IconName } from '../parts/icon';
import { mayActAs, projects, type Project } from '../session';

interface Kind {
  list: string;
  word: string;
  icon: IconName;
  /** What decides what can be done with it. */
  fields?: string;
  href(id: string, projectId: string): string;
}

const below = (path: string) => (id: string, projectId: string) => `/projects/${projectId}/resources/${path}/${id}`;
const KINDS: readonly Kind[] = [
  {
    ...{ list: 'listApplications', word: 'application', icon: 'application', fields: 'status source { type }' },
    href: (id) => `/applications/${id}`,
  },
  { list: 'listDatabases', word: 'database', icon: 'database', href: (id) => `/databases/${id}` },
  { list: 'listBuckets', word: 'bucket', icon: 'bucket', href: (id) => `/buckets/${id}` },
  { list: 'listDnsZones', word: 'DNS zone', icon: 'dns', href: (id) => `/dns/${id}` },
  { list: 'listEmailDomains', word: 'email domain', icon: 'email', href: (id) => `/email_domains/${id}` },
  { list: 'listObservers', word: 'observer', icon: 'observer', href: (id) => `/observers/${id}` },
  { list: 'listVolumes', word: 'volume', icon: 'volume', href: below('volumes') },
  { list: 'listCdnZones', word: 'CDN zone', icon: 'cdn', href: below('cdn_zones') },
  { list: 'listRegistries', word: 'registry', icon: 'registry', href: below('registries') },
  { list: 'listGitIntegrations', word: 'Git integration', icon: 'git', href: below('git_integrations') },
];

export interface Named {
  kind: Kind;
  id: string;
  name: string;
  project: Project;
  /** Of an application. */
  status?: string;
  source?: { type: string } | null;
}

/** What belongs to an application, and is found by its name. */
export interface Part {
  icon: IconName;
  word: string;
  name: string;
  application: { id: string; name: string };
  href: string;
}

export interface Names {
  named: readonly Named[];
  parts: readonly Part[];
  /** Those of the first project have been read. */
  isReady: boolean;
  /** All that is wanted has been read. */
  isComplete: boolean;
  error: ApiError | null;
}

const NOTHING: Names = { named: [], parts: [], isReady: false, isComplete: false, error: null };

/**
 * The names of the projects, first those of one. Filters of the API are exact: it cannot look for a part of a name.
 * @param wantsAll false reads only those of the first project, and no variables; what was read stays when it turns true
 */
export function useNames(first: string, wantsAll: boolean): Names {
  const [names, setNames] = useState<Names>(NOTHING);
  const read = (work: (add: Add, signal: AbortSignal) => Promise<void>, done: Partial<Names>): (() => void) => {
    const stop = new AbortController();
    const add = ({ named = [], parts = [] }: Partial<Names>): void =>
      setNames((before) => ({ ...before, named: [...before.named, ...named], parts: [...before.parts, ...parts] }));
    work(add, stop.signal).then(
      () => stop.signal.aborted || setNames((before) => ({ ...before, ...done })),
      (problem: unknown) => stop.signal.aborted || setNames((before) => ({ ...before, error: asApiError(problem) })),
    );
    return () => stop.abort();
  };
  useEffect(() => {
    setNames(NOTHING);
    return read((add, signal) => readOwn(first, add, signal), { isReady: true });
  }, [first]);
  const { isReady } = names;
  useEffect(() => {
    if (!isReady || !wantsAll) return undefined;
    return read((add, signal) => readOthers(first, add, signal), { isComplete: true });
  }, [first, isReady, wantsAll]);
  return useMemo(() => (wantsAll ? names : { ...names, isComplete: isReady }), [names, wantsAll]);
}

type Add = (more: Partial<Names>) => void;

const ownOf = (first: string): readonly Project[] => projects.peek().filter(({ id }) => id === first);

async function readOwn(first: string, add: Add, signal: AbortSignal): Promise<void> {
  await Promise.all(ownOf(first).map((project) => readNames(project, add, signal)));
}

async function readOthers(first: string, add: Add, signal: AbortSignal): Promise<void> {
  await Promise.all(ownOf(first).map((project) => readParts(project, add, signal)));
  // One after the other: an account with a hundred projects is no reason for a hundred requests at once.
  for (const project of projects.peek()) if (project.id !== first) await readNames(project, add, signal);
}

interface NamesPage {
  data: Pick<Named, 'id' | 'name' | 'status' | 'source'>[];
  next_cursor: string | null;
}

async function readNames(project: Project, add: Add, signal: AbortSignal): Promise<void> {
  let cursors: Record<string, string | null> = Object.fromEntries(KINDS.map(({ list }) => [list, null]));
  while (Object.keys(cursors).length) {
    const kinds = KINDS.filter(({ list }) => list in cursors);
    const found = await request(namesQuery(kinds), { id: project.id, ...cursors }, signal);
    add({ named: kinds.flatMap((kind) => (found[kind.list]?.data ?? []).map((row) => ({ ...row, kind, project }))) });
    cursors = Object.fromEntries(Object.entries(found).flatMap(([list, page]) => nextOf(list, page)));
  }
}

const nextOf = (list: string, { next_cursor }: NamesPage): [string, string][] =>
  next_cursor ? [[list, next_cursor]] : [];

function namesQuery(kinds: readonly Kind[]): Query<Record<string, NamesPage>, Record<string, string | null>> {
  const cursors = kinds.map(({ list }) => `, $${list}: String`).join('');
  const lists = kinds.map(
    ({ list, fields = '' }) =>
      `${list}(project_id: $id, limit: 100, cursor: $${list}) { data { id name ${fields} } next_cursor }`,
  );
  const text = `query PaletteNames($id: ID!${cursors}) { ${lists.join(' ')} }`;
  return text as unknown as Query<Record<string, NamesPage>, Record<string, string | null>>;
}

interface PartsPage {
  listApplications: {
    data: { id: string; name: string; domains: { hostname: string }[]; environment_variables?: { key: string }[] }[];
    next_cursor: string | null;
  };
}

/** Their variables and domains cost more than names: fewer applications at once. */
const partsQuery = (fields: string): Query<PartsPage, { id: string; cursor: string | null }> =>
  `query PaletteParts($id: ID!, $cursor: String) {
  listApplications(project_id: $id, limit: 30, cursor: $cursor) { data { id name ${fields} } next_cursor }
}` as unknown as Query<PartsPage, { id: string; cursor: string | null }>;
const DOMAINS = 'domains(limit: 20) { hostname }';
/** Not for viewers, who may not read them. */
const VARIABLES = 'environment_variables(limit: 100) { key }';

async function readParts({ id }: Project, add: Add, signal: AbortSignal): Promise<void> {
  const query = partsQuery(mayActAs('developer', id) ? `${DOMAINS} ${VARIABLES}` : DOMAINS);
  let cursor: string | null = null;
  do {
    const { listApplications: page }: PartsPage = await request(query, { id, cursor }, signal);
    add({ parts: page.data.flatMap(partsOf) });
    cursor = page.next_cursor;
  } while (cursor);
}

function partsOf(application: PartsPage['listApplications']['data'][number]): Part[] {
  const href = `/applications/${application.id}`;
  return [
    ...application.domains.map(({ hostname }): Part => ({
      ...{ icon: 'domain', word: 'domain', name: hostname, application, href: `${href}/domains` },
    })),
    ...(application.environment_variables ?? []).map(({ key }): Part => ({
      ...{ icon: 'variable', word: 'variable', name: key, application, href: `${href}/environment` },
    })),
  ];
}
