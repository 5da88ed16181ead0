// Benchmark cases: each is one stream of requests per server, with the expected responses.
import { getIntrospectionQuery } from 'graphql';
import type { Shot } from './load';
import { VARIABLES, type Project, type Seed } from './seed';

/** The service, and the hand-written server of tools/bench/references; `notifying` also wakes the loop. */
export type Name = 'service' | 'bare' | 'notifying';

export type Stream = () => Shot;

/** Target of a case relative to a reference. */
export interface Goal {
  beside: Name;
  /** Requests per second: at least `target` times the reference. p99: at most. */
  of: 'rps' | 'p99';
  /** Without one the ratio is only printed. */
  target?: number;
}

export interface Case {
  name: string;
  streams: Partial<Record<Name, Stream>>;
  goals: Goal[];
}

export const PAGE = 50;

/** Cases that are compared. */
export function compared(seed: Seed): Case[] {
  const { get, list, post, notify, patch, put } = streams(seed);
  const writes: Goal[] = [{ beside: 'bare', of: 'rps', target: 0.7 }];
  return [
    {
      name: 'GET one volume',
      streams: { service: get, bare: get },
      goals: [
        { beside: 'bare', of: 'rps', target: 0.8 },
        { beside: 'bare', of: 'p99', target: 1.5 },
      ],
    },
    {
      name: `GET list of ${PAGE}`,
      streams: { service: list, bare: list },
      goals: [
        { beside: 'bare', of: 'rps', target: 0.95 },
      ],
    },
    {
      name: 'POST volume',
      streams: { service: post, bare: post, notifying: notify },
      goals: [...writes, { beside: 'notifying', of: 'rps' }],
    },
    { name: 'PATCH volume', streams: { service: patch, bare: patch }, goals: writes },
    { name: 'PUT env', streams: { service: put, bare: put }, goals: writes },
  ];
}

/** Names are free once in a project, and both servers write to the same ones. */
let made = 0;
const newName = (): string => `new-${process.pid}-${(made += 1)}`;

/** Streams that the service and the hand-written server answer alike. */
export function streams(seed: Seed): Record<'get' | 'list' | 'post' | 'notify' | 'patch' | 'put', Stream> {
  const pages = new Map(
    seed.projects.map((project) => [
      project,
      `{"data":${JSON.stringify(project.volumes.slice(0, PAGE))},"next_cursor":"`,
    ]),
  );
  return {
    get: () => {
      const volume = any(any(seed.projects).volumes);
      return {
        request: requestText(seed.key, volume.project_id, 'GET', `/v2/volumes/${volume.id}`),
        status: 200,
        body: JSON.stringify(volume),
      };
    },
    list: () => {
      const project = any(seed.projects);
      return {
        request: requestText(seed.key, project.id, 'GET', `/v2/volumes?limit=${PAGE}`),
        status: 200,
        body: pages.get(project) as string,
      };
    },
    post: () => create(seed, '/v2/volumes'),
    notify: () => create(seed, '/v2/volumes?notify'),
    patch: () => rename(seed),
    put: () => setVariable(seed),
  };
}

function create(seed: Seed, path: string): Shot {
  const [name, project] = [newName(), any(seed.targets)];
  const right = (text: string): boolean =>
    text.startsWith('{"id":"vol_') && text.includes(`"project_id":"${project}","name":"${name}","size_gb":7,`);
  return { request: requestText(seed.key, project, 'POST', path, { name, size_gb: 7 }), status: 201, body: right };
}

function rename(seed: Seed): Shot {
  const name = newName();
  const { id, project_id } = any(any(seed.changed).volumes);
  return {
    request: requestText(seed.key, project_id, 'PATCH', `/v2/volumes/${id}`, { name }),
    status: 200,
    body: `{"id":"${id}","project_id":"${project_id}","name":"${name}",`,
  };
}

function setVariable(seed: Seed): Shot {
  const value = `postgresql://db.example.com/${newName()}`;
  const project = any(seed.changed);
  const [application, key] = [any(project.applications), `VARIABLE_${Math.floor(Math.random() * VARIABLES)}`];
  const body = `{"application_id":"${application}","key":"${key}","value":"${value}",`;
  return {
    request: requestText(seed.key, project.id, 'PUT', `/v2/applications/${application}/env/${key}`, { value }),
    status: 200,
    body,
  };
}

