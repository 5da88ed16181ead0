/** @tier heavy @quarter 2 @covers models/deployments jobs/deployments drivers/runtime/copy_files.ts */
// What runs in one application is deployed in another one, without a build.
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { base, imageApplication, imageName, registry, service, setUpImages } from '../support/builds/image_cases';
import { pushImage, SERVE, siteLayer, tarOf } from '../support/builds/images';
import { configuredApplication, type TestApplication } from '../support/deployments/deploy';
import { fileNeeds } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

fileNeeds('busybox', 'bwrap');
// Before the service goes, which clears its own project alone.
const elsewhere: { id: string; project: string }[] = [];
afterAll(async () => {
  for (const { id, project } of elsewhere) await service.call('DELETE', `/v2/applications/${id}`, { project });
});
setUpImages();

/** Without a language: nothing has to be downloaded. */
const site = (text: string) => ({
  Procfile:
    'web: sh -c "echo $STAGE > site/stage; busybox httpd -f -p $PORT -h site"\nrelease: sh -c "echo on $STAGE"\n',
  'site/index.html': text,
});

async function newTarget(name: string, project = service.project): Promise<Omit<TestApplication, 'push'>> {
  const call: typeof service.call = (method, place, options) => service.call(method, place, { project, ...options });
  const { body } = await call('POST', '/v2/applications', { body: { name } });
  if (project !== service.project) elsewhere.push({ id: body.id, project });
  expect((await call('PUT', `/v2/applications/${body.id}/env/STAGE`, { body: { value: name } })).status).toBe(201);
  return configuredApplication({ ...service, call }, body);
}

const filesOf = (deployment: { id: string }): string => path.join(service.runtimeDir, 'releases', deployment.id);

async function promoted(
  target: Omit<TestApplication, 'push'>,
  source: { id: string },
): Promise<TestApplication['deploy'] extends () => Promise<infer Ended> ? Ended : never> {
  const deployment = await target.post('/promote', { source_application_id: source.id });
  const ended = await target.ended(deployment.id);
  expect([ended.status, ended.status_reason]).toEqual(['active', null]);
  return ended;
}

test('the files of another application run with own variables, and stay when it is gone', async () => {
  const staging = await service.application(site('v1'));
  const first = await staging.deploy();
  expect([first.status, first.status_reason]).toEqual(['active', null]);
  const other = await service.newProject();
  const production = await newTarget('production', other.id);

  const one = await promoted(production, staging);
  expect(one).toMatchObject({
    ...{ trigger: 'manual', commit_sha: first.commit_sha, source_deployment_id: null },
    promoted_from: {
      ...{ project_id: service.project, application_id: staging.id, application_name: staging.name },
      ...{ deployment_id: first.id, number: 1 },
    },
  });
  expect((await production.visit()).body).toBe('v1');
  expect((await production.visit('/stage')).body).toBe('production\n');
  const log = (await production.log(one.id)).join('\n');
  expect(log).toContain(`Taking over deployment 1 of ${staging.name}`);
  expect(log).toContain('on production');
  expect(log).not.toMatch(/Fetching|Building|is another one/);
  expect(one.steps.map(({ name }: { name: string }) => name)).not.toContain('build');

  staging.push(site('v2'));
  const set = { run: { release_command: 'echo $STAGE > site/written' } };
  expect((await service.call('PATCH', `/v2/applications/${staging.id}/settings`, { body: set })).status).toBe(200);
  await staging.deploy();
  expect((await production.visit()).body).toBe('v1');
  const two = await promoted(production, staging);
  expect((await production.visit()).body).toBe('v2');
  expect((await production.log(two.id)).join('\n')).toContain(`release command of ${staging.name} is another one`);
  await staging.ended((await staging.post('/rollback', { deployment_id: first.id })).id);
  await promoted(production, staging);
  expect((await production.visit()).body).toBe('v1');

  const entries = async (project: string): Promise<string[]> =>
    (await service.call('GET', `/v2/projects/${project}/activity?limit=100`)).body.data.map(
      (entry: { action: string; resource: { name: string } }) => `${entry.action} ${entry.resource.name}`,
    );
  expect(await entries(other.id)).toContain('application.promoted production #1');
  expect(await entries(service.project)).toContain(`deployment.promoted ${staging.name} #1`);

  expect((await service.call('DELETE', `/v2/applications/${staging.id}`)).status).toBeLessThan(300);
  await waitFor('the end of staging', () => Promise.resolve(!existsSync(filesOf(first))), 60_000);
  await production.post('/restart');
  const back = await production.ended((await production.post('/rollback', { deployment_id: one.id })).id);
  expect([back.status, back.promoted_from, (await production.visit()).body]).toEqual(['active', null, 'v1']);
}, 180_000);

