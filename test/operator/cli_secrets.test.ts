/** @tier heavy @quarter 4 @covers server/operator models/base/sealed_columns.ts */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { dataDir, first, run, setUpCommand } from '../support/processes/operator_command';

setUpCommand();

test('all secrets are encrypted with the first key of the setting, and the others can leave it', async () => {
  const ask = (method: string, place: string, body?: object): Promise<Response> =>
    fetch(`${first.base_url}/v2/applications${place}`, {
      method,
      headers: {
        Authorization: `Bearer ${first.key}`,
        'X-Svc-Project': first.project_id,
        'Content-Type': 'application/json',
      },
      body: body && JSON.stringify(body),
    });
  const { id } = (await (await ask('POST', '', { name: 'rotation' })).json()) as { id: string };
  await ask('PUT', `/${id}/env/TOKEN`, { value: 'hush hush' });
  const before = readFileSync(path.join(dataDir, 'secret-key'), 'utf8').trim();
  const after = `after:${randomBytes(32).toString('base64')}`;
  const reencrypt = (keys: string): ReturnType<typeof run> =>
    run(['secrets', 'reencrypt', '--json'], { settings: { PLATFORM_SECRET_KEY: keys } });

  const done = await reencrypt(`${after},${before}`);
  expect([done.code, done.err]).toEqual([0, '']);
  const variables = { place: 'environment_variables.value', reencrypted: 1, unreadable: 0 };
  expect(JSON.parse(done.out).data).toContainEqual(variables);
  expect(done.out).not.toContain('hush');
  // The running service has the other key alone.
  expect((await ask('GET', `/${id}/env`)).status).toBe(500);
  expect(JSON.parse((await reencrypt(after)).out)).toEqual({ data: [] });

  const stranger = await reencrypt(randomBytes(32).toString('base64'));
  expect(stranger.code).toBe(1);
  expect(JSON.parse(stranger.out).data).toContainEqual({ ...variables, reencrypted: 0, unreadable: 1 });

  expect((await reencrypt(`${before},${after}`)).code).toBe(0);
  expect(await (await ask('GET', `/${id}/env`)).json()).toMatchObject({ data: [{ key: 'TOKEN', value: 'hush hush' }] });
});
