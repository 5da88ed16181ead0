/** @tier heavy @quarter 4 @covers server/operator models/identity */
// Clients of the authorisation server, as the operator registers them beside a running service.
import { first, json, run, setUpCommand } from '../support/processes/operator_command';

setUpCommand();

test('programs that people may allow are registered, listed and deleted', async () => {
  const create = (redirect: string): string[] => [
    'oauth-client',
    'create',
    '--name',
    'Website',
    '--redirect',
    redirect,
  ];
  const wrong = await run(create('http://app.example.com/callback'));
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('is neither https')]);
  expect((await run(create('https://app.example.com/,http://127.0.0.1/'))).code).toBe(2);
  const [{ client_id }] = (await json(create('https://app.example.com/callback'))).data;
  const listed = (await json(['oauth-client', 'list'])).data;
  expect(listed.map((client: { client_id: string }) => client.client_id)).toEqual(['platform-cli', client_id]);
  const asked = new URLSearchParams({
    ...{ client_id, response_type: 'code', scope: 'read', redirect_uri: 'https://app.example.com/callback' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  });
  const statusOf = async (): Promise<number> =>
    (await fetch(`${first.base_url}/oauth/authorize?${asked}`, { redirect: 'manual' })).status;
  expect(await statusOf()).toBe(303);
  expect((await run(['oauth-client', 'delete', client_id])).code).toBe(0);
  expect(await statusOf()).toBe(400);
  expect((await run(['oauth-client', 'delete', client_id])).code).toBe(1);
});
