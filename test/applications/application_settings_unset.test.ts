// Settings that are not set: what the answer shows of them, what is stored, and how they are unset.
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let id: string;

beforeAll(async () => {
  service = await startService();
  id = (await service.call('POST', '/v2/applications', { body: { name: 'unset' } })).body.id;
});

afterAll(() => service?.close());

const call = (method: string, body?: unknown): Promise<Answer> =>
  service.call(method, `/v2/applications/${id}/settings`, { body });

async function get(): Promise<Answer['body']> {
  const { application_id: _, ...settings } = (await call('GET')).body;
  return settings;
}

async function stored(): Promise<unknown> {
  return (await service.sql('select settings from applications where id = $1', [id]))[0].settings;
}

const SET = {
  http: { port: 8080, request_timeout_seconds: 61 },
  health_check: { type: 'tcp' },
  previews: { expire_after_days: null },
  log_retention_days: 3,
};

it('stores no default that is sent back, but each value that decides something', async () => {
  const defaults = await get();
  expect(defaults).toMatchObject({ http: { port: null, request_timeout_seconds: 60 }, health_check: { type: null } });
  expect((await call('PATCH', defaults)).status).toBe(200);
  expect(await stored()).toEqual({});
  // The port that a program has is no longer looked for, and HEALTHCHECK of an image not used.
  expect((await call('PATCH', SET)).status).toBe(200);
  expect(await stored()).toEqual(SET);
  await call('PATCH', await get());
  expect([await stored(), await get()]).toEqual([SET, expect.objectContaining({ log_retention_days: 3 })]);
});

it('takes each setting back to its default with null', async () => {
  await call('PATCH', SET);
  const cleared = {
    http: { port: null, request_timeout_seconds: null },
    health_check: { type: null },
    previews: { expire_after_days: 7 },
    log_retention_days: null,
  };
  const { body } = await call('PATCH', cleared);
  expect(body).toMatchObject({ http: { port: null, request_timeout_seconds: 60 }, log_retention_days: 7 });
  expect(await stored()).toEqual({});
});