test('a version whose files are gone fails with what to do, and the one before stays in service', async () => {
  const staging = await service.application(site('v1'));
  const target = await newTarget('gone');
  await staging.deploy();
  await promoted(target, staging);
  const { current_deployment_id: id } = await staging.get();
  await service.sql('update deployments set artifact_id = $2 where id = $1', [id, 'dep_01h455vb4pex5vsknk084sn02q']);
  const failed = await target.ended((await target.post('/promote', { source_application_id: staging.id })).id);
  expect(failed).toMatchObject({
    status: 'failed',
    status_reason: expect.stringContaining(`Deploy ${staging.name} again`),
  });
  expect((await target.visit()).body).toBe('v1');
  await service.sql('update deployments set artifact_id = $1 where id = $1', [id]);
}, 90_000);

test('nothing is copied or pulled onto a disk that is nearly full', async () => {
  const staging = await service.application(site('v1'));
  await staging.deploy();
  await pushImage(registry, 'acme/full', 'live', { layers: [base], config: { Cmd: SERVE }, gzip: true });
  const [target, image] = [await newTarget('full'), await imageApplication(imageName('full:live'))];
  await service.sql(
    `insert into installation_alarms (id, name, subject, level, title, detail) values ($1, 'disk', 'test', 95, $2, '')`,
    ['alm_01h455vb4pex5vsknk084sn02q', 'The disk is full by 97 %'],
  );
  await service.sql('update alarm_evaluations set evaluated_at = now()', []);
  const copied = await target.ended((await target.post('/promote', { source_application_id: staging.id })).id);
  for (const { status, status_reason } of [copied, await image.deploy()])
    expect([status, status_reason]).toEqual(['failed', expect.stringMatching(/97 %.*operator has freed room/)]);
  await service.sql('delete from installation_alarms', []);
}, 90_000);

test('an image runs under the users of its new application, wherever its tag leads now', async () => {
  const push = async (text: string): Promise<string> =>
    pushImage(registry, 'acme/shop/web', 'live', {
      layers: [base, await siteLayer({ 'index.html': text })],
      config: { Cmd: SERVE },
      gzip: true,
    });
  const digest = await push('one');
  const staging = await imageApplication(imageName('shop/web:live'));
  expect((await staging.deploy()).status).toBe('active');
  await push('two');
  const other = await service.newProject();
  const target = await newTarget('images', other.id);
  const { image } = await promoted(target, staging);
  expect(image).toBe(`${imageName('shop/web:live')}@${digest}`);
  expect((await target.visit()).body).toBe('one');
}, 90_000);

test('files of an image keep their users, which are other ones of the host for each application', async () => {
  const layer = await tarOf([
    { name: 'srv/private', mode: 0o4750, content: 'private', uid: 1000, gid: 44 },
    { name: 'srv/root', mode: 0o600, content: 'root' },
  ]);
  const layers = [base, await siteLayer({ 'index.html': 'users' }), layer];
  await pushImage(registry, 'acme/users', 'live', { layers, config: { Cmd: SERVE }, gzip: true });
  const staging = await imageApplication(imageName('users:live'));
  const first = await staging.deploy();
  expect(first.status).toBe('active');
  const target = await newTarget('users');
  const one = await promoted(target, staging);
  expect((await target.visit()).body).toBe('users');
  const owners = await Promise.all(
    [first, one].map(async ({ id }) => {
      const [{ range }] = await service.sql(
        `select (plan -> 'image' -> 'settings' -> 'first_user_id')::int as range from deployments where id = $1`,
        [id],
      );
      const [found, root] = ['srv/private', 'srv/root'].map((name) => statSync(path.join(filesOf({ id }), name)));
      return { range, root: root?.uid, mode: found && found.mode & 0o7777, uid: found?.uid, gid: found?.gid };
    }),
  );
  const [before, after] = owners;
  expect(after?.mode).toBe(before?.mode);
  if (before?.range === null) return;
  expect(after?.range).not.toBe(before?.range);
  expect(after?.root).not.toBe(before?.root);
  expect([after?.uid, after?.gid]).toEqual([after?.range + 999, after?.range + 43]);
}, 90_000);