/** A rejected request, whose cost in single reads has a target in some cases. */
export interface Refusal {
  name: string;
  next: Stream;
  target?: number;
}

const CHEAP = 0.25;

/** Requests that are refused. */
export function refusals(seed: Seed): Refusal[] {
  const project = (seed.projects[0] as Project).id;
  const path = '/v2/volumes/vol_00000000000000000000000000';
  const refused = (name: string, request: string, status: number, code: string, target?: number): Refusal => {
    return { name, target, next: () => ({ request, status, body: (text) => text.includes(`"code":"${code}"`) }) };
  };
  return [
    refused('401 no key', requestText(null, project, 'GET', path), 401, 'token_missing', CHEAP),
    refused(
      '401 key with a typing mistake',
      requestText(`${seed.key.slice(0, -1)}-`, project, 'GET', path),
      401,
      'token_invalid',
      CHEAP,
    ),
    refused('403 scope', requestText(seed.narrowKey, project, 'GET', path), 403, 'insufficient_scope'),
    refused('404 no such path', requestText(seed.key, project, 'GET', '/v2/nothing'), 404, 'route_not_found', CHEAP),
    refused('404 no such volume', requestText(seed.key, project, 'GET', path), 404, 'not_found'),
    refused(
      '422 three mistakes in a body',
      requestText(seed.key, project, 'POST', '/v2/volumes', { name: 'A', size_gb: 'x', colour: 1 }),
      422,
      'validation_failed',
    ),
    refused(
      'GraphQL, key with a typing mistake',
      graphql(`${seed.key.slice(0, -1)}-`, project, '{ getMe { kind } }'),
      401,
      'token_invalid',
      CHEAP,
    ),
    schemaByNewTexts(seed, project),
    refused('GraphQL, 5,000 levels deep', graphql(seed.key, project, deep(5_000)), 400, 'query_too_complex', CHEAP),
    refused('GraphQL, 2,000 aliases', graphql(seed.key, project, aliased(2_000)), 400, 'query_too_complex', CHEAP),
  ];
}

/** Accepted, but an attack: the whole schema, by a text that is never the same. */
function schemaByNewTexts(seed: Seed, project: string): Refusal {
  let count = 0;
  const query = getIntrospectionQuery();
  return {
    name: 'GraphQL, the schema by new texts',
    target: undefined,
    next: () => ({
      request: graphql(seed.key, project, query.replace('IntrospectionQuery', `Q${(count += 1)}`)),
      status: 200,
      body: (text) => text.includes('"__schema":'),
    }),
  };
}

/** What Node itself takes: the bare server answers a stranger with two letters, and writes no log. */
export function unknownToBare(seed: Seed): Refusal {
  const request = requestText(null, (seed.projects[0] as Project).id, 'GET', '/v2/volumes/vol_1');
  return { name: '401 of http + pg', target: undefined, next: () => ({ request, status: 401, body: '{}' }) };
}

/** For a server whose account may make no more calls. */
export function limited(seed: Seed): Refusal {
  const { id } = seed.projects[0] as Project;
  const request = requestText(seed.key, id, 'GET', '/v2/volumes');
  return {
    name: '429 budget used up',
    target: CHEAP,
    next: () => ({ request, status: 429, body: (text) => text.includes('"code":"rate_limited"') }),
  };
}

const deep = (levels: number): string => '{a'.repeat(levels) + '}'.repeat(levels);
const aliased = (count: number): string =>
  `{ ${Array.from({ length: count }, (_, index) => `a${index}: getMe { kind }`).join(' ')} }`;

function graphql(key: string, project: string, query: string): string {
  return requestText(key, project, 'POST', '/graphql', { query });
}

function requestText(key: string | null, project: string, method: string, path: string, body?: object): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: localhost', `X-Svc-Project: ${project}`];
  if (key) lines.push(`Authorization: Bearer ${key}`);
  const text = body ? JSON.stringify(body) : '';
  if (body) lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`);
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}

function any<T>(list: T[]): T {
  return list[Math.floor(Math.random() * list.length)] as T;
}
