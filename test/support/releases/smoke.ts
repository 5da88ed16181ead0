// What people do with a platform every day, as one round over the API: does this program still do it?
import { httpCall, type HttpAnswer } from '../http_call';
import { LOGIN } from '../identity/browser';

export interface Installation {
  base: string;
  ingressPort: number;
  /** What the first start wrote. */
  first: { key: string; project_id: string; setup_url: string };
  /** Paths of lists, of the program's own list of operations. */
  lists: string[];
}

export interface Smoke {
  /** One round; each does everything anew, beside what the rounds before made. Returns what failed, by step. */
  round(): Promise<string[]>;
}

const PASSWORD = 'correct horse battery';
const EMAIL = 'ada@example.com';
const SET_UP = `mutation ($input: SetUpOwnerInput!) { setUpOwner(input: $input) { user { email } } }`;
const LOOP_MS = 240_000;

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the program sends */
type Call = (method: string, place: string, body?: object, headers?: Record<string, string>) => Promise<any>;

export function openSmoke(installation: Installation): Smoke {
  let rounds = 0;
  return {
    async round() {
      rounds += 1;
      const failed: string[] = [];
      const step = async (name: string, work: () => Promise<void>): Promise<void> => {
        await work().catch((error: unknown) => failed.push(`${name}: ${(error as Error).message}`));
      };
      await step('login', () => logIn(installation, rounds === 1));
      const call = await newProject(installation, rounds).catch((error: unknown) => error as Error);
      if (call instanceof Error) return [...failed, `project: ${call.message}`];
      await step('application', () => deploy(installation, call));
      for (const [name, body] of Object.entries(kindsOf(rounds))) await step(name, () => keep(call, name, body));
      await step('lists', () => list(installation, call));
      return failed;
    },
  };
}

async function newProject({ base, first }: Installation, round: number): Promise<Call> {
  const make = caller(base, first.key, first.project_id);
  const { id } = await make('POST', '/v2/projects', { name: `Smoke ${round}` });
  await make('PATCH', `/v2/projects/${id}`, { name: `Smoke, round ${round}` });
  return caller(base, first.key, id);
}

function kindsOf(round: number): Record<string, object> {
  return {
    databases: { name: 'orders', engine: 'postgresql' },
    buckets: { name: `smoke-${round}` },
    volumes: { name: 'uploads', size_gb: 1 },
    dns_zones: { name: `smoke-${round}.example.com` },
    notifiers: { name: 'Chat', type: 'webhook', config: { url: 'https://example.com/hook' } },
  };
}

/** Made, read and, where the loops bring it about, waited for. */
async function keep(call: Call, kind: string, body: object): Promise<void> {
  const { id } = await call('POST', `/v2/${kind}`, body);
  const found = await call('GET', `/v2/${kind}/${id}`);
  if (kind === 'volumes') await until(call, `/v2/volumes/${id}`, 'available');
  if (found.id !== id) throw new Error(`${kind} ${id} is not found`);
}

async function deploy({ ingressPort }: Installation, call: Call): Promise<void> {
  const { id, default_hostname: host } = await call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' });
  await call('PUT', `/v2/applications/${id}/env/GREETING`, { value: 'Hello' });
  const deployments = `/v2/applications/${id}/deployments`;
  const { id: deployment } = await call('POST', deployments, {}, { Prefer: 'wait=60' });
  await until(call, `${deployments}/${deployment}`, 'active');
  const page = await httpCall(`http://127.0.0.1:${ingressPort}/`, { method: 'GET', headers: { Host: host } });
  if (page.status !== 200) throw new Error(`its page answers ${page.status}`);
  const domain = await call('POST', `/v2/applications/${id}/domains`, {
    hostname: `www.${host.split('.')[0]}.example.com`,
  });
  await call('DELETE', `/v2/applications/${id}/domains/${domain.id}`);
  await call('DELETE', `/v2/applications/${id}`);
}

async function until(call: Call, place: string, status: string): Promise<void> {
  for (const end = Date.now() + LOOP_MS; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const found = await call('GET', place);
    if (found.status === status) return;
    if (found.status === 'failed' || Date.now() > end)
      throw new Error(`${place} is ${found.status}, not ${status}: ${found.status_reason}`);
  }
}

async function logIn({ base, first }: Installation, isFirst: boolean): Promise<void> {
  const run = async (query: string, input: object): Promise<void> => {
    const headers = { 'Content-Type': 'application/json' };
    const body = JSON.stringify({ query, variables: { input } });
    const { text } = await httpCall(`${base}/graphql`, { method: 'POST', headers, body });
    if (JSON.parse(text).errors) throw new Error(text);
  };
  const code = first.setup_url.split('#')[1];
  if (isFirst) await run(SET_UP, { code, email: EMAIL, password: PASSWORD, name: 'Ada' });
  await run(LOGIN, { email: EMAIL, password: PASSWORD });
}

async function list({ lists }: Installation, call: Call): Promise<void> {
  const failed: string[] = [];
  for (const place of lists) await call('GET', place).catch((error: unknown) => failed.push((error as Error).message));
  if (failed.length) throw new Error(failed.join('; '));
}

function caller(base: string, key: string, project: string): Call {
  return async (method, place, body, more) => {
    const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project, ...more };
    const sent = body && { body: JSON.stringify(body) };
    const answer: HttpAnswer = await httpCall(base + place, {
      method,
      headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
      ...sent,
    });
    if (answer.status >= 300) throw new Error(`${method} ${place} answered ${answer.status} ${answer.text}`);
    return answer.text ? JSON.parse(answer.text) : null;
  };
}
