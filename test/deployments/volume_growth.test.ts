/** @tier heavy @quarter 4 @covers drivers/volume jobs/volumes */
// A volume of a running application grows on a host that cannot grow a mounted file system.
import '../support/databases/no_online_growth';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fingerprintOf } from '../conformance/child';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

const probe = mkdtempSync(path.join(os.tmpdir(), 'volumes-probe-'));
const options = { directory: probe, sizeUnitBytes: 2 ** 20 };
const host = fingerprintOf({ module: 'drivers/volume/loop_image.ts', factory: 'loopImageVolumes', options });
rmSync(probe, { recursive: true, force: true });

(host.healthy ? describe : describe.skip)(`volumes that grow${host.healthy ? '' : `: ${host.reason}`}`, () => {
  let service: DeployService;
  let application: TestApplication;
  let volumeId: string;
  beforeAll(async () => {
    service = await startDeployService({ VOLUME_DRIVER: 'loop_image' });
    application = await service.application(nodeApp('v1'));
    expect((await application.deploy()).status).toBe('active');
    const input = { name: 'files', size_gb: 1, region: 'local', application_id: application.id, mount_path: '/data' };
    volumeId = (await service.call('POST', '/v2/volumes', { body: input })).body.id;
    await waitFor('the volume is there', async () => (await volume()).status === 'in_use');
    await restart();
  }, 90_000);
  afterAll(async () => {
    await service?.clear();
    await service?.call('PATCH', `/v2/volumes/${volumeId}`, { body: { application_id: null } });
    await service?.call('DELETE', `/v2/volumes/${volumeId}`);
    await waitFor('the volume is gone', async () => (await service.sql('select 1 from volumes')).length === 0);
    await service?.close();
  }, 90_000);

  const volume = async () => (await service.call('GET', `/v2/volumes/${volumeId}`)).body;
  const reach = (status: string): Promise<unknown> =>
    waitFor(`the application is ${status}`, async () => (await application.get()).status === status, 60_000);
  const restart = async (): Promise<void> => {
    await application.post('/restart', {});
    await reach('running');
  };

  test('the application serves on, the volume says when it grows, and a restart grows it', async () => {
    await service.call('PATCH', `/v2/volumes/${volumeId}`, { body: { size_gb: 2 } });
    await waitFor('it waits', async () => (await volume()).status === 'in_use');
    expect((await volume()).status_reason).toMatch(
      /The volume grows to 2 GB at the next restart of its application\.$/,
    );
    expect((await application.visit()).body).toBe('v1');
    await restart();
    expect(await volume()).toMatchObject({ status: 'in_use', status_reason: null, size_gb: 2 });
    const [row] = await service.sql<{ size: number }>(`select (observed ->> 'size_gb')::int as size from volumes`);
    expect(row?.size).toBe(2);
    await waitFor('it serves', async () => (await application.visit()).body === 'v1');
  }, 90_000);

  test('an instance that waits for its volume says so; stop interrupts the start', async () => {
    await application.post('/stop', {});
    await reach('stopped');
    const [row] = await service.sql<{ path: string }>(`select observed ->> 'path' as path from volumes`);
    expect(spawnSync('umount', [path.dirname(row?.path ?? '')]).status).toBe(0);
    await application.post('/start', {});
    await waitFor('the instance says why it waits', async () => {
      const [instance] = (await application.get('/instances')).data;
      return instance?.status_reason === 'The volume files is not ready.';
    });
    expect((await application.get()).status).toBe('starting');
    await application.post('/stop', {});
    await reach('stopped');
    await service.sql('update volumes set next_at = now()');
    await waitFor('the volume is back', async () => spawnSync('test', ['-d', row?.path ?? '']).status === 0);
    await application.post('/start', {});
    await reach('running');
  }, 90_000);
});
