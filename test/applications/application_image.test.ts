/** @tier heavy @quarter 3 @covers drivers/source jobs/deployments */
// Applications whose source is an image: pulled from the registry of this installation, run, followed and rolled back.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import {
  base,
  describeImages,
  imageApplication,
  imageName,
  registry,
  registryPort,
  service,
  setUpImages,
} from '../support/builds/image_cases';
import { pushImage, SERVE, siteLayer, tarOf } from '../support/builds/images';
import { attach } from '../support/runs/attach';
import { startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

/** Writes what the program finds into the site before it serves. */
const REPORT =
  'id -un > /www/who; pwd >> /www/who; echo "$COLOUR $SIZE $HOME" >> /www/who; ' +
  'exec busybox httpd -f -p "$PORT" -h /www';

async function pushSite(tag: string, text: string, config: Record<string, unknown> = { Cmd: SERVE }): Promise<string> {
  return pushImage(registry, 'acme/shop/web', tag, {
    layers: [base, await siteLayer({ 'index.html': text })],
    config,
    gzip: true,
  });
}

/** An index whose entries lead to the image of the tag `other`. */
async function pushIndex(tag: string, platforms: object[]): Promise<void> {
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  const { headers, body } = await registry.pull('acme/shop/web', 'other');
  const digest = String(headers.get('docker-content-digest'));
  const entry = { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: body.length };
  const manifests = platforms.map((platform) => ({ ...entry, platform }));
  const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }));
  const put = await registry.call('PUT', `/v2/acme/shop/web/manifests/${tag}`, index, { 'Content-Type': mediaType });
  expect(put.status).toBe(201);
}

