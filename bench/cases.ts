// What is measured: each case is a stream of requests with the answers that are right.
import type { Shot } from './load';
import type { Project, Seed } from './seed';

export interface Case {
  name: string;
  /** Which stream of the bare server it is compared with; null: with nothing. */
  reference: 'get' | 'list' | 'post' | null;
  /** Least ratio of requests per second, where one is wanted. */
  target?: number;
  next(): Shot;
}

export const PAGE = 50;
const FIELDS = 'id project_id name size_gb region application_id mount_path status status_reason enforcement used_bytes over_quota created_at updated_at';

/** The service's cases that are compared with the bare server. */
export function compared(seed: Seed): Case[] {
  const { get, list, post } = streams(seed);
  return [
    { name: 'GET one volume', reference: 'get', target: 0.5, next: get },
    { name: `GET list of ${PAGE}`, reference: 'list', target: 0.8, next: list },
    { name: 'POST create', reference: 'post', next: post },
    { name: `GraphQL list of ${PAGE} + relation`, reference: 'list', next: graphqlList(seed) },
  ];
}

/** Both servers write to the same projects, where a name is free once. */
let made = 0;

/** Streams that both servers answer alike. */
export function streams(seed: Seed): Record<'get' | 'list' | 'post', () => Shot> {
  const pages = new Map(seed.projects.map((project) => [project, `{"data":${JSON.stringify(project.volumes.slice(0, PAGE))},"next_cursor":"`]));
  return {
    get: () => {
      const volume = any(any(seed.projects).volumes);
      return { request: ask(seed.key, volume.project_id, 'GET', `/v2/volumes/${volume.id}`), status: 200, body: JSON.stringify(volume) };
    },
    list: () => {
      const project = any(seed.projects);
      return { request: ask(seed.key, project.id, 'GET', `/v2/volumes?limit=${PAGE}`), status: 200, body: pages.get(project) as string };
    },
    post: () => {
      const name = `new-${process.pid}-${(made += 1)}`;
      const project = any(seed.targets);
      const right = (text: string): boolean => text.startsWith('{"id":"vol_') && text.includes(`"project_id":"${project}","name":"${name}","size_gb":7,`);
      return { request: ask(seed.key, project, 'POST', '/v2/volumes', { name, size_gb: 7 }), status: 201, body: right };
    },
  };
}

/** Requests that are refused, cheap ones hopefully. */
export function refusals(seed: Seed): Case[] {
  const project = (seed.projects[0] as Project).id;
  const path = '/v2/volumes/vol_00000000000000000000000000';
  const refused = (name: string, request: string, status: number, code: string): Case => {
    return { name, reference: null, next: () => ({ request, status, body: (text) => text.includes(`"code":"${code}"`) }) };
  };
  return [
    refused('401 no key', ask(null, project, 'GET', path), 401, 'token_missing'),
    refused('401 key with a typing mistake', ask(`${seed.key.slice(0, -1)}-`, project, 'GET', path), 401, 'token_invalid'),
    refused('403 scope', ask(seed.narrowKey, project, 'GET', path), 403, 'insufficient_scope'),
    refused('404 no such path', ask(seed.key, project, 'GET', '/v2/nothing'), 404, 'route_not_found'),
    refused('404 no such volume', ask(seed.key, project, 'GET', path), 404, 'not_found'),
    refused('422 three mistakes in a body', ask(seed.key, project, 'POST', '/v2/volumes', { name: 'A', size_gb: 'x', colour: 1 }), 422, 'validation_failed'),
    refused('GraphQL, 5,000 levels deep', graphql(seed.key, project, deep(5_000)), 400, 'query_too_complex'),
    refused('GraphQL, 2,000 aliases', graphql(seed.key, project, aliased(2_000)), 400, 'query_too_complex'),
  ];
}

/** For a server whose account may make no more calls. */
export function limited(seed: Seed): Case {
  const { id } = seed.projects[0] as Project;
  const request = ask(seed.key, id, 'GET', '/v2/volumes');
  return { name: '429 budget used up', reference: null, next: () => ({ request, status: 429, body: (text) => text.includes('"code":"rate_limited"') }) };
}

function graphqlList(seed: Seed): () => Shot {
  const query = `{ listVolumes(limit: ${PAGE}) { data { ${FIELDS} application { id name } } next_cursor } }`;
  const answers = new Map(seed.projects.map((project) => [project, `{"data":{"listVolumes":{"data":${JSON.stringify(withApplications(project))},"next_cursor":"`]));
  return () => {
    const project = any(seed.projects);
    return { request: graphql(seed.key, project.id, query), status: 200, body: answers.get(project) as string };
  };
}

function withApplications({ volumes, applications }: Project): object[] {
  return volumes.slice(0, PAGE).map((volume) => {
    const id = volume.application_id as string;
    return { ...volume, application: { id, name: `app-${applications.indexOf(id) + 1}` } };
  });
}

const deep = (levels: number): string => '{a'.repeat(levels) + '}'.repeat(levels);
const aliased = (count: number): string => `{ ${Array.from({ length: count }, (_, index) => `a${index}: getMe { kind }`).join(' ')} }`;

function graphql(key: string, project: string, query: string): string {
  return ask(key, project, 'POST', '/graphql', { query });
}

function ask(key: string | null, project: string, method: string, path: string, body?: object): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: localhost', `X-Svc-Project: ${project}`];
  if (key) lines.push(`Authorization: Bearer ${key}`);
  const text = body ? JSON.stringify(body) : '';
  if (body) lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`);
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}

function any<T>(list: T[]): T {
  return list[Math.floor(Math.random() * list.length)] as T;
}
