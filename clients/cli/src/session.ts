// What a command works with: the server, the token, the project and the application, and requests to them.
import type { IncomingMessage } from 'node:http';
import { readCredentials } from './config/credentials';
import { findLink, type FoundLink } from './config/link';
import { EXIT, Failure, isLacking, ProblemFailure, usageFailure, type Problem } from './failure';
import { networkFailure, sendWithRetries } from './http/retry';
import { openResponse, type HttpAnswer } from './http/send';
import { noteServer } from './outcome';
import { noteTarget } from './output/hint';
import type { Row } from './output/print';
import { fixedToken, storedToken, type TokenSource } from './tokens';

export interface TargetFlags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly project?: string | undefined;
  readonly app?: string | undefined;
}

export interface Call {
  query?: Record<string, string | number | boolean | undefined> | undefined;
  body?: unknown;
  headers?: Record<string, string> | undefined;
  /** Whether the operation takes an Idempotency-Key: all POSTs that make something. */
  key?: 'with_key' | 'without_key';
  /** `none` sends no project. */
  project?: 'none';
}

export interface Session {
  server: string;
  tokens: TokenSource;
  link: FoundLink | undefined;
  flags: TargetFlags;
  /** @throws ProblemFailure for an answer that is a problem */
  send(method: string, path: string, call?: Call): Promise<HttpAnswer>;
  /** The body of the answer. */
  request<Body = Row>(method: string, path: string, call?: Call): Promise<Body>;
  /** All entries of a list, page by page. */
  list<Entry = Row>(path: string, query?: Call['query'], call?: Call): Promise<Entry[]>;
  /** Opens a stream of events. @throws ProblemFailure */
  stream(
    path: string,
    query: Call['query'],
    lastEventId: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage>;
  /** Id of the project, or undefined with a key that is bound to one. */
  project(): Promise<string | undefined>;
  /** Id of the application. @throws Failure where none is named */
  application(): Promise<string>;
}

export function openSession(flags: TargetFlags): Session {
  const link = findLink();
  const { server, tokens } = chooseServer(flags, link);
  noteServer(server);
  noteTarget(flags);
  let project: Promise<string | undefined> | undefined;
  const session: Session = {
    ...{ server, tokens, link, flags },
    send: (method, path, call = {}) => sendCall(session, method, path, call),
    async request(method, path, call) {
      const { text } = await session.send(method, path, call);
      return (text ? JSON.parse(text) : null) as never;
    },
    list: (path, query, call) => listAll(session, path, query, call),
    stream: (path, query, lastEventId, signal) => openStream(session, path, query, lastEventId, signal),
    project: () => (project ??= findProject(session)),
    application: () => findApplication(session),
  };
  return session;
}

/** The address of a server as it is stored: without a path and a slash at the end. */
export function serverOf(text: string): string {
  const given = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`;
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw usageFailure(`"${text}" is no address of a server.`, 'Example: https://platform.example.com');
  return new URL(given).origin;
}

function chooseServer(flags: TargetFlags, link: FoundLink | undefined): { server: string; tokens: TokenSource } {
  const token = flags.token ?? process.env.SVC_TOKEN;
  const named = flags.url ?? process.env.SVC_URL;
  const { current, servers } = readCredentials();
  const server = named ? serverOf(named) : (link && serverOf(link.url)) || current;
  if (!server)
    throw new Failure('No server is known.', EXIT.denied, [
      'Run: svc login --url https://platform.example.com',
      'In CI, set SVC_URL and SVC_TOKEN.',
    ]);
  if (!token) return { server, tokens: storedToken(server) };
  // A link comes with a folder, perhaps of somebody else: it must not choose who gets a token that is not its own.
  if (!named && link && !servers[server] && server !== current)
    throw usageFailure(`The link of this folder names ${server}, where you have never logged in.`, 'Set SVC_URL too.');
  return { server, tokens: fixedToken(token.trim()) };
}

async function sendCall(session: Session, method: string, path: string, call: Call): Promise<HttpAnswer> {
  const { url, headers } = await describeCall(session, path, call);
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  const token = headers.Authorization?.slice('Bearer '.length) ?? '';
  const attempt = (given: Record<string, string>): Promise<HttpAnswer> =>
    sendWithRetries(
      { method, url, headers: given, ...(body !== undefined && { body }) },
      call.key ?? (method === 'POST' ? 'with_key' : 'without_key'),
    );
  let answer = await attempt(headers);
  if (answer.status === 401) {
    const renewed = await session.tokens.renew(token);
    if (renewed) answer = await attempt({ ...headers, Authorization: `Bearer ${renewed}` });
  }
  if (answer.status >= 400) throw problemOf(session, answer);
  return answer;
}

/** Address and headers of a request, with the token. */
export async function describeCall(
  session: Session,
  path: string,
  call: Call,
): Promise<{ url: URL; headers: Record<string, string> }> {
  const url = new URL(path, session.server);
  for (const [name, value] of Object.entries(call.query ?? {}))
    if (value !== undefined) url.searchParams.set(name, String(value));
  const headers: Record<string, string> = { Accept: 'application/json', ...call.headers };
  headers.Authorization = `Bearer ${await session.tokens.read()}`;
  const project = call.project === 'none' ? undefined : await session.project();
  if (project) headers['X-Svc-Project'] = project;
  if (call.body !== undefined) headers['Content-Type'] = 'application/json';
  return { url, headers };
}

export interface GraphqlError {
  message: string;
  extensions?: Problem;
}

export const problemOfGraphql = ({ message, extensions }: GraphqlError): Problem => ({
  detail: message,
  ...extensions,
});

/** The failure that an answer of the server is. */
export function problemOf(session: Pick<Session, 'server'>, { status, text, headers }: HttpAnswer): ProblemFailure {
  let problem: Problem;
  try {
    problem = JSON.parse(text) as Problem;
    // What is refused before it is executed, such as a body that is too large, has the form of GraphQL there.
    const [first] = (problem as { errors?: GraphqlError[] }).errors ?? [];
    if (first?.extensions) problem = problemOfGraphql(first);
  } catch {
    // A proxy or another server, not the platform.
    problem = { title: `${session.server} answered with status ${status}, and not as the platform does.` };
  }
  const after = headers['retry-after'];
  return new ProblemFailure(problem, status, [
    ...(after ? [`Try again in ${after} s.`] : []),
    ...(isLacking(problem) ? [`${session.server} lacks this operation. It may be older than svc ${SVC_VERSION}.`] : []),
  ]);
}

async function listAll<Entry>(session: Session, path: string, query: Call['query'], call?: Call): Promise<Entry[]> {
  const found: Entry[] = [];
  let cursor: string | undefined;
  do {
    const page = await session.request<{ data: Entry[]; next_cursor: string | null }>('GET', path, {
      ...call,
      query: { limit: 100, ...query, cursor },
    });
    found.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return found;
}

const STREAM_IDLE_MS = 45_000;

async function openStream(
  session: Session,
  path: string,
  query: Call['query'],
  lastEventId: string | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { url, headers } = await describeCall(session, path, { query });
  const sent = { ...headers, Accept: 'text/event-stream', ...(lastEventId && { 'Last-Event-ID': lastEventId }) };
  // The server sends something every 12 seconds; what is silent for longer is broken.
  const request = { method: 'GET', url, headers: sent, idleMs: STREAM_IDLE_MS, signal };
  try {
    const response = await openResponse(request);
    if (response.statusCode === 200) return response;
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString('utf8');
    throw problemOf(session, { status: response.statusCode ?? 0, headers: response.headers, text });
  } catch (error) {
    throw networkFailure(url, error);
  }
}

interface Named {
  id: string;
  name: string;
}

async function findProject(session: Session): Promise<string | undefined> {
  const { link, flags, server } = session;
  const named = flags.project ?? process.env.SVC_PROJECT;
  if (named && /^prj_\w+$/.test(named)) return named;
  if (!named && link && serverOf(link.url) === server) return link.project_id;
  const stored = readCredentials().servers[server]?.project_id;
  if (!named && stored && !flags.token && !process.env.SVC_TOKEN) return stored;
  if (named) return findProjectNamed(session, named);
  const projects = await session.list<Named>('/v2/me/projects', {}, { project: 'none' });
  const [only] = projects;
  if (projects.length === 1 && only) return only.id;
  if (!projects.length)
    throw new Failure('You are in no project.', EXIT.notFound, ['Create one: svc projects create Shop']);
  throw usageFailure('Which project? Pass --project with its name or id, or link this folder.', namesOf(projects));
}

/** The id of a project that is named by its name or id. @throws Failure */
export async function findProjectNamed(session: Pick<Session, 'list'>, named: string): Promise<string> {
  if (/^prj_\w+$/.test(named)) return named;
  const projects = await session.list<Named>('/v2/me/projects', {}, { project: 'none' });
  const found = projects.find(({ name }) => name === named);
  if (found) return found.id;
  throw new Failure(`There is no project "${named}" that you can reach.`, EXIT.notFound, [namesOf(projects)]);
}

async function findApplication(session: Session): Promise<string> {
  const { flags, link, server } = session;
  const named = flags.app ?? process.env.SVC_APP;
  if (named && /^app_\w{26}$/.test(named)) return named;
  if (!named) {
    if (link && serverOf(link.url) === server) return link.application_id;
    throw usageFailure(
      'Which application? Pass --app with its name or id, or run `svc link` in its folder.',
      namesOf(await session.list<Named>('/v2/applications')),
    );
  }
  const applications = await session.list<Named>('/v2/applications');
  const found = applications.find(({ name }) => name === named);
  if (found) return found.id;
  throw new Failure(`There is no application "${named}" in this project.`, EXIT.notFound, [namesOf(applications)]);
}

export const namesOf = (rows: readonly Named[]): string =>
  rows.length ? `There are: ${rows.map(({ name }) => name).join(', ')}` : 'There is none.';
