// Where visitors reach an application.
import type { Problem } from './failure';
import { ProblemFailure } from './failure';
import type { Session } from './session';

const QUERY = 'query ($id: ID!) { getApplication(id: $id) { default_hostname url } }';
/** A server that does not know the field yet. */
const OLDER_QUERY = 'query ($id: ID!) { getApplication(id: $id) { default_hostname } }';
/** The port at which an older server has its applications, unless it was set. */
const INGRESS_PORT = 8000;

interface Found {
  default_hostname: string;
  url?: string | null;
}

/** The address of an application as the server says it; null while its process type `web` is scaled to 0. */
export async function findApplicationUrl(session: Session, id: string): Promise<string | null> {
  const { url, default_hostname } = (await query(session, QUERY, id)) ?? (await query(session, OLDER_QUERY, id)) ?? {};
  if (url !== undefined || default_hostname === undefined) return url ?? null;
  return session.server.startsWith('https:')
    ? `https://${default_hostname}`
    : `http://${default_hostname}:${INGRESS_PORT}`;
}

/** @returns undefined where the server does not know a field of the query */
async function query(session: Session, text: string, id: string): Promise<Found | undefined> {
  const { data, errors } = await session.request<{
    data?: { getApplication: Found | null } | null;
    errors?: { message: string; extensions?: Problem }[];
  }>('POST', '/graphql', { body: { query: text, variables: { id } }, key: 'without_key' });
  const [first] = errors ?? [];
  if (!first) return data?.getApplication ?? undefined;
  if (text === QUERY && /^Cannot query field/.test(first.message)) return undefined;
  throw new ProblemFailure({ detail: first.message, ...first.extensions }, first.extensions?.status ?? 400);
}
