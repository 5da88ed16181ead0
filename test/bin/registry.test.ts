// A deleted registry: its images stay, nobody reaches them, and its name is kept for it.
import { randomBytes } from 'node:crypto';
import { binCalls } from '../support/bin_calls';
import {
  activeRegistry,
  clientOf,
  createPusher,
  createRobot,
  service,
  setUpRegistry,
} from '../support/registries/registry_cases';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
setUpRegistry({ RETENTION_OF_DELETED_DAYS: '7' });
const bin = binCalls(() => service);
const place = ({ id }: any): string => `/v2/registries/${id}`;
const rowsOf = async (table: string, id: string): Promise<number> =>
  (await service.sql(`select 1 from ${table} where ${table === 'registries' ? 'id' : 'registry_id'} = $1`, [id]))
    .length;

describe('a deleted registry', () => {
  it('answers nobody, and has the same images and robot accounts after it was restored', async () => {
    const registry = await activeRegistry();
    const image = `${registry.name}/shop/web`;
    const pushed = await (await createPusher()).pushImage(image, 'latest', [randomBytes(100_000)]);
    const robot = await createRobot(['pull'], { registry_ids: [registry.id] });
    const client = clientOf(robot);
    const before = await client.pull(image, 'latest');
    expect(before.status).toBe(200);
    const shown = (await service.call('GET', place(registry))).body;
    const entry = await bin.deleted(place(registry));
    // Also with the token that it has.
    expect((await client.pull(image, 'latest', { sameToken: true })).status).not.toBe(200);
    expect((await client.pull(image, 'latest')).status).not.toBe(200);
    expect((await service.call('GET', `/v2/robot_accounts/${robot.id}`)).body.registry_ids).toEqual([]);
    expect(await bin.restored(entry)).toEqual([]);
    const after = await service.settle(place(registry));
    expect({ ...after, updated_at: null }).toEqual({ ...shown, updated_at: null });
    const pulled = await client.pull(image, 'latest');
    expect([pulled.status, pulled.body.toString()]).toEqual([200, before.body.toString()]);
    expect(pulled.headers.get('docker-content-digest')).toBe(pushed.digest);
    const { layers } = JSON.parse(pulled.body.toString());
    const layer = await client.call('GET', `/v2/${image}/blobs/${layers[0].digest}`);
    expect([layer.status, layer.body.length]).toEqual([200, 100_000]);
    expect((await service.call('GET', `/v2/robot_accounts/${robot.id}`)).body.registry_ids).toEqual([registry.id]);
  });

  it('gives its right back to a robot account that was in the bin too, and to none that is gone', async () => {
    const registry = await activeRegistry();
    const robot = await createRobot(['pull'], { registry_ids: [registry.id] });
    const gone = await createRobot(['pull'], { registry_ids: [registry.id] });
    const entry = await bin.deleted(place(registry));
    const kept = await bin.deleted(`/v2/robot_accounts/${robot.id}`);
    expect((await clientOf(robot).pull(`${registry.name}/app`, '1')).status).toBe(401);
    await bin.purge(await bin.deleted(`/v2/robot_accounts/${gone.id}`));
    expect(await bin.restored(entry)).toEqual([
      expect.stringContaining(`\`${gone.name}\` has no right to the registry`),
    ]);
    expect(await bin.restored(kept)).toEqual([]);
    expect((await service.call('GET', `/v2/robot_accounts/${robot.id}`)).body.registry_ids).toEqual([registry.id]);
    // With the secret that it had.
    expect((await clientOf(robot).pull(`${registry.name}/app`, '1')).status).toBe(404);
  });

  it('leaves no right to a robot account in the bin when it is purged', async () => {
    const registry = await activeRegistry();
    const robot = await createRobot(['pull'], { registry_ids: [registry.id] });
    const kept = await bin.deleted(`/v2/robot_accounts/${robot.id}`);
    expect((await bin.purge(await bin.deleted(place(registry)))).status).toBe(204);
    expect(await bin.restored(kept)).toEqual([]);
    expect((await service.call('GET', `/v2/robot_accounts/${robot.id}`)).body.registry_ids).toEqual([]);
  });

  it('keeps its name, so that nobody pulls an image of another project by it', async () => {
    const registry = await activeRegistry();
    const entry = await bin.deleted(place(registry));
    const them = await bin.stranger();
    for (const options of [{}, them]) {
      const taken = await service.call('POST', '/v2/registries', { body: { name: registry.name }, ...options });
      expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'name_taken', 'name']);
    }
    const renamed = await bin.restore(entry, { name: 'other' });
    expect([renamed.status, renamed.body.errors[0].code]).toEqual([422, 'immutable']);
    expect((await bin.purge(entry)).status).toBe(204);
    await waitFor(
      'its name is free',
      async () =>
        (await service.call('POST', '/v2/registries', { body: { name: registry.name }, ...them })).status === 201,
    );
  });

  it('loses its images when it is purged, by hand or when its time is over', async () => {
    for (const how of ['by hand', 'in time']) {
      const registry = await activeRegistry();
      await (await createPusher()).pushImage(`${registry.name}/app`, '1', [randomBytes(1000)]);
      const entry = await bin.deleted(place(registry));
      expect(await rowsOf('registry_tags', registry.id)).toBe(1);
      if (how === 'by hand') await bin.purge(entry);
      else await bin.expire(entry);
      await waitFor('its row goes', async () => (await rowsOf('registries', registry.id)) === 0);
      for (const table of ['registry_tags', 'registry_blobs', 'registry_manifests'])
        expect([table, await rowsOf(table, registry.id)]).toEqual([table, 0]);
      expect([(await bin.restore(entry)).status, (await bin.purge(entry)).status]).toEqual([404, 404]);
    }
  });

  it('is restored once by two who come at once, or purged', async () => {
    for (let round = 0; round < 3; round += 1) {
      const registry = await activeRegistry();
      const image = `${registry.name}/app`;
      const client = await createPusher();
      await client.pushImage(image, '1', [randomBytes(1000)]);
      const first = await bin.deleted(place(registry));
      expect(await bin.race(bin.restore(first), bin.restore(first))).toEqual([200, 404]);
      const second = await bin.deleted(place(registry));
      const [answer] = await Promise.all([bin.restore(second), bin.expire(second)]);
      if (answer.status === 200) expect((await client.pull(image, '1')).status).toBe(200);
      else await waitFor('its row goes', async () => (await rowsOf('registries', registry.id)) === 0);
    }
  });
});
