// Operations: listRobotAccounts, createRobotAccount, getRobotAccount, deleteRobotAccount.
// Robot accounts: what they may do in the registries of their project, and until when.
import { randomBytes } from 'node:crypto';
import {
  activeRegistry,
  clientOf,
  createPusher,
  createRobot,
  newName,
  service,
  setUpRegistry,
} from '../support/registries/registry_cases';
import { waitFor } from '../support/wait_for';

setUpRegistry();

describe('robot accounts', () => {
  it('shows the secret once', async () => {
    const made = await createRobot(['pull'], { registry_ids: [(await activeRegistry()).id] });
    expect(made).toMatchObject({ status: 'active', last_used_at: null, expires_at: null, secret: expect.any(String) });
    expect(made.username).toMatch(/^robot-reg\d+-[a-z0-9]{6}$/);
    const got = await service.call('GET', `/v2/robot_accounts/${String(made.id)}`);
    expect(got.body.secret).toBeNull();
  });

  it('refuses an unknown registry and an end in the past', async () => {
    const unknown = await service.call('POST', '/v2/robot_accounts', {
      body: { name: newName(), permissions: ['pull'], registry_ids: ['reg_00000000000000000000000000'] },
    });
    expect([unknown.status, unknown.body]).toMatchObject([
      422,
      { code: 'reference_not_found', field: 'registry_ids.0' },
    ]);
    const past = await service.call('POST', '/v2/robot_accounts', {
      body: { name: newName(), permissions: ['pull'], expires_at: '2020-01-01T00:00:00Z' },
    });
    expect([past.status, past.body.errors]).toMatchObject([422, [{ field: 'expires_at', code: 'too_small' }]]);
  });

  it('ends at once when it is deleted, and with its time', async () => {
    const registry = await activeRegistry();
    const name = `${String(registry.name)}/app`;
    await (await createPusher()).pushImage(name, 'latest', [randomBytes(10)]);
    const account = await createRobot(['pull'], { expires_at: new Date(Date.now() + 2_000).toISOString() });
    const client = clientOf(account);
    expect((await client.pull(name, 'latest')).status).toBe(200);
    await waitFor(
      'it has happened',
      async () => (await client.pull(name, 'latest', { sameToken: true })).status === 401,
    );
    const listed = await service.call('GET', `/v2/robot_accounts?status=expired&name=${String(account.name)}`);
    expect(listed.body.data).toMatchObject([{ id: account.id, status: 'expired' }]);
    const other = await createRobot(['pull']);
    const second = clientOf(other);
    expect((await second.pull(name, 'latest')).status).toBe(200);
    await service.call('DELETE', `/v2/robot_accounts/${String(other.id)}`);
    expect((await second.pull(name, 'latest', { sameToken: true })).status).toBe(401);
  });

  it('does what its permissions say, in its registries, and no more', async () => {
    const [mine, other] = [await activeRegistry(), await activeRegistry()];
    const all = await createPusher();
    for (const { name } of [mine, other]) await all.pushImage(`${String(name)}/app`, '1', [randomBytes(10)]);
    const client = clientOf(await createRobot(['pull'], { registry_ids: [mine.id] }));
    expect((await client.pull(`${String(mine.name)}/app`, '1')).status).toBe(200);
    expect((await client.pull(`${String(other.name)}/app`, '1')).status).toBe(403);
    expect((await client.call('POST', `/v2/${String(mine.name)}/app/blobs/uploads/`)).status).toBe(403);
    expect((await client.call('DELETE', `/v2/${String(mine.name)}/app/manifests/1`)).status).toBe(403);
    expect((await client.call('GET', '/v2/_catalog')).status).toBe(403);
    expect((await client.pull('nobody/app', '1')).status).toBe(403);
  });

  it('leaves its registries with them', async () => {
    const registry = await activeRegistry();
    const account = await createRobot(['pull'], { registry_ids: [registry.id] });
    await service.call('DELETE', `/v2/registries/${String(registry.id)}`);
    const got = await service.call('GET', `/v2/robot_accounts/${String(account.id)}`);
    expect(got.body.registry_ids).toEqual([]);
  });
});
