/** @tier heavy @quarter 4 @covers jobs/workflow.ts jobs/deployments drivers/builder drivers/image */
// Each step of a deployment in turn: the control plane is killed with -9 in it and at its end, the step fails, and the
// deployment is canceled in it. The list itself is looped over, so a new step is tested here.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { JobContext } from '../../../jobs/job';
import type { DeploymentRow } from '../../../jobs/deployments/deployment/row';
import { steps } from '../../../jobs/deployments/deployment/steps';
import { busyboxLayer, pushImage, siteLayer } from '../../support/builds/images';
import { configuredApplication, type TestApplication } from '../../support/deployments/deploy';
import { nothingOrphaned } from '../../support/processes/bad_days';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { freePort } from '../../support/processes/free_port';
import { startRegistryClient } from '../../support/registries/registry_client';
import { isHeavyRun } from '../../support/processes/kills';
import { needs } from '../../support/runner/programs';
import { waitFor } from '../../support/wait_for';
import { openStepOrders, type StepOrder } from '../../support/workflows/step_orders';

const { describe: describeHere } = needs('buildah', 'busybox', 'bwrap');
const NAMES = steps.map(({ name }) => name);
const WHEN = isHeavyRun() ? (['within', 'after'] as const) : (['after'] as const);
const KILLS = NAMES.flatMap((step) => WHEN.map((when) => [when, step] as const));
const WITHIN_MS = 120_000;
const SERVE = 'busybox httpd -f -p "$PORT" -h .';

type Application = Omit<TestApplication, 'push'>;
type Kind = 'commit' | 'dockerfile' | 'image' | 'promotion';

/** What is deployed to get to the step. */
const KINDS: Partial<Record<string, Kind>> = { image: 'dockerfile', pull: 'image', copy: 'promotion' };
const kindFor = (step: string): Kind => KINDS[step] ?? 'commit';

