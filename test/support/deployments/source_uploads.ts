// Source uploads over HTTP, for tests that run no job.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { tarOf } from '../builds/archives';
import { startService, type Answer, type TestService } from '../service';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
export const MIB = 2 ** 20;
export let service: TestService;
export let application: string;
let serial = 0;
export let archive: Buffer;

/** A service, and an application whose source is uploads for each test. */
export function useUploads(): void {
  beforeAll(async () => {
    service = await startService({ settings: { SOURCE_SIZE_MB: '2' } });
    archive = await tarOf({ name: 'index.html', body: 'hello' });
  });
  afterAll(() => service?.close());
  beforeEach(async () => {
    application = await newApplication();
  });
}

export async function newApplication(source: object = { type: 'upload' }, options = {}): Promise<string> {
  const body = { name: `up-${(serial += 1)}`, source };
  const made = await service.call('POST', '/v2/applications', { body, ...options });
  expect(made.status).toBe(201);
  return made.body.id;
}

export const pathOf = (id = application, rest = ''): string => `/v2/applications/${id}/source_uploads${rest}`;
export const create = (body: object = {}, id = application): Promise<Answer> =>
  service.call('POST', pathOf(id), { body });
export const get = async (id: string): Promise<any> => (await service.call('GET', pathOf(application, `/${id}`))).body;
export const directory = (): string => path.join(service.platform.config.runtimeDir, 'source-uploads');
export const filesOf = (id: string): string[] => readdirSync(directory()).filter((name) => name.startsWith(id));
export async function put(url: string, body: Buffer | string, headers: Record<string, string> = {}): Promise<any> {
  const answer = await fetch(url, {
    method: 'PUT',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers,
  });
  return { status: answer.status, body: await answer.json() };
}
export const deploy = (body: object, id = application): Promise<Answer> =>
  service.call('POST', `/v2/applications/${id}/deployments`, { body });

export async function ready(id = application): Promise<any> {
  const { body } = await create({}, id);
  expect((await put(body.upload_url, archive)).status).toBe(200);
  return body;
}
