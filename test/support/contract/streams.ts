// Streams of both faces as a client reads them, until they end.
import http from 'node:http';
import { mintId } from '../../../core/ids';
import { sha256 } from '../../../core/accounts/tokens';
import { deployed } from '../deployments/deployed';
import type { KeyOptions, TestService } from '../service';

/** What is promised of a stream whose caller may no longer read. */
export const ENDS_WITHIN_MS = 15_000;

/** By a row alone: as another process does it whose notification was lost. */
export const REVOKE_KEY = 'update api_keys set revoked_at = now() where hash = $1';

export const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });

export interface Target {
  project: string;
  application: string;
  deployment: string;
}

export interface OpenStream {
  /** What came so far. */
  text(): string;
  /** Resolves when the server has ended the response; rejects where the connection broke. */
  ended: Promise<void>;
  /** Takes nothing more from the connection. */
  pause(): void;
  resume(): void;
  close(): void;
}

export interface Face {
  name: string;
  /** Code of the problem that the stream ended with, null where it gave none. */
  reason(text: string): string | null;
  open(service: TestService, headers: Record<string, string>, target: Target): Promise<OpenStream>;
}

const restReason = (text: string): string | null => {
  const data = /\nevent: problem\ndata: (.+)\n\n$/.exec(text)?.[1];
  return data ? JSON.parse(data).code : null;
};

const graphqlReason = (text: string): string | null => {
  const data = /event: next\ndata: (.+)\n\nevent: complete\ndata:\n\n$/.exec(text)?.[1];
  return data ? (JSON.parse(data).errors?.[0].extensions.code ?? null) : null;
};

function rest(name: string, place: (target: Target) => string): Face {
  return {
    name: `REST ${name}`,
    reason: restReason,
    open: (service, headers, target) =>
      openStream(`${service.url}${place(target)}`, {
        headers: { Accept: 'text/event-stream', 'X-Svc-Project': target.project, ...headers },
      }),
  };
}

function graphql(name: string, selection: (target: Target) => string): Face {
  return {
    name: `GraphQL ${name}`,
    reason: graphqlReason,
    open: (service, headers, target) =>
      openStream(`${service.url}/graphql`, {
        method: 'POST',
        headers: {
          Accept: 'text/event-stream',
          'Content-Type': 'application/json',
          'X-Svc-Project': target.project,
          ...headers,
        },
        body: JSON.stringify({ query: `subscription { ${selection(target)} }` }),
      }),
  };
}

export const faces: Face[] = [
  rest('log of an application', ({ application }) => `/v2/applications/${application}/logs`),
  rest(
    'log of a deployment',
    ({ application, deployment }) => `/v2/applications/${application}/deployments/${deployment}/logs`,
  ),
  rest('activity', ({ project }) => `/v2/projects/${project}/activity`),
  graphql('log of an application', ({ application }) => `followApplicationLogs(id: "${application}") { message }`),
  graphql('activity', ({ project }) => `followProjectActivity(id: "${project}") { action }`),
  graphql(
    'activity and log of an application',
    ({ project, application }) => `followProject(id: "${project}", application_id: "${application}") { __typename }`,
  ),
];

interface Asked {
  method?: string;
  headers: Record<string, string>;
  body?: string;
}

/** Sends the request and resolves when the stream has begun. @throws Error with the answer where it is no stream */
export function openStream(url: string, { method = 'GET', headers, body }: Asked): Promise<OpenStream> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      const ended = new Promise<void>((end, fail) => {
        response.once('end', end).once('error', fail);
      });
      ended.catch(() => {});
      const stream = {
        text: () => text,
        ended,
        pause: () => void response.pause(),
        resume: () => void response.resume(),
        close: () => void request.destroy(),
      };
      if (/^text\/event-stream/.test(response.headers['content-type'] ?? '')) return resolve(stream);
      void ended.then(() => reject(new Error(`${response.statusCode} ${text}`)));
    });
    request.on('error', reject);
    request.end(body);
  });
}

let made = 0;

/** An application with a deployment, both of which have a log. */
export async function makeTarget(service: TestService, project: string, key: string): Promise<Target> {
  const name = `followed-${(made += 1)}`;
  const { body } = await service.call('POST', '/v2/applications', { body: { name }, project, key });
  const { deployment } = await deployed(service, body.id);
  return { project, application: body.id, deployment };
}

/** Of a developer of the first project with an account of their own. */
export async function personalKey(service: TestService, options: KeyOptions = {}): Promise<string> {
  const token = await service.mintKey({ role: 'developer', ...options });
  const account = mintId('acc');
  await service.sql(`insert into accounts (id, name) values ($1, 'Own')`, [account]);
  await service.sql('update users set account_id = $1 where id = (select user_id from api_keys where hash = $2)', [
    account,
    sha256(token),
  ]);
  return token;
}