describeImages('applications from images', () => {
  setUpImages();

  test('an image runs as it says: command, variables, directory and user; what is set here wins', async () => {
    const config = {
      Entrypoint: ['/bin/sh', '-c'],
      Cmd: [REPORT],
      Env: ['COLOUR=red', 'SIZE=small', 'PATH=/bin'],
      WorkingDir: '/srv/data',
      User: 'web',
    };
    const digest = await pushSite('report', 'report', config);
    const application = await imageApplication(imageName('shop/web:report'));
    const set = await service.call('PUT', `/v2/applications/${application.id}/env/COLOUR`, { body: { value: 'blue' } });
    expect(set.status).toBeLessThan(300);
    const deployment = await application.deploy();
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    expect(deployment.image).toBe(`${imageName('shop/web:report')}@${digest}`);
    expect((await application.visit('/who')).body).toBe('web\n/srv/data\nblue small /srv\n');
    const [web] = (await application.get('/processes')).data;
    expect(web.command).toBeNull();
    expect(web.effective_command).toContain('httpd');
    expect(await application.log(deployment.id)).toEqual(expect.arrayContaining([`Digest: ${digest}`]));
  });

  test('a rollback runs the image of then, wherever its tag leads now; releases share their layers', async () => {
    const application = await imageApplication(imageName('shop/web:moving'));
    await pushSite('moving', 'one');
    const first = await application.deploy();
    expect(await application.visit()).toMatchObject({ status: 200, body: 'one' });
    await pushSite('moving', 'two');
    const second = await application.deploy();
    expect(await application.visit()).toMatchObject({ status: 200, body: 'two' });
    const releases = path.join(service.runtimeDir, 'releases');
    const inodes = [first, second].map(({ id }) => statSync(path.join(releases, id, 'bin/busybox')).ino);
    expect(new Set(inodes).size).toBe(1);
    const back = await application.post('/rollback', { deployment_id: first.id });
    expect((await application.ended(back.id)).image).toBe(first.image);
    expect(await application.visit()).toMatchObject({ status: 200, body: 'one' });
  });

  test('a push to a tag that an application follows is deployed', async () => {
    const application = await imageApplication(imageName('shop/web:followed'));
    await pushSite('followed', 'old');
    await application.deploy();
    const on = await service.call('PATCH', `/v2/applications/${application.id}/auto_deploy`, {
      body: { enabled: true },
    });
    expect(on.status).toBe(200);
    await waitFor('the first look at the tag', async () => {
      const found = await application.get('/auto_deploy');
      return found.last_checked_at !== null;
    });
    const digest = await pushSite('followed', 'new');
    await waitFor('the new image', async () => (await application.visit()).body === 'new', 20_000);
    const [newest] = (await application.get('/deployments?limit=1')).data;
    expect(newest).toMatchObject({ trigger: 'push', image: `${imageName('shop/web:followed')}@${digest}` });
  });

  test('a release command runs in the image, and changes nothing of it', async () => {
    await pushSite('release', 'release');
    const application = await imageApplication(imageName('shop/web:release'), {
      run: { release_command: 'echo "as $(id -u)"; echo changed > /www/index.html', shutdown_grace_seconds: 3 },
    });
    const deployment = await application.deploy();
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    const user = process.getuid?.() === 0 ? 'as 0' : 'as 1000';
    await waitFor('its output', async () => (await application.log(deployment.id)).includes(user));
    expect(await application.visit()).toMatchObject({ status: 200, body: 'release' });
  });

  test('a terminal is one inside the image, with its shell, its user and its size', async () => {
    await pushSite('terminal', 'terminal', { Cmd: SERVE, User: 'web', WorkingDir: '/www' });
    const application = await imageApplication(imageName('shop/web:terminal'));
    expect((await application.deploy()).status).toBe('active');
    const { id } = await startRun(application, 'exec /bin/busybox sh -i', { tty: true });
    const client = await attach(service, application, id);
    expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: true });
    client.command({ type: 'resize', rows: 37, columns: 93 });
    client.type('busybox stty size; busybox id -un; busybox pwd; busybox ls; test -t 0 && echo is"-terminal"\n');
    await client.shows('is-terminal');
    expect(client.stdout()).toMatch(/37 93\r\nweb\r\n\/www\r\nindex\.html\r\n/);
    client.type('busybox sleep 600\n');
    await client.shows('sleep 600');
    client.type('\u0003');
    client.type('exit 6\n');
    await client.closed;
    expect(client.controls.at(-1)).toMatchObject({ type: 'exit', code: 6 });
  });

  // By its address our registry is somebody else's: a token server, plain HTTP on this machine, and credentials.
  test('a registry of others is asked with the credentials of the application, and for this platform', async () => {
    await pushSite('other', 'from elsewhere');
    const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch as string];
    await pushIndex('both', [
      { os: 'windows', architecture },
      { os: 'linux', architecture },
    ]);
    await pushIndex('foreign', [{ os: 'linux', architecture: 's390x' }]);
    const elsewhere = (tag: string): string => imageName(`shop/web:${tag}`).replace('localhost', '127.0.0.1');
    const application = await imageApplication(elsewhere('both'));
    expect((await application.deploy()).status_reason).toMatch(/requires credentials for the image/);
    const auth = Buffer.from(`owner:${service.key}`).toString('base64');
    const value = JSON.stringify({ auths: { [`127.0.0.1:${registryPort}`]: { auth } } });
    const body = { value, available_at: 'build' };
    await service.call('PUT', `/v2/applications/${application.id}/env/DOCKER_AUTH_CONFIG`, { body });
    expect((await application.deploy()).status_reason).toBe(null);
    expect(await application.visit()).toMatchObject({ status: 200, body: 'from elsewhere' });
    const foreign = await application.deploy({ image: elsewhere('foreign') });
    expect(foreign.status_reason).toMatch(/no variant for linux.*linux\/s390x/);
  });

  test('HEALTHCHECK decides who serves, until the application has a health check of its own', async () => {
    const second = 1_000_000_000;
    const check = (line: string): Record<string, unknown> => ({
      Cmd: SERVE,
      Env: ['PATH=/bin'],
      Healthcheck: { Test: ['CMD-SHELL', line], Interval: second, Timeout: 5 * second, Retries: 2 },
    });
    await pushSite('well', 'well', check('echo . >> /tmp/checks; [ "$(busybox wc -l < /tmp/checks)" -lt 8 ]'));
    const well = await imageApplication(imageName('shop/web:well'));
    expect((await well.deploy()).status_reason).toBe(null);
    await waitFor('the restart', async () => {
      const [instance] = (await well.get('/instances')).data;
      return instance?.restart_count > 0;
    });
    await pushSite('ill', 'ill', check('echo no database >&2; exit 3'));
    const ill = await imageApplication(imageName('shop/web:ill'));
    const { status, status_reason } = await ill.deploy();
    expect([status, status_reason]).toEqual(['failed', expect.stringContaining('exit code 3: no database')]);
    const body = { health_check: { type: 'tcp' } };
    expect((await service.call('PATCH', `/v2/applications/${ill.id}/settings`, { body })).status).toBe(200);
    expect((await ill.deploy()).status_reason).toBe(null);
    expect(await ill.visit()).toMatchObject({ status: 200, body: 'ill' });
  });

  test('what cannot be run fails with a reason, and leaves nothing', async () => {
    const evil = await tarOf([{ name: '../../escape', content: 'out' }]);
    await pushImage(registry, 'acme/evil', '1', { layers: [base, evil] });
    const cases: [image: string, reason: RegExp][] = [
      [imageName('shop/web:absent'), /no image .*Check `image`/],
      [imageName('shop/web:1').replace('/acme/', '/other/'), /no registry with the image/],
      [imageName('evil:1'), /name leads out of the image/],
    ];
    for (const [image, reason] of cases) {
      const application = await imageApplication(image);
      const { id, status, status_reason } = await application.deploy();
      expect([status, status_reason]).toEqual(['failed', expect.stringMatching(reason)]);
      expect(readdirSync(path.join(service.runtimeDir, 'releases'))).not.toContain(id);
    }
  });

  test('a registry that an application has an image of is not deleted', async () => {
    await pushSite('kept', 'kept');
    await imageApplication(imageName('shop/web:kept'));
    const [{ id }] = (await service.call('GET', '/v2/registries?name=acme')).body.data;
    const refused = await service.call('DELETE', `/v2/registries/${id}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'resource_in_use']);
  });
});