describeHere('the steps of a deployment', () => {
  const orders = openStepOrders();
  let plant: Plant;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    plant = await startPlant({
      ...{ REGISTRY_PORT: String(port), RELEASE_IMAGES: 'always', BUILD_CONCURRENCY: '20' },
      RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
      ...orders.settings,
    });
    const { key } = JSON.parse(readFileSync(path.join(plant.dataDir, 'first-key.json'), 'utf8'));
    expect((await plant.call('POST', '/v2/registries', { body: { name: 'bases' } })).status).toBe(201);
    await waitFor('the registry', async () => {
      const { body } = await plant.call('GET', '/v2/registries');
      return body.data[0].status === 'active';
    });
    const client = startRegistryClient({ port, username: 'owner', password: key });
    await pushImage(client, 'bases/busybox', '1', { layers: [await busyboxLayer()] });
    const site = await siteLayer({ 'index.html': 'pulled' });
    await pushImage(client, 'bases/site', '1', { layers: [await busyboxLayer(), site] });
  }, WITHIN_MS);
  afterAll(() => plant?.close(), WITHIN_MS);

  async function applicationOf(kind: Kind): Promise<Application> {
    if (kind === 'commit')
      return plant.application(
        { Procfile: `web: ${SERVE}\nrelease: echo released once\n`, 'index.html': 'committed' },
        { build: { build_command: 'echo built once' } },
      );
    if (kind === 'dockerfile') {
      const lines = [`FROM localhost:${port}/bases/busybox:1`, 'RUN mkdir /www && echo dockerfile > /www/index.html'];
      lines.push('CMD ["/bin/busybox", "sh", "-c", "exec busybox httpd -f -p $PORT -h /www"]');
      return plant.application({ Dockerfile: lines.join('\n') }, { build: { builder: 'dockerfile' } });
    }
    if (kind === 'promotion') {
      const origin = await applicationFor('fetch');
      const target = await applicationOf('commit');
      return { ...target, ask: () => target.post('/promote', { source_application_id: origin.id }) };
    }
    const source = { type: 'image', image: `localhost:${port}/bases/site:1` };
    const { body } = await plant.call('POST', '/v2/applications', { body: { name: `image-${Date.now()}`, source } });
    return configuredApplication(plant, body);
  }

  const applications = new Map<Kind, Application>();

  /** With a version in service. */
  async function applicationFor(step: string): Promise<Application> {
    const kind = kindFor(step);
    const application = applications.get(kind) ?? (await applicationOf(kind));
    if (!applications.has(kind)) expect(await application.deploy()).toMatchObject({ status: 'active' });
    applications.set(kind, application);
    return application;
  }

  /** Asks for a deployment, and gives an order for one of its steps. */
  async function deployWith(application: Application, order: Omit<StepOrder, 'workflow'>): Promise<string> {
    orders.give(application.id, { workflow: 'deployment', ...order });
    const { id } = await application.ask();
    await orders.met(application.id);
    return id;
  }

  const instancesOf = ({ id }: Application): Promise<{ deployment_id: string }[]> =>
    plant.sql('select deployment_id from instances where application_id = $1', [id]);

  test.each(KILLS)(
    '%s the step %s, it goes on, and does nothing twice',
    async (when, step) => {
      const application = await applicationFor(step);
      const id = await deployWith(application, { step, act: `kill_${when}`, afterMs: 50 });
      await plant.kill();
      await plant.start();
      const { status, status_reason } = await application.ended(id, WITHIN_MS);
      expect([status, status_reason]).toEqual(['active', null]);
      await waitFor('it answers', async () => (await application.visit('/index.html')).status === 200);
      if (kindFor(step) === 'commit') {
        const lines = await application.log(id);
        for (const line of ['built once', 'released once', '-----> Running the release command'])
          expect([line, lines.filter((one) => one === line).length]).toEqual([line, 1]);
      }
      await waitFor('one instance', async () => {
        const instances = await instancesOf(application);
        return instances.length === 1 && instances[0]?.deployment_id === id;
      });
      await expectOneImage(id);
      await nothingOrphaned(plant);
    },
    WITHIN_MS,
  );

  test('the registry holds no image that no release names, and each is whole', async () => {
    const unnamed = await plant.sql(
      `select m.digest from registry_manifests m join registries r on r.id = m.registry_id
          where r.name = 'apps' and m.repository like 'app\\_%'
            and not exists (select 1 from releases l where l.image = 'apps/' || m.repository || '@' || m.digest)`,
    );
    expect(unnamed).toEqual([]);
    const lost = await plant.sql(
      `select f.target from registry_references f where not exists (select 1 from registry_blobs b
          where b.registry_id = f.registry_id and b.digest = f.target)`,
    );
    expect(lost).toEqual([]);
    const staging = path.join(plant.runtimeDir, 'release_images/staging');
    expect(existsSync(staging) ? readdirSync(staging) : []).toEqual([]);
  });

  test.each(NAMES)(
    'a failure of the step %s is the reason of the deployment, and the version before serves',
    async (step) => {
      const application = await applicationFor(step);
      const id = await deployWith(application, { step, act: 'fail' });
      const { task } = steps.find(({ name }) => name === step)!;
      const reason = `The host cannot ${task}. The test broke it.`;
      expect(await application.ended(id)).toMatchObject({ status: 'failed', status_reason: reason });
      expect((await application.log(id)).at(-1)).toBe(reason);
      await nothingLeftOf(application, id);
    },
    WITHIN_MS,
  );

  test.each(NAMES)(
    'canceled in the step %s, it ends, and nothing of it stays',
    async (step) => {
      const application = await applicationFor(step);
      const id = await deployWith(application, { step, act: 'wait' });
      expect(await application.post(`/deployments/${id}/cancel`)).toMatchObject({ status: 'canceled' });
      await nothingLeftOf(application, id);
      expect(await application.ended(id)).toMatchObject({
        status: 'canceled',
        status_reason: expect.stringMatching(/^Canceled by .*\.$/),
      });
    },
    WITHIN_MS,
  );

  test(
    'a step that is not over when the time of its deployment is, is stopped',
    async () => {
      await plant.stop();
      await plant.start({ BUILD_TIMEOUT_SECONDS: '15' });
      const ends = ['fetch', 'pull'].map(async (step) => {
        const application = await applicationFor(step);
        const id = await deployWith(application, { step, act: 'wait' });
        return application.ended(id, WITHIN_MS);
      });
      const status_reason = 'The deployment did not finish within 15 seconds, so it was stopped.';
      for (const ended of await Promise.all(ends)) expect(ended).toMatchObject({ status: 'failed', status_reason });
    },
    WITHIN_MS,
  );

  async function nothingLeftOf(application: Application, deployment: string): Promise<void> {
    await waitFor('only the version before', async () => {
      const instances = await instancesOf(application);
      return instances.length === 1 && instances[0]?.deployment_id !== deployment;
    });
    expect((await application.visit('/index.html')).status).toBe(200);
    await nothingOrphaned(plant);
  }

  async function expectOneImage(deployment: string): Promise<void> {
    const releases = await plant.sql<{ image: string; id: string }>(
      'select r.id, r.image from releases r join deployments d on d.release_id = r.id where d.id = $1',
      [deployment],
    );
    expect(releases).toEqual([{ id: expect.any(String), image: expect.stringMatching(/^apps\/app_\w+@sha256:/) }]);
    const digest = String(releases[0]?.image).split('@')[1];
    const tags = await plant.sql('select tag, digest from registry_tags where tag = $1', [releases[0]?.id]);
    expect(tags).toEqual([{ tag: releases[0]?.id, digest }]);
  }
});

// Of the release before the list: each row that it left under way, and where it goes on.
const plan = { kind: 'procfile', steps: [{ name: 'build', command: 'true' }] };
const built = { fetched: true, equipped: true, built: true };
const deploying = { status: 'deploying', plan, observed: built };
const released = { ...deploying, release_id: 'rel_1' };
test.each([
  ['fetch', { status: 'building', observed: null }],
  ['equip', { status: 'building', plan, observed: { fetched: true } }],
  ['build', { status: 'building', plan, observed: { fetched: true, equipped: true } }],
  ['image', { status: 'building', plan: { ...plan, kind: 'dockerfile' }, observed: built }],
  ['release', deploying],
  ['release', { ...deploying, observed: null }],
  ['pull', { status: 'deploying', source: { type: 'image' }, observed: null }],
  ['copy', { status: 'deploying', source: { type: 'image' }, promoted_from: { number: 1 }, observed: null }],
  ['publish', released],
  ['command', { ...released, observed: { ...built, published: 'rel_1' } }],
  ['command', { ...released, observed: { ...built, published: 'rel_1', releasing: true } }],
  ['instances', { ...released, observed: { ...built, published: 'rel_1', releasing: true, released: true } }],
  ['instances', { ...released, observed: { ...built, released: true, warning: 'The instance is slow.' } }],
])('a deployment of an earlier release goes on with the step %s', (name, columns) => {
  const row = { plan: null, release_id: null, source: { type: 'git' }, ...columns } as unknown as DeploymentRow;
  const ctx = { config: { releaseImages: 'always' } } as JobContext;
  expect(steps.find((step) => !step.isDone(row, ctx))?.name).toBe(name);
});
