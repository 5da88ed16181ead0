/** @tier heavy @quarter 2 @covers jobs/applications jobs/deployments server/start_ingress.ts server/agents */
// An installation whose machine ran its applications gets a cluster: they move with their next deployments, one by one,
// and no request is lost. The control plane is killed in the middle of a move.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { busyboxLayer } from '../support/builds/images';
import { CHANGED_WITHIN_MS, deployed, onlyRunning, siteOf, statusIs } from '../conformance/workloads/bench';
import { leftOvers, visitHost, type TestApplication } from '../support/deployments/deploy';
import { pushBaseImage, settingsFor } from '../support/kubernetes/service_on_cluster';
import { startPlant, type Plant } from '../support/processes/bad_days_program';
import { freePort } from '../support/processes/free_port';
import { endPrograms, startProgram } from '../support/processes/program';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

let plant: Plant;

/** `npm run ingress`, as on another machine. @returns its port */
async function startFurtherIngress(settings: Record<string, string>): Promise<number> {
  const port = await freePort();
  const program = startProgram(
    {
      ...settings,
      ...{ DATABASE_URL: plant.databaseUrl, PLATFORM_DATA_DIR: plant.dataDir, INGRESS_PORT: String(port) },
    },
    { entry: 'server/ingress.ts' },
  );
  await program.ready();
  return port;
}

const stored = {
  Procfile: 'web: sh web.sh\n',
  'web.sh':
    'echo start >> /data/starts.txt && echo kept > /data/index.html\nexec busybox httpd -f -p "$PORT" -h /data\n',
};

async function addVolume(application: TestApplication): Promise<string> {
  const made = await plant.call('POST', '/v2/volumes', {
    body: { name: 'files', size_gb: 1, application_id: application.id, mount_path: '/data' },
  });
  expect(made.status).toBe(201);
  return made.body.id;
}

/** What the platform did while requests were lost. @param lost lines that begin with a time */
async function eventsAround(lost: readonly string[]): Promise<string[]> {
  if (!lost.length) return [];
  const times = lost.map((line) => Date.parse(line.split(' ', 1)[0] as string));
  const bounds = [Math.min(...times) - 5_000, Math.max(...times) + 5_000].map((time) => new Date(time).toISOString());
  const rows = await plant.sql<{ line: string }>(
    `select concat_ws(' ', to_json(created_at) #>> '{}', action, resource_id) as line from activity
     where created_at between $1 and $2 order by id`,
    bounds,
  );
  return rows.map(({ line }) => line);
}

describeOnClusterOfMachine('an installation that gets a cluster', (cluster) => {
  let settings: Record<string, string>;
  const podsOf = async ({ id }: TestApplication): Promise<string[]> =>
    (await kubectl(cluster().kubeconfig, 'get', 'pods', '-A', '-l', `platform-api/application=${id}`, '-o', 'name'))
      .split('\n')
      .filter(Boolean);

  beforeAll(async () => {
    const port = await freePort();
    settings = await settingsFor(cluster(), port);
    plant = await startPlant({
      ...settings,
      WORKLOADS: 'host',
      VOLUME_DRIVER: 'directory',
      ...withConfig({ ingressProcess: 'separate' }),
    });
    await pushBaseImage(plant, plant.access().key, port, [await busyboxLayer()]);
  }, 120_000);
  afterAll(async () => {
    await plant?.close();
    await endPrograms();
  }, 120_000);

  test('serves on from its machine, and moves each application with its next deployment', async () => {
    const [moving, resting, keeping] = [
      await plant.application(siteOf('one', 'mail_worker: sleep 1000\n')),
      await plant.application(siteOf('rested')),
      await plant.application(stored),
    ] as const;
    const volume = await addVolume(keeping);
    const first = await deployed(moving);
    for (const application of [resting, keeping]) await deployed(application);
    await resting.post('/stop');
    await statusIs(resting, 'stopped');
    const before = await onlyRunning(moving, 'web', 1);
    const traffic = [moving.traffic('/', 2), moving.traffic('/cgi-bin/slow.cgi', 1), keeping.traffic('/', 1)];

    await plant.stop();
    await plant.start({ WORKLOADS: 'kubernetes' });
    expect(await onlyRunning(moving, 'web', 1)).toMatchObject([{ id: before[0]?.id }]);
    await staysOnMachine(moving, resting);
    const further = await startFurtherIngress(settings);
    expect((await visitHost(further, moving.host)).status).toBe(503);
    await movesWhileKilled(moving);
    await waitFor('its route', async () => (await visitHost(further, moving.host)).body === 'two');
    await rollsBack(moving, first.id);
    await staysWithItsVolume(keeping);
    const found = await Promise.all(traffic.map((one) => one.stop()));
    const lost = found.map((one) => one.lost);
    expect({ lost, events: await eventsAround(lost.flat()) }).toEqual({ lost: [[], [], []], events: [] });
    expect([...(found[0]?.seen ?? [])].sort()).toEqual(['one', 'two']);

    await plant.call('PATCH', `/v2/volumes/${volume}`, { body: { application_id: null } });
    keeping.push(siteOf('without a volume'));
    await deployed(keeping);
    expect((await keeping.visit()).body).toBe('without a volume');
    expect(await podsOf(keeping)).not.toEqual([]);
  }, 480_000);

  async function staysOnMachine(moving: TestApplication, resting: TestApplication): Promise<void> {
    const { id } = await startRun(moving, 'cat version.txt');
    expect(await runEnded(moving, id, CHANGED_WITHIN_MS)).toMatchObject({ status: 'succeeded' });
    await moving.post('/restart', {});
    await statusIs(moving, 'running');
    await onlyRunning(moving, 'web', 1);
    await resting.post('/start');
    await statusIs(resting, 'running');
    await waitFor('its answer', async () => (await resting.visit()).body === 'rested');
    expect([...(await podsOf(moving)), ...(await podsOf(resting))]).toEqual([]);
  }

  async function movesWhileKilled(moving: TestApplication): Promise<void> {
    const [{ id: instance } = { id: '' }] = await onlyRunning(moving, 'web', 1);
    moving.push(siteOf('two', 'mail_worker: sleep 1000\n'));
    const { id } = await moving.ask();
    await waitFor('a pod', async () => (await podsOf(moving)).length > 0, CHANGED_WITHIN_MS);
    await plant.kill();
    await plant.start();
    expect(await moving.ended(id, CHANGED_WITHIN_MS)).toMatchObject({ status: 'active', status_reason: null });
    const [pod] = await onlyRunning(moving, 'web', 1);
    expect(pod?.id).not.toBe(instance);
    await waitFor(
      'no unit of it on the machine',
      async () => !leftOvers(plant.runtimeDir).some((name) => name.startsWith('units/') && name.includes(instance)),
    );
    const run = await startRun(moving, 'cat version.txt');
    expect(await runEnded(moving, run.id, CHANGED_WITHIN_MS)).toMatchObject({ status: 'succeeded' });
  }

  async function rollsBack(moving: TestApplication, deployment: string): Promise<void> {
    const { id } = await moving.post('/rollback', { deployment_id: deployment });
    expect(await moving.ended(id, CHANGED_WITHIN_MS)).toMatchObject({ status: 'active' });
    expect((await moving.visit()).body).toBe('one');
    await onlyRunning(moving, 'web', 1);
    expect(await podsOf(moving)).not.toEqual([]);
  }

  async function staysWithItsVolume(keeping: TestApplication): Promise<void> {
    keeping.push({ 'other.txt': 'another version' });
    const { id } = await deployed(keeping);
    expect((await keeping.log(id)).join('\n')).toContain('stays on the machine of the platform, where its volume is');
    expect((await keeping.visit('/starts.txt')).body).toBe('start\nstart\n');
    expect(await podsOf(keeping)).toEqual([]);
  }
});
